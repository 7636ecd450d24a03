// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

extension StatisticsTests {
  @Test("a receiver that has ended is remembered by its name", arguments: cores)
  func ended(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let observation = central.observe()
    for _ in 0..<3 {
      let thread = EventThread(on: central, name: "guest")
      thread.addEventCallback { (_: Step) in Echo().queue(on: central) }
      Step().queue(on: central)
      #expect(thread.drain())
    }
    // A thread frees its consumer a moment after its end.
    #expect(waitUntil { central.statistics.receivers.allSatisfy(\.hasEnded) })
    let statistics = central.statistics
    #expect(statistics.receivers.map(\.name) == ["guest"])
    #expect(statistics.handled(Step.self).delivered == 3)
    #expect(statistics.receivers[0].mailbox.accepted == 3)
    #expect(statistics.dispatched(Step.self) == 3)
    // Nobody listens.
    #expect(statistics.dispatched(Echo.self) == 0)
    observation.end()
  }

  @Test("the sum of a name that was observed has all receivers that end later, observed or not", arguments: cores)
  func sums(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    func run(_ count: Int) {
      let thread = EventThread(on: central, name: "guest")
      thread.addEventCallback { (_: Step) in }
      for _ in 0..<count { Step().queue(on: central) }
      #expect(thread.drain())
      // A thread frees its consumer a moment after its end.
      #expect(waitUntil { central.statistics.receivers.allSatisfy(\.hasEnded) })
    }
    var observation = central.observe()
    run(3)
    observation.end()
    run(5)
    observation = central.observe()
    run(7)
    observation.end()
    let statistics = central.statistics
    #expect(statistics.receivers.map(\.counts.delivered) == [15])
    #expect(statistics.receivers.map(\.mailbox.accepted) == [15])
    #expect(statistics.handled(Step.self).delivered == 10)
  }

  @Test("what a receiver dispatched that has ended is not counted for a living one of its name", arguments: cores)
  func endedSources(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let observation = central.observe()
    let sink = EventThread(on: central, name: "sink")
    sink.addEventCallback { (_: Echo) in }
    let relays = (0..<2).map { _ in EventThread(on: central, name: "relay") }
    for relay in relays { relay.addEventCallback { (_: Step) in Echo().queue(on: central) } }
    for _ in 0..<10 { Step().queue(on: central) }
    // The first has handled all before the second ends.
    #expect(waitUntil { relays[0].eventCount == 0 && central.statistics.dispatched(Echo.self) == 20 })
    #expect(relays[1].drain())
    relays[1].join()
    func sources() -> [String?: UInt64] {
      Dictionary(
        central.statistics.dispatches.filter { $0.type.hasSuffix("Echo") }.map { ($0.source, $0.count) },
        uniquingKeysWith: +)
    }
    #expect(waitUntil { sources() == ["relay": 10, "relay (ended)": 10] })
    #expect(central.flowGraph.dispatches.filter { $0.type.hasSuffix("Echo") }.count == 2)
    observation.end()
    #expect(relays[0].drain())
    #expect(sink.drain())
  }

  @Test("a name is forgotten with the last receiver that has it, unless an observer counted", arguments: cores)
  func names(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let before = central.basis.instruments.nameCount
    func run(_ name: String) {
      let thread = EventThread(on: central, name: name)
      thread.addEventCallback { (_: Step) in }
      #expect(thread.drain())
    }
    let guest = EventThread(on: central, name: "guest")
    for number in 0..<100 { run("session \(number)") }
    run("guest")
    #expect(waitUntil { central.basis.instruments.nameCount == before + 1 })
    let observation = central.observe()
    #expect(guest.drain())
    run("session")
    observation.end()
    for number in 0..<100 { run("session \(number)") }
    #expect(waitUntil { central.basis.instruments.nameCount == before + 2 })
    #expect(central.statistics.receivers.filter(\.hasEnded).map(\.name) == ["guest", "session"])
  }

  @Test("observations come and go while threads dispatch, and nothing is lost", arguments: cores)
  func churn(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let threads = (0..<3).map { EventThread(on: central, name: "thread \($0)") }
    for thread in threads { thread.addEventCallback { (_: Step) in } }
    let always = central.observe(times: .every(7))
    let (rounds, each) = (200, 2000)
    onThreads(3) { index in
      if index == 0 {
        for _ in 0..<rounds { central.observe(times: .every(3)).end() }
      } else {
        for number in 0..<each { Step(number: number).queue(on: central) }
      }
    }
    for thread in threads { #expect(thread.drain()) }
    let statistics = central.statistics
    #expect(statistics.dispatched(Step.self) == UInt64(2 * each))
    #expect(statistics.handled(Step.self).delivered == UInt64(3 * 2 * each))
    always.end()
  }

  @Test("observed off and on under load, no event is lost or doubled", arguments: cores)
  func switching(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let count = Counter()
    let thread = EventThread(on: central)
    thread.addEventCallback { (_: Step) in count.add() }
    onThreads(2) { index in
      if index == 0 {
        for _ in 0..<500 { central.observe(times: .all).end() }
      } else {
        for number in 0..<20_000 { Step(number: number).queue(on: central) }
      }
    }
    #expect(thread.drain())
    #expect(count.value == 20_000)
    #expect(central.statistics.handled(Step.self).delivered <= 20_000)
  }

  @Test("a handler may begin and end observations", arguments: cores)
  func inside(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    thread.addEventCallback { (_: Step) in
      let observation = central.observe()
      _ = central.statistics
      observation.end()
    }
    for _ in 0..<10 { Step().queue(on: central) }
    #expect(thread.drain())
    #expect(thread.statistics.delivered == 10)
  }

  @Test("an observation may outlive its central", arguments: cores)
  func outliving(core: EventCentral.Core) {
    var central: EventCentral? = EventCentral(core: core)
    weak let gone = central
    let observation = central?.observe()
    central = nil
    #expect(gone == nil)
    observation?.end()
  }

  @Test("events that wait while many observations come and go are counted, exactly", arguments: balances)
  func manyObservations(_ kind: (EventCentral.Core, Balance)) {
    let central = EventCentral(core: kind.0)
    let pump = EventPump(on: central)
    pump.addEventCallback { (_: Job) in }
    let pool = EventPool<EventThread>(capacity: 1, balancer: kind.1.make(), on: central) { _ in
      let thread = EventThread()
      thread.addEventCallback { (_: Job) in }
      return thread
    }
    let held = pool.holdAll()
    for number in 0..<200 {
      let observation = central.observe(times: .none)
      for _ in 0..<number % 3 { Job().queue(on: central) }
      observation.end()
      // Of no observation.
      Job().queue(on: central)
    }
    held.forEach { $0.letGo() }
    #expect(pool.drain())
    pump.run()
    #expect(central.statistics.dispatched(Job.self) == 199)
    #expect(central.statistics.handled(Job.self, at: "EventPump").delivered == 199)
    #expect(central.statistics.handled(Job.self).delivered == 2 * 199)
    pump.cancel()
    pump.run()
  }

  @Test("a generation is looked up among the last 512 observations, and was observed in none before")
  func generations() {
    var observed = ObservedGenerations()
    #expect(observed.isEmpty && !observed.contains(0))
    for number in 0..<600 as Range<UInt32> {
      observed.change(to: true, at: 10 * number + 4)
      observed.change(to: true, at: 10 * number + 5)
      #expect(observed.isOn)
      observed.change(to: false, at: 10 * number + 7)
      #expect(!observed.isOn)
    }
    let wrong = (0..<6_100 as Range<UInt32>).filter { generation in
      let isKept = generation >= 10 * (600 - 512) && generation < 6_000
      return observed.contains(generation) != (isKept && (4..<7).contains(generation % 10))
    }
    #expect(wrong.isEmpty)
  }
}
