// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

extension StatisticsTests {
  @Test("a thread's dispatches count for the receiver whose handler it runs, and for nobody between", arguments: cores)
  func sources(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let pumps = (0..<2).map { _ in EventPump(on: central) }
    let listener = EventPump(on: central)
    listener.addEventCallback { (_: Echo) in }
    let observation = central.observe(times: .every(7))
    for (index, pump) in pumps.enumerated() {
      pump.addEventCallback { (_: Step) in for _ in 0...index { Echo().queue(on: central) } }
    }
    for _ in 0..<50 {
      Step().queue(on: central)
      for pump in pumps { pump.run() }
      for _ in 0..<3 { Echo().queue(on: central) }
    }
    listener.run()
    let dispatches = central.statistics.dispatches.filter { $0.type == eventTypeName(eventKey(Echo.self)) }
    #expect(dispatches.filter { $0.source == nil }.map(\.count) == [150])
    #expect(dispatches.compactMap { $0.source == nil ? nil : $0.count }.sorted() == [50, 100])
    #expect(central.statistics.handled(Echo.self).delivered == 300)
    observation.end()
    for pump in pumps { pump.cancel(); pump.run() }
  }

  @Test("what a schedule dispatches inside a pump's run comes from outside", arguments: cores)
  func schedules(core: EventCentral.Core) {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock, timers: .pumps)
    let observation = central.observe()
    let pump = EventPump(on: central)
    pump.addEventCallback { (_: Step) in Echo().queue(on: central) }
    pump.addEventCallback { (_: Echo) in }
    let schedule = Step().scheduleQueue(every: .seconds(1), on: central)
    for _ in 0..<3 {
      clock.advance(by: .seconds(1))
      pump.run()
    }
    let dispatches = central.statistics.dispatches
    #expect(dispatches.map(\.type.last) == ["o", "p"])
    #expect(dispatches.map(\.source) == ["EventPump", nil])
    #expect(dispatches.map(\.count) == [3, 3])
    schedule.cancel()
    observation.end()
  }

  @Test("what a handler of another central dispatches comes from outside", arguments: cores)
  func anotherCentral(core: EventCentral.Core) {
    let (central, other) = (EventCentral(core: core), EventCentral(core: core))
    let observations = [central.observe(), other.observe()]
    // Both have the same name.
    let (pump, relay) = (EventPump(on: central), EventPump(on: other))
    pump.addEventCallback { (_: Echo) in }
    relay.addEventCallback { (_: Step) in
      Echo().queue(on: central)
      Echo().queue(on: other)
    }
    relay.addEventCallback { (_: Echo) in }
    for _ in 0..<3 {
      Step().queue(on: other)
      relay.run()
      pump.run()
    }
    #expect(central.statistics.dispatches.map(\.source) == [nil])
    #expect(central.statistics.dispatches.map(\.count) == [3])
    #expect(other.statistics.dispatches.map(\.source) == ["EventPump", nil])
    for observation in observations { observation.end() }
  }
}
