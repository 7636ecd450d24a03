// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("Watches for slow handlers")
struct WatchTests {
  @Test("a slow handler is reported with its backlog, a fast one is not", arguments: cores)
  func slow(core: EventCentral.Core) {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock)
    let pump = EventPump(on: central)
    pump.addEventCallback { (step: Step) in clock.advance(by: .milliseconds(step.number)) }
    let reports = Log<EventSlowHandler>()
    let watch = central.watch(slowerThan: .milliseconds(5)) { if $0.hasReturned { reports.append($0) } }
    for number in [1, 4, 5, 2, 9] { Step(number: number).queue(on: central) }
    pump.run()
    let found = reports.entries(atLeast: 2)
    #expect(found.map(\.duration) == [.milliseconds(5), .milliseconds(9)])
    #expect(found.map(\.waiting) == [2, 0])
    #expect(found.allSatisfy { $0.receiver == "EventPump" && $0.type == "EventCoreTests.Step" })
    watch.end()
    Step(number: 50).queue(on: central)
    pump.run()
    #expect(reports.entries.count == 2)
    pump.cancel()
    pump.run()
  }

  @Test("a watch that begins and ends within an observation sees its events, and no others", arguments: cores)
  func within(core: EventCentral.Core) {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock)
    let pump = EventPump(on: central)
    pump.addEventCallback { (_: Step) in clock.advance(by: .milliseconds(9)) }
    let reports = Log<EventSlowHandler>()
    let observation = central.observe(times: .none)
    for round in 1...3 {
      Step().queue(on: central)
      pump.run()
      let watch = central.watch(slowerThan: .milliseconds(5)) { if $0.hasReturned { reports.append($0) } }
      for _ in 0..<2 { Step().queue(on: central) }
      pump.run()
      #expect(reports.entries(atLeast: 2 * round).count == 2 * round)
      watch.end()
    }
    #expect(reports.entries.count == 6)
    #expect(central.statistics.handled(Step.self).delivered == 9)
    observation.end()
    pump.cancel()
    pump.run()
  }

  @Test("a handler that does not return is reported while it runs, once, and again when it has returned", arguments: cores)
  func stuck(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central, name: "stuck")
    let (entered, leave) = (Gate(), Gate())
    thread.addEventCallback { (_: Step) in
      entered.open()
      leave.pass()
    }
    let reports = Log<EventSlowHandler>()
    let watch = central.watch(slowerThan: .milliseconds(2)) { reports.append($0) }
    Step().queue(on: central)
    entered.pass()
    let first = reports.entries(atLeast: 1)[0]
    #expect(!first.hasReturned && first.receiver == "stuck" && first.duration >= .milliseconds(2))
    leave.open()
    let all = reports.entries(atLeast: 2)
    #expect(all.map(\.hasReturned) == [false, true])
    #expect(all[1].duration >= all[0].duration)
    watch.end()
    thread.cancel()
  }

  @Test("with a clock of the central's own, the clock makes it look", arguments: cores)
  func manual(core: EventCentral.Core) {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock)
    let thread = EventThread(on: central)
    let (entered, leave) = (Gate(), Gate())
    thread.addEventCallback { (_: Step) in
      entered.open()
      leave.pass()
    }
    let reports = Log<EventSlowHandler>()
    let watch = central.watch(slowerThan: .seconds(3)) { reports.append($0) }
    Step().queue(on: central)
    entered.pass()
    // The alarm is set on a queue, and so perhaps after the first of these.
    #expect(
      waitUntil {
        clock.advance(by: .seconds(1))
        return !reports.entries.isEmpty
      })
    leave.open()
    #expect(reports.entries(atLeast: 2).map(\.hasReturned) == [false, true])
    watch.end()
    thread.cancel()
  }

  @Test("a watch ends with its token, and leaves nothing behind", arguments: cores)
  func ending(core: EventCentral.Core) {
    let lifetime = Lifetime()
    do {
      let central = EventCentral(core: core)
      let token = lifetime.token()
      let watch = central.watch(slowerThan: .seconds(1)) { _ in withExtendedLifetime(token) {} }
      withExtendedLifetime(watch) {}
    }
    #expect(lifetime.waitUntilNone())
  }

  @Test("no report begins after the end of a watch, though many wait", arguments: cores)
  func endsAtOnce(core: EventCentral.Core) {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock)
    let pump = EventPump(on: central)
    pump.addEventCallback { (_: Step) in clock.advance(by: .milliseconds(9)) }
    let (reports, lifetime, began, leave) = (Log<EventSlowHandler>(), Lifetime(), Gate(), Gate())
    do {
      let token = lifetime.token()
      let watch = central.watch(slowerThan: .milliseconds(5)) { slow in
        withExtendedLifetime(token) {}
        guard slow.hasReturned else { return }
        reports.append(slow)
        if reports.entries.count == 1 {
          began.open()
          leave.pass()
        }
      }
      for _ in 0..<5 { Step().queue(on: central) }
      pump.run()
      began.pass()
      watch.end()
      leave.open()
    }
    // It is freed behind the reports that waited.
    #expect(lifetime.waitUntilNone())
    #expect(reports.entries.count == 1)
    pump.cancel()
    pump.run()
  }

  @Test("D12: a watch that allows no time traps")
  func trap() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = EventCentral().watch(slowerThan: .zero) { _ in }
    }
    expectMessage(result, "A watch allows handlers more than no time, and this one 0.0 seconds")
  }
}
