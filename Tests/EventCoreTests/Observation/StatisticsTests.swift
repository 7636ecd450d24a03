// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Synchronization
import Testing

@testable import EventCore

/// An event of the suites of this folder.
struct Step: Eventable { var number = 0 }
struct Echo: Eventable { var number = 0 }

extension EventStatistics {
  /// What became of the events of a type at all receivers whose names begin so.
  func handled<E: Eventable>(_ type: E.Type, at name: String = "") -> HandledReading {
    let typeName = eventTypeName(eventKey(type))
    return receivers.filter { $0.name.hasPrefix(name) }.flatMap(\.types).filter { $0.type == typeName }
      .reduce(HandledReading()) {
        $0 + HandledReading(
          delivered: $1.delivered, skipped: $1.skipped, waiting: $1.waitingTime, handling: $1.handlingTime)
      }
  }
}

@Suite("Statistics: what happens inside a central")
struct StatisticsTests {
  @Test("what is dispatched after the begin and before the end is counted, exactly", arguments: cores)
  func exact(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    pump.addEventCallback { (_: Step) in }
    for _ in 0..<3 { Step().queue(on: central) }
    for round in 1...3 {
      let observation = central.observe()
      for _ in 0..<5 { Step().queue(on: central) }
      #expect(central.statistics.receivers.first?.mailbox.waiting == (round == 1 ? 8 : 9))
      pump.run()
      #expect(central.statistics.handled(Step.self).delivered == UInt64(5 * round))
      #expect(central.statistics.dispatched(Step.self) == UInt64(5 * round))
      observation.end()
      observation.end()
      for _ in 0..<4 { Step().queue(on: central) }
    }
    pump.run()
    let statistics = central.statistics
    #expect(statistics.handled(Step.self).delivered == 15)
    #expect(statistics.dispatched(Step.self) == 15)
    #expect(statistics.receivers.map(\.name) == ["EventPump"])
    #expect(statistics.receivers[0].counts == pump.statistics)
    #expect(statistics.receivers[0].counts.delivered == 30)
    #expect(statistics.receivers[0].mailbox == pump.mailboxStatistics)
  }

  @Test("a token that is released ends the observation; of several, the last one does", arguments: cores)
  func tokens(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    pump.addEventCallback { (_: Step) in }
    var tokens = [central.observe(), central.observe(times: .none)]
    Step().queue(on: central)
    tokens.removeFirst()
    Step().queue(on: central)
    tokens.removeAll()
    Step().queue(on: central)
    pump.run()
    #expect(central.statistics.handled(Step.self).delivered == 2)
  }

  @Test("every kind of receiver counts each event once", arguments: cores)
  func receivers(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central, name: "referee")
    let seen = Log<Int>()
    thread.addEventCallback { (step: Step) in seen.append(step.number) }
    let queue = DispatchQueue(label: "a queue")
    let owner = Lifetime()
    let before = Step.addListener(owner, executeOn: .dispatchQueue(queue), on: central) { seen.append($0.number) }
    let observation = central.observe(times: .all)
    // These come while it is observed.
    let handles = [
      Step.addListener(owner, executeOn: .listenerThread, on: central) { seen.append($0.number) },
      Step.addListener(owner, executeOn: .taskThread, on: central) { seen.append($0.number) },
      Step.addListener(owner, executeOn: .listenerThread, on: thread) { seen.append($0.number) },
    ]
    let sequence = Step.events(on: central)
    let alone = EventThread(on: central, name: "alone")
    alone.addEventCallback { (step: Step) in seen.append(step.number) }
    for number in 0..<10 { Step(number: number).queue(on: central) }
    (0..<10).map { Step(number: $0) }.queue(on: central)
    alone.queueEvent(Step())
    var iterator = sequence.makeAsyncIterator()
    for _ in 0..<20 { _ = await iterator.next() }
    // A thread with two handlers handles an event once.
    _ = seen.entries(atLeast: 6 * 20 + 1)
    #expect(waitUntil { central.statistics.handled(Step.self).delivered >= 6 * 20 + 1 })
    let statistics = central.statistics
    for name in ["referee", "a queue", "EventListener", "task"] {
      #expect(statistics.handled(Step.self, at: name).delivered == (name == "task" ? 40 : 20), "\(name)")
      // Recorded after it was counted.
      #expect(
        waitUntil { central.statistics.handled(Step.self, at: name).handling.count == (name == "task" ? 40 : 20) },
        "\(name)")
    }
    #expect(statistics.handled(Step.self, at: "alone").delivered == 21)
    #expect(statistics.dispatched(Step.self) == 21)
    observation.end()
    for handle in handles + [before] { handle.remove() }
    thread.cancel()
    alone.cancel()
  }

  @Test("the threads of a pool count together what was dispatched to it", arguments: balances)
  func pools(_ kind: (EventCentral.Core, Balance)) {
    let central = EventCentral(core: kind.0)
    let pool = EventPool<EventThread>(capacity: 3, balancer: kind.1.make(), on: central, name: "crew") { _ in
      let thread = EventThread()
      thread.addEventCallback { (_: Job) in }
      return thread
    }
    for number in 0..<50 { Job(number: number).queue(on: central) }
    let observation = central.observe(times: .all)
    for number in 0..<200 { Job(number: number).queue(on: central) }
    for number in 0..<50 { pool.queueEvent(Job(number: number)) }
    pool.capacity = 2
    for number in 0..<50 { Job(number: number).queue(on: central) }
    #expect(pool.drain())
    let statistics = central.statistics
    // Those of the first 50 that a thread takes after a later one may be counted, too.
    let delivered = statistics.handled(Job.self, at: "crew").delivered
    #expect(delivered >= 300 && delivered <= 350)
    #expect(statistics.dispatched(Job.self) == 300)
    #expect(statistics.handled(Job.self).waiting.count >= 300)
    observation.end()
  }

  @Test("what interests skip is counted apart", arguments: cores)
  func skips(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    let owner = Lifetime()
    let handle = Step.addListener(
      owner, executeOn: .pump(pump), interestedIn: .custom, customFilter: { step, _, _ in step.number % 3 == 0 },
      on: central) { _ in }
    let observation = central.observe()
    for number in 0..<10 { Step(number: number).queue(on: central) }
    pump.run()
    let handled = central.statistics.handled(Step.self)
    #expect(handled.delivered == 4 && handled.skipped == 6)
    observation.end()
    handle.remove()
    pump.run()
  }

  @Test("the times are those of the central's clock: to the handler, and in it", arguments: cores)
  func times(core: EventCentral.Core) {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock)
    let pump = EventPump(on: central)
    pump.addEventCallback { (_: Step) in clock.advance(by: .milliseconds(2)) }
    let observation = central.observe(times: .all)
    Step().queue(on: central)
    clock.advance(by: .milliseconds(5))
    Step().queue(on: central)
    pump.run()
    let handled = central.statistics.handled(Step.self)
    #expect(handled.waiting.count == 2)
    #expect(handled.waiting.min == .milliseconds(2) && handled.waiting.max == .milliseconds(5))
    #expect(handled.handling.min == .milliseconds(2) && handled.handling.max == .milliseconds(2))
    observation.end()
    pump.cancel()
    pump.run()
  }

  @Test("one of so many is timed, and each is counted", arguments: cores)
  func sampling(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    pump.addEventCallback { (_: Step) in }
    let observation = central.observe(times: .every(10))
    for _ in 0..<101 { Step().queue(on: central) }
    pump.run()
    #expect(central.statistics.handled(Step.self).delivered == 101)
    #expect(central.statistics.handled(Step.self).waiting.count == 11)
    observation.end()
    let counting = central.observe(times: .none)
    for _ in 0..<100 { Step().queue(on: central) }
    pump.run()
    #expect(central.statistics.handled(Step.self).delivered == 201)
    #expect(central.statistics.handled(Step.self).waiting.count == 11)
    counting.end()
  }

  @Test("D8: a handler that asks for the time gets it, sampled or not, and no receiver measures more", arguments: cores)
  func timedHandlers(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let (pump, other) = (EventPump(on: central), EventPump(on: central))
    let times = Log<UInt64>()
    pump.addEventCallback { (_: Step, _: EventPriority, time: DispatchTime) in times.append(time.uptimeNanoseconds) }
    other.addEventCallback { (_: Step) in }
    let observation = central.observe(times: .every(100))
    for _ in 0..<1000 { Step().queue(on: central) }
    // The thousand and first dispatch, all of whose events are measured.
    (0..<8).map { Step(number: $0) }.queue(on: central)
    pump.run()
    other.run()
    #expect(!times.entries(atLeast: 1008).contains(0))
    let handled = central.statistics.handled(Step.self)
    #expect(handled.delivered == 2016)
    #expect(handled.waiting.count == 2 * (10 + 8))
    observation.end()
  }

  @Test("another sampling holds at once, also for what is sent straight to a receiver", arguments: cores)
  func changedSampling(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    pump.addEventCallback { (_: Step) in }
    let counting = central.observe(times: .none)
    func send(_ count: Int) {
      for _ in 0..<count {
        Step().queue(on: central)
        pump.queueEvent(Step())
      }
      pump.run()
    }
    send(3)
    #expect(central.statistics.handled(Step.self).waiting.count == 0)
    for round in 1...3 {
      let timing = central.observe(times: .all)
      send(5)
      #expect(central.statistics.handled(Step.self).waiting.count == UInt64(10 * round))
      timing.end()
      send(7)
    }
    #expect(central.statistics.handled(Step.self).waiting.count == 30)
    #expect(central.statistics.handled(Step.self).delivered == 78)
    counting.end()
  }

  @Test("bounds, latest-only interests and deterministic centrals count as elsewhere", arguments: cores)
  func others(core: EventCentral.Core) {
    let central = EventCentral(deterministic: 3, core: core)
    let thread = EventThread(on: central, mailbox: .bounded(4, whenFull: .dropOldest), name: "bounded")
    thread.addEventCallback { (_: Step) in }
    let latest = EventThread(on: central, name: "latest")
    latest.addEventCallback({ (_: Echo) in }, interestedIn: .latestOnly)
    let observation = central.observe(times: .all)
    for _ in 0..<10 {
      Step().queue(on: central)
      Echo().queue(on: central)
    }
    let trace = central.trace { central.run() }
    #expect(trace.entries.count == 5)
    let statistics = central.statistics
    #expect(statistics.receivers[0].name == "bounded")
    #expect(statistics.receivers[0].mailbox.dropped == 6 && statistics.receivers[0].mailbox.highWaterMark == 4)
    #expect(statistics.handled(Step.self).delivered == 4)
    #expect(statistics.handled(Echo.self).delivered == 1)
    #expect(statistics.dispatched(Step.self) == 10 && statistics.dispatched(Echo.self) == 10)
    observation.end()
    thread.cancel()
    latest.cancel()
    central.run()
  }

  @Test("events that are only counted are not measured, although another handler needs their times; jobs are no dispatches", arguments: cores)
  func onlyCounted(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let (timed, plain) = (EventThread(on: central, name: "timed"), EventThread(on: central, name: "plain"))
    timed.addEventCallback { (_: Step, _, _) in }
    plain.addEventCallback { (_: Step) in }
    let observation = central.observe(times: .none)
    for number in 0..<100 { Step(number: number).queue(on: central) }
    #expect(plain.consumer.post {})
    #expect(timed.drain() && plain.drain())
    let handled = central.statistics.handled(Step.self)
    #expect(handled.delivered == 200 && handled.waiting.count == 0 && handled.handling.count == 0)
    #expect(central.statistics.dispatches.map(\.count) == [100])
    observation.end()
  }

  @Test("they print as a table", arguments: cores)
  func table(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    pump.addEventCallback { (_: Step) in }
    let observation = central.observe(times: .none)
    Step().queue(on: central)
    pump.run()
    #expect(
      central.statistics.description == """
        receiver   event                delivered  skipped  dropped  waiting  most  wait 50 %  99 %  handle 50 %  99 %
        EventPump                               1        0        0        0
                   EventCoreTests.Step          1        0
        """)
    observation.end()
  }

  @Test("types of one name are one type in the figures", arguments: cores)
  func oneName(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let observation = central.observe(times: .all)
    let pump = EventPump(on: central)
    func first() -> UInt64 {
      struct Local: Eventable {}
      pump.addEventCallback { (_: Local) in }
      for _ in 0..<3 { Local().queue(on: central) }
      return central.statistics.dispatched(Local.self)
    }
    func second() -> UInt64 {
      struct Local: Eventable {}
      pump.addEventCallback { (_: Local) in }
      for _ in 0..<5 { Local().queue(on: central) }
      return central.statistics.dispatched(Local.self)
    }
    #expect((first(), second()) == (3, 8))
    #expect(pump.run().handled == 8)
    let types = central.statistics.receivers[0].types
    #expect(types.map(\.delivered) == [8])
    #expect(types.map(\.handlingTime.count) == [8])
    observation.end()
    pump.cancel()
  }

  @Test("D12: a sampling of nothing traps")
  func trap() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = EventCentral().observe(times: .every(0))
    }
    expectMessage(result, "A sampling times one of so many dispatches, 1 to 2,147,483,647, and this one is 0")
  }
}

/// A count from several threads.
final class Counter: Sendable {
  private let count = Atomic<Int>(0)
  func add() { count.wrappingAdd(1, ordering: .relaxed) }
  var value: Int { count.load(ordering: .relaxed) }
}
