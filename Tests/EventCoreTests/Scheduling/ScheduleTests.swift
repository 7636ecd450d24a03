// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Testing

@testable import EventCore

/// A central whose time the test moves, with a thread that logs the events it gets.
struct ScheduleWorld {
  struct Number: Eventable { var value = 0 }

  let clock = ManualClock()
  let central: EventCentral
  let thread: EventThread
  let log = Log<Int>()

  init(_ core: EventCentral.Core) {
    central = EventCentral(core: core, clock: clock)
    thread = EventThread(on: central)
    thread.addEventCallback { [log] (event: Number) in log.append(event.value) }
  }

  func after(_ nanoseconds: UInt64) -> DispatchTime {
    DispatchTime(uptimeNanoseconds: clock.nanoseconds + nanoseconds)
  }

  /// Ends the thread, and returns what it has handled, in order.
  func finish() -> [Int] {
    thread.drain()
    return log.entries
  }
}

@Suite("Scheduling: what is dispatched, when, and to whom")
struct ScheduleTests {
  typealias Number = ScheduleWorld.Number

  @Test("an event is dispatched at its time and not a nanosecond before", arguments: cores)
  func neverEarly(core: EventCentral.Core) {
    let world = ScheduleWorld(core)
    let hold = HeldThread(world.thread)
    let handle = Number().scheduleQueue(at: world.after(1000), on: world.central)
    world.clock.advance(by: .nanoseconds(999))
    #expect(world.thread.eventCount == 0)
    #expect(handle.state == .waiting)
    world.clock.advance(by: .nanoseconds(1))
    #expect(world.thread.eventCount == 1)
    #expect(handle.state == .dispatched)
    #expect(handle.dispatches == 1)
    hold.letGo()
    #expect(world.finish() == [0])
  }

  @Test("each verb dispatches to its lane", arguments: cores)
  func lanes(core: EventCentral.Core) {
    let world = ScheduleWorld(core)
    let hold = HeldThread(world.thread)
    for priority in EventPriority.allCases {
      Number().scheduleQueue(at: world.after(1), priority: priority, on: world.central)
      Number().scheduleStack(at: world.after(1), priority: priority, on: world.central)
      Number().scheduleQueue(after: .nanoseconds(1), priority: priority, on: world.central)
      Number().scheduleStack(after: .nanoseconds(1), priority: priority, on: world.central)
      Number().scheduleQueue(
        every: .nanoseconds(1), limit: 1, priority: priority, on: world.central)
      Number().scheduleStack(
        every: .nanoseconds(1), limit: 1, priority: priority, on: world.central)
    }
    world.clock.advance(by: .nanoseconds(1))
    for lane in TestLane.all {
      #expect(world.thread.eventCount(priority: lane.priority, method: lane.method) == 3)
    }
    hold.letGo()
    #expect(world.finish().count == 30)
  }

  @Test("earlier deadlines come first, equal ones in the order of the calls", arguments: cores)
  func order(core: EventCentral.Core) {
    var random = SeededRandom(seed: announcedSeed("order of schedules, \(core)"))
    for count in [0, 1, 2, 3, 5, 1000] {
      let world = ScheduleWorld(core)
      let deadlines = (0..<count).map { _ in UInt64.random(in: 1...10, using: &random) }
      for (index, deadline) in deadlines.enumerated() {
        Number(value: index).scheduleQueue(at: world.after(deadline), on: world.central)
      }
      world.clock.advance(by: .nanoseconds(5))
      world.clock.advance(by: .nanoseconds(5))
      let expected = deadlines.enumerated().sorted {
        ($0.element, $0.offset) < ($1.element, $1.offset)
      }
      #expect(world.finish() == expected.map(\.offset))
    }
  }

  @Test("an event whose time has passed is dispatched at once, on the calling thread", arguments: cores)
  func past(core: EventCentral.Core) {
    let world = ScheduleWorld(core)
    let hold = HeldThread(world.thread)
    #expect(Number().scheduleQueue(at: world.central.now, on: world.central).state == .dispatched)
    let earlier = DispatchTime(uptimeNanoseconds: world.clock.nanoseconds - 5)
    #expect(Number().scheduleStack(at: earlier, on: world.central).state == .dispatched)
    let delays = [
      Duration.zero, .nanoseconds(-1), .seconds(-1_000_000_000_000), .seconds(Int64.min) * 2,
    ]
    for delay in delays {
      #expect(Number().scheduleQueue(after: delay, on: world.central).state == .dispatched)
    }
    #expect(world.thread.eventCount == 6)
    #expect(world.central.scheduleStatistics.pending == 0)
    hold.letGo()
    #expect(world.finish().count == 6)
  }

  @Test("an event beyond the clock's range is never dispatched, and can be cancelled", arguments: cores)
  func never(core: EventCentral.Core) {
    let world = ScheduleWorld(core)
    let handles = [
      Number().scheduleQueue(at: .distantFuture, on: world.central),
      Number().scheduleQueue(after: .seconds(Int64.max), on: world.central),
      Number().scheduleQueue(after: .seconds(Int64.max) * 2, on: world.central),
      Number().scheduleQueue(every: .seconds(Int64.max), on: world.central),
    ]
    world.clock.advance(by: .seconds(3_000_000_000))
    #expect(handles.allSatisfy { $0.state == .waiting })
    #expect(handles.allSatisfy { $0.cancel() })
    #expect(world.finish() == [])
  }

  @Test("durations are rounded up, so that nothing is early")
  func rounding() {
    #expect(Duration.nanoseconds(7).wholeNanoseconds == 7)
    #expect(
      Duration(secondsComponent: 1, attosecondsComponent: 1).wholeNanoseconds == 1_000_000_001)
    #expect(Duration(secondsComponent: 0, attosecondsComponent: 1).wholeNanoseconds == 1)
    #expect(Duration.zero.wholeNanoseconds == 0)
    #expect(Duration.seconds(-1).wholeNanoseconds == 0)
    for factor in [1, 2, 18] {
      #expect((Duration.seconds(Int64.max) * factor).wholeNanoseconds == .max)
      #expect((Duration.seconds(Int64.min) * factor).wholeNanoseconds == 0)
    }
  }

  @Test(
    "D8: dispatchTime is when the event was dispatched, not when it was scheduled", arguments: cores
  )
  func dispatchTime(core: EventCentral.Core) {
    let world = ScheduleWorld(core)
    let times = Log<DispatchTime>()
    world.thread.addEventCallback { (_: Number, _: EventPriority, time: DispatchTime) in
      times.append(time)
    }
    Number().scheduleQueue(at: world.after(5), on: world.central)
    world.clock.advance(by: .nanoseconds(5))
    let time = world.central.now
    world.clock.advance(by: .nanoseconds(5))
    #expect(world.finish() == [0])
    #expect(times.entries == [time])
  }

  @Test("D4: what is scheduled for one event thread or listener reaches it alone", arguments: cores)
  func receivers(core: EventCentral.Core) {
    let world = ScheduleWorld(core)
    let (central, log) = (world.central, Log<Int>())
    let thread = EventThread(on: central)
    thread.addEventCallback { (event: Number) in log.append(event.value) }
    let listener = EventListener(on: central)
    Number.addListener(nil, executeOn: .listenerThread, on: listener) { log.append($0.value) }
    Number(value: 1).scheduleQueue(at: world.after(1), on: thread)
    Number(value: 2).scheduleStack(after: .nanoseconds(2), on: listener)
    Number(value: 3).scheduleQueue(every: .nanoseconds(3), limit: 1, on: thread)
    for step in 1...3 {
      world.clock.advance(by: .nanoseconds(1))
      #expect(log.entries(atLeast: step).count == step)
    }
    #expect(log.entries == [1, 2, 3])
    #expect(central.scheduleStatistics.dispatched == 3)
    #expect(world.finish() == [])
  }

  struct OnlyHere: Eventable {}

  @Test("the shared central is the default of every verb")
  func sharedIsTheDefault() {
    let thread = EventThread()
    let log = Log<Int>()
    thread.addEventCallback { (_: OnlyHere) in log.append(1) }
    OnlyHere().scheduleQueue(at: .now())
    OnlyHere().scheduleStack(after: .microseconds(10))
    OnlyHere().scheduleQueue(every: .microseconds(10), limit: 1)
    #expect(log.entries(atLeast: 3).count == 3)
    thread.cancel()
  }

  @Test("D7: a handler may schedule", arguments: cores)
  func fromHandlers(core: EventCentral.Core) {
    let world = ScheduleWorld(core)
    let noted = Log<Int>()
    world.thread.addEventCallback { [central = world.central] (event: Number) in
      if event.value < 5 {
        Number(value: event.value + 1).scheduleQueue(after: .nanoseconds(1), on: central)
      }
      noted.append(event.value)
    }
    Number(value: 0).scheduleQueue(after: .nanoseconds(1), on: world.central)
    for step in 1...6 {
      world.clock.advance(by: .nanoseconds(1))
      #expect(noted.entries(atLeast: step).count == step)
    }
    #expect(world.finish() == [0, 1, 2, 3, 4, 5])
    world.clock.advance(by: .seconds(1))
    #expect(world.central.scheduleStatistics.pending == 0)
  }

  @Test("D4: events of any shape are dispatched, and end once", arguments: cores)
  func shapes(core: EventCentral.Core) {
    struct Large: Eventable {
      var numbers: (Int, Int, Int, Int, Int, Int, Int, Int) = (1, 2, 3, 4, 5, 6, 7, 8)
      var token: Lifetime.Token
    }
    struct Empty: Eventable {}
    let (world, lifetime, log) = (ScheduleWorld(core), Lifetime(), Log<Int>())
    world.thread.addEventCallback { (event: Large) in log.append(event.numbers.7) }
    world.thread.addEventCallback { (_: Empty) in log.append(0) }
    Large(token: lifetime.token()).scheduleQueue(
      every: .nanoseconds(1), limit: 3, on: world.central)
    Empty().scheduleQueue(after: .nanoseconds(4), on: world.central)
    for _ in 0..<4 { world.clock.advance(by: .nanoseconds(1)) }
    _ = world.finish()
    #expect(log.entries == [8, 8, 8, 0])
    #expect(lifetime.waitUntilNone())
  }

  @Test("a scheduler is made at the first use", arguments: cores)
  func lazily(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    Number().queue(on: central)
    #expect(!central.scheduler.isMade)
    Number().scheduleQueue(after: .seconds(1000), on: central)
    #expect(central.scheduler.isMade)
  }
}
