// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Synchronization
import Testing

@testable import EventCore

/// A clock that goes on by ten microseconds whenever it is read, a hundred thousand times.
private final class HurriedClock: Clock {
  let reads = Atomic<Int>(0)
  private let start = ContinuousClock.now

  var now: ContinuousClock.Instant {
    start + .microseconds(10) * min(reads.wrappingAdd(1, ordering: .relaxed).newValue, 100_000)
  }
  var minimumResolution: Duration { .nanoseconds(1) }
  func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {}
}

@Suite("Timers that pumps run")
struct PumpTimerTests {
  struct Number: Eventable { var value = 0 }
  struct Tick: Eventable {}

  #if os(Linux)
    @Test("a central with pumps alone has no thread, and its schedules are dispatched inside a run")
    func noThread() async {
      await #expect(processExitsWith: .success) {
        for core in EventCentral.Core.available {
          let central = EventCentral(core: core, timers: .pumps)
          let pump = EventPump(on: central)
          var handled = 0
          pump.addEventCallback { (_: Number) in handled += 1 }
          for _ in 0..<10 { Number().scheduleQueue(after: .microseconds(200), on: central) }
          let tick = Number().scheduleQueue(every: .microseconds(300), on: central)
          while handled < 20 {
            #expect(pump.wait(until: ContinuousClock.now + .seconds(60)))
            pump.run()
          }
          #expect(tick.cancel())
          #expect(pump.timeUntilTimer == nil)
        }
        // The thread of a scheduler would be among them.
        let names = Set(threadNames())
        #expect(names.isEmpty, "\(names)")
      }
    }
  #endif

  @Test("a schedule is dispatched inside a run at its time and not before, and nowhere else", arguments: cores)
  func insideRun(core: EventCentral.Core) {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock, timers: .pumps)
    let pump = EventPump(on: central)
    let other = EventThread(on: central)
    let log = Log<Int>()
    var values: [Int] = []
    pump.addEventCallback { (event: Number) in values.append(event.value) }
    other.addEventCallback { (event: Number) in log.append(event.value) }
    Number(value: 1).scheduleQueue(after: .seconds(2), on: central)
    Number(value: 2).scheduleQueue(after: .seconds(1), on: central)
    #expect(pump.timeUntilTimer == .seconds(1))
    clock.advance(by: .seconds(1) - .nanoseconds(1))
    pump.run()
    #expect(pump.timeUntilTimer == .nanoseconds(1))
    clock.advance(by: .seconds(10))
    #expect(central.scheduleStatistics.dispatched == 0)
    #expect(pump.timeUntilTimer == .zero)
    #expect(pump.wait(until: central.now))
    #expect(pump.run().handled == 2)
    #expect(values == [2, 1])
    #expect(pump.timeUntilTimer == nil)
    #expect(!pump.wait(until: central.now))
    // The deadline of one that is late has passed: it is dispatched at once, as always.
    Number(value: 3).scheduleQueue(at: central.now, on: central)
    #expect(pump.run().handled == 1)
    #expect(other.drain())
    #expect(log.entries == [2, 1, 3])
    pump.cancel()
    pump.run()
  }

  @Test("a timer's event for the pump that runs it, which is full, is refused at once", arguments: cores)
  func full(core: EventCentral.Core) {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock, timers: .pumps)
    let pump = EventPump(on: central, mailbox: .bounded(1, whenFull: .block(upTo: .seconds(500))))
    var values: [Int] = []
    pump.addEventCallback { (event: Number) in values.append(event.value) }
    for value in 0..<3 { Number(value: value).scheduleQueue(after: .seconds(1), on: central) }
    clock.advance(by: .seconds(1))
    // One by one, since a run looks for timers before and between its events.
    #expect(pump.run().handled == 1)
    #expect(values == [0])
    #expect(pump.mailboxStatistics.refused == 2)
    pump.cancel()
    pump.run()
  }

  @Test("D1: a timer that becomes due during a run does not wait for the backlog", arguments: cores)
  func duringRun(core: EventCentral.Core) {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock, timers: .pumps)
    let pump = EventPump(on: central)
    var values: [Int] = []
    pump.addEventCallback { (event: Number) in
      values.append(event.value)
      clock.advance(by: .milliseconds(1))
    }
    for value in 0..<10 { Number(value: value).queue(on: central) }
    Number(value: -1).scheduleStack(after: .milliseconds(3), priority: .highest, on: central)
    Number(value: -2).scheduleQueue(after: .milliseconds(5), on: central)
    let tick = Number(value: -3).scheduleQueue(
      every: .milliseconds(7), limit: 2, priority: .high, on: central)
    #expect(pump.run(limit: 8).handled == 8)
    #expect(values == [0, 1, 2, -1, 3, 4, 5, -3])
    #expect(pump.run(until: central.now + .milliseconds(5)).handled == 5)
    #expect(values.suffix(5) == [6, 7, 8, 9, -2])
    #expect(pump.run().handled == 0)
    clock.advance(by: .milliseconds(1))
    #expect(pump.run().handled == 1)
    #expect(tick.state == .dispatched)
    pump.cancel()
    pump.run()
  }

  @Test("during a run on the system's clock, too", arguments: cores)
  func duringLongRun(core: EventCentral.Core) {
    let central = EventCentral(core: core, timers: .pumps)
    let pump = EventPump(on: central)
    var (ticks, count) = (0, 0)
    // The run goes on until the timer has ended it.
    pump.addEventCallback { (event: Number) in
      if event.value == 0 {
        count += 1
        if ticks < 3 { pump.queueEvent(event) }
      } else {
        ticks += 1
      }
    }
    Number(value: 1).scheduleQueue(every: .microseconds(200), limit: 3, on: central)
    Number().queue(on: central)
    pump.run()
    #expect(ticks == 3)
    #expect(count > 0)
    pump.cancel()
    pump.run()
  }

  @Test("D1: a timer that a handler sets during a run is dispatched at its time, not behind the backlog", arguments: cores)
  func setByHandler(core: EventCentral.Core) {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock, timers: .pumps)
    let pump = EventPump(on: central)
    var values: [Int] = []
    pump.addEventCallback { (event: Number) in
      values.append(event.value)
      if event.value == 1 { Number(value: -1).scheduleStack(after: .milliseconds(2), on: central) }
      if event.value == 5 { Number(value: -2).scheduleStack(after: .milliseconds(4), on: central) }
      if event.value == 6 { Number(value: -3).scheduleStack(after: .milliseconds(2), on: central) }
      clock.advance(by: .milliseconds(1))
    }
    for value in 0..<10 { Number(value: value).queue(on: central) }
    #expect(pump.run().handled == 13)
    #expect(values == [0, 1, 2, -1, 3, 4, 5, 6, 7, -3, -2, 8, 9])
    pump.cancel()
    pump.run()
  }

  @Test(
    "D1: on the system's clock, too, a timer that a handler or another thread sets ends an endless backlog",
    .timeLimit(.minutes(1)), arguments: cores)
  func setDuringEndlessRun(core: EventCentral.Core) {
    for isOther in [false, true] {
      let central = EventCentral(core: core, timers: .pumps)
      let pump = EventPump(on: central)
      var isOver = false
      pump.addEventCallback { (event: Number) in
        isOver = isOver || event.value == 2
        if event.value == 0 {
          // A far one, so that the run has a deadline of its own, and a near one.
          Number(value: 3).scheduleQueue(after: .seconds(1000), on: central)
          let set: @Sendable () -> Void = { Number(value: 2).scheduleQueue(after: .milliseconds(1), on: central) }
          if isOther { runThread(set) } else { set() }
        }
        // As many as are handled: without the timer the run would never end.
        if event.value < 2, !isOver { pump.queueEvent(Number(value: 1)) }
      }
      Number(value: 0).queue(on: central)
      pump.run()
      #expect(isOver)
      pump.cancel()
      pump.run()
    }
  }

  @Test("a schedule by another thread wakes a pump that waits, or that has asked how long it may", arguments: cores)
  func wakes(core: EventCentral.Core) {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock, timers: .pumps)
    let wakes = Atomic<Int>(0)
    let pump = EventPump(on: central) { wakes.wrappingAdd(1, ordering: .relaxed) }
    pump.addEventCallback { (_: Number) in }
    // It waits for a timer that comes later; the earlier one has it wait for that.
    Number().scheduleQueue(after: .seconds(100), on: central)
    runThread {
      _ = waitUntil { clock.sleepers == 1 }
      Number().scheduleQueue(after: .seconds(10), on: central)
      clock.advance(by: .seconds(10))
    }
    #expect(pump.wait())
    #expect(pump.run().handled == 1)
    #expect(wakes.exchange(0, ordering: .relaxed) > 0)
    // A loop with a wake-up of its own.
    #expect(pump.timeUntilTimer == .seconds(90))
    let later = Number().scheduleQueue(after: .seconds(95), on: central)
    #expect(wakes.load(ordering: .relaxed) == 0)
    let earlier = Number().scheduleQueue(after: .seconds(80), on: central)
    #expect(wakes.load(ordering: .relaxed) == 1)
    #expect(pump.timeUntilTimer == .seconds(80))
    earlier.cancel()
    later.cancel()
    #expect(pump.timeUntilTimer == .seconds(90))
    pump.cancel()
    pump.run()
  }

  @Test("D4: two pumps on two threads dispatch each schedule once, whoever runs first", arguments: cores)
  func twoPumps(core: EventCentral.Core) {
    let central = EventCentral(core: core, timers: .pumps)
    let total = Log<Int>()
    let count = 2_000
    let handles = (0..<count).map { value in
      Number(value: value).scheduleQueue(after: .microseconds(value % 500), on: central)
    }
    onThreads(2) { _ in
      let pump = EventPump(on: central)
      pump.addEventCallback { (event: Number) in total.append(event.value) }
      while central.scheduleStatistics.pending > 0 {
        pump.wait(until: ContinuousClock.now + .milliseconds(1))
        pump.run()
      }
      pump.run()
      pump.cancel()
      pump.run()
    }
    #expect(handles.allSatisfy { $0.state == .dispatched })
    #expect(central.scheduleStatistics.dispatched == count)
    let counts = Dictionary(total.entries.map { ($0, 1) }, uniquingKeysWith: +)
    #expect(counts.values.allSatisfy { $0 <= 2 })
  }

  @Test("D9: a central that its pumps' timers belong to ends with them, and frees what is scheduled", arguments: cores)
  func ending(core: EventCentral.Core) {
    let lifetime = Lifetime()
    struct Owned: Eventable { let token: Lifetime.Token }
    let handle: EventScheduleHandle
    do {
      let central = EventCentral(core: core, timers: .pumps)
      let pump = EventPump(on: central)
      handle = Owned(token: lifetime.token()).scheduleQueue(after: .seconds(1000), on: central)
      #expect(pump.timeUntilTimer != nil)
    }
    #expect(handle.state == .dropped)
    #expect(lifetime.waitUntilNone())
  }

  @Test("a central with a thread for its timers has none in its pumps", arguments: cores)
  func byThread(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    let handle = Number().scheduleQueue(after: .seconds(1000), on: central)
    #expect(pump.timeUntilTimer == nil)
    #expect(handle.cancel())
  }

  @Test("timers that are due again all the time hold up neither the pump's own events nor its return", arguments: cores)
  func dueAgain(core: EventCentral.Core) {
    let clock = HurriedClock()
    let central = EventCentral(core: core, clock: clock, timers: .pumps)
    let pump = EventPump(on: central)
    var values: [Int] = []
    pump.addEventCallback { (event: Number) in values.append(event.value) }
    let ticks = (0..<4).map { _ in Tick().scheduleQueue(every: .microseconds(5), on: central) }
    for value in 0..<3 { pump.queueEvent(Number(value: value)) }
    #expect(pump.run(limit: 2).handled == 2)
    #expect(values == [0, 1])
    #expect(pump.run().handled == 1)
    #expect(values == [0, 1, 2])
    #expect(pump.run().handled == 0)
    #expect(pump.run(until: central.now + .seconds(60)).handled == 0)
    #expect(clock.reads.load(ordering: .relaxed) < 1_000)
    for tick in ticks { #expect(tick.dispatches > 0 && tick.cancel()) }
  }
}
