// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("Scheduling: repetitions under a jumping clock")
struct RepeatTests {
  typealias Number = ScheduleWorld.Number

  @Test(
    "deadlines do not drift, however late each dispatch is",
    arguments: cores, EventRepeatPolicy.allCases)
  func noDrift(core: EventCentral.Core, policy: EventRepeatPolicy) {
    let world = ScheduleWorld(core)
    let handle = Number().scheduleQueue(
      every: .nanoseconds(10), policy: policy, on: world.central)
    // In each round one dispatch is 9 late. The next deadline comes 1 later, and with drift 10 later.
    for round in 1...20 {
      world.clock.advance(by: .nanoseconds(19))
      #expect(handle.dispatches == 2 * round - 1)
      world.clock.advance(by: .nanoseconds(1))
      #expect(handle.dispatches == 2 * round)
    }
    #expect(handle.skipped == 0)
    #expect(handle.cancel())
    #expect(world.finish().count == 40)
  }

  @Test(
    "catch-up dispatches each missed deadline, among the others in their order", arguments: cores)
  func catchUp(core: EventCentral.Core) {
    let world = ScheduleWorld(core)
    let handle = Number(value: 1).scheduleQueue(
      every: .nanoseconds(10), policy: .catchUp, on: world.central)
    for (value, time) in [(2, 5), (3, 15), (4, 30), (5, 45)] as [(Int, UInt64)] {
      Number(value: value).scheduleQueue(at: world.after(time), on: world.central)
    }
    world.clock.advance(by: .nanoseconds(45))
    #expect(handle.dispatches == 4 && handle.skipped == 0)
    #expect(handle.cancel())
    #expect(world.finish() == [2, 1, 3, 1, 4, 1, 1, 5])
  }

  @Test("skip dispatches once for all missed deadlines, and counts them", arguments: cores)
  func skip(core: EventCentral.Core) {
    let world = ScheduleWorld(core)
    let handle = Number(value: 1).scheduleQueue(
      every: .nanoseconds(10), policy: .skip, on: world.central)
    // The deadline at 10 is late; those at 20, 30 and 40 are missed.
    world.clock.advance(by: .nanoseconds(45))
    #expect(handle.dispatches == 1 && handle.skipped == 3)
    world.clock.advance(by: .nanoseconds(4))
    #expect(handle.dispatches == 1)
    world.clock.advance(by: .nanoseconds(1))
    #expect(handle.dispatches == 2 && handle.skipped == 3)
    #expect(world.central.scheduleStatistics.skipped == 3)
    #expect(handle.cancel())
    #expect(world.finish() == [1, 1])
  }

  @Test("a limit is the number of dispatches", arguments: cores, EventRepeatPolicy.allCases)
  func limit(core: EventCentral.Core, policy: EventRepeatPolicy) {
    for limit in [1, 2, 3] {
      let world = ScheduleWorld(core)
      let handle = Number().scheduleStack(
        every: .nanoseconds(10), limit: limit, policy: policy, on: world.central)
      for _ in 0..<5 { world.clock.advance(by: .nanoseconds(10)) }
      #expect(handle.dispatches == limit)
      #expect(handle.state == .dispatched)
      #expect(!handle.cancel())
      #expect(world.finish().count == limit)
      #expect(world.central.scheduleStatistics.pending == 0)
    }
  }

  @Test(
    "the first deadline may be any, and one that has passed is dispatched at once", arguments: cores
  )
  func first(core: EventCentral.Core) {
    let world = ScheduleWorld(core)
    let now = world.clock.nanoseconds
    let later = Number(value: 1).scheduleQueue(
      every: .nanoseconds(10), first: world.after(3), on: world.central)
    world.clock.advance(by: .nanoseconds(3))
    #expect(later.dispatches == 1)
    world.clock.advance(by: .nanoseconds(10))
    #expect(later.dispatches == 2)
    #expect(later.cancel())
    // The first deadline was 25 ago: one dispatch at once, two missed, and the others stay in step.
    let past = DispatchTime(uptimeNanoseconds: now + 13 - 25)
    let skipping = Number(value: 2).scheduleQueue(
      every: .nanoseconds(10), first: past, policy: .skip, on: world.central)
    #expect(skipping.dispatches == 1 && skipping.skipped == 2 && skipping.state == .waiting)
    let catching = Number(value: 3).scheduleQueue(
      every: .nanoseconds(10), first: past, limit: 4, policy: .catchUp, on: world.central)
    #expect(catching.dispatches == 1 && catching.state == .waiting)
    // The scheduler catches up.
    world.clock.advance(by: .zero)
    #expect(catching.dispatches == 3 && catching.state == .waiting)
    world.clock.advance(by: .nanoseconds(4))
    #expect(skipping.dispatches == 1 && catching.dispatches == 3)
    world.clock.advance(by: .nanoseconds(1))
    #expect(skipping.dispatches == 2 && catching.dispatches == 4)
    #expect(catching.state == .dispatched)
    #expect(skipping.cancel())
    #expect(world.finish() == [1, 1, 2, 3, 3, 3, 2, 3])
  }

  @Test(
    "a repetition that never catches up holds up nobody, and can be cancelled", arguments: cores)
  func neverCatchesUp(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    // Soon, since every missed deadline before it is dispatched first: here there are 100,000.
    let other = Number().scheduleQueue(after: .microseconds(100), on: central)
    // A nanosecond is less than any dispatch takes.
    let handle = Number().scheduleQueue(every: .nanoseconds(1), policy: .catchUp, on: central)
    #expect(waitUntil { other.state == .dispatched })
    #expect(handle.cancel())
    #expect(waitUntil { central.scheduleStatistics.pending == 0 })
  }

  @Test("a repetition whose deadline is beyond the clock's range is not dispatched", arguments: cores)
  func beyondTheClock(core: EventCentral.Core) {
    let world = ScheduleWorld(core)
    let handle = Number().scheduleQueue(
      every: .seconds(18_000_000_000), first: world.after(1), on: world.central)
    world.clock.advance(by: .nanoseconds(1))
    #expect(handle.dispatches == 1 && handle.state == .waiting)
    world.clock.advance(to: .max - 1)
    #expect(handle.dispatches == 2 && handle.state == .waiting)
    #expect(handle.cancel())
    #expect(world.finish().count == 2)
  }

  @Test(
    "equal deadlines come in the order of setting, which a repetition does at each dispatch",
    arguments: cores)
  func ties(core: EventCentral.Core) {
    let world = ScheduleWorld(core)
    let handle = Number(value: 1).scheduleQueue(every: .nanoseconds(10), on: world.central)
    Number(value: 2).scheduleQueue(at: world.after(20), on: world.central)
    world.clock.advance(by: .nanoseconds(10))
    Number(value: 3).scheduleQueue(at: world.after(10), on: world.central)
    world.clock.advance(by: .nanoseconds(10))
    #expect(handle.cancel())
    #expect(world.finish() == [1, 2, 1, 3])
  }
}
