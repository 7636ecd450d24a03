// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Synchronization
import Testing

@testable import EventCore

/// A clock of a user's, whose hours are as long as its owner likes. It counts how often it is read.
private final class TurnClock: Clock {
  struct Instant: InstantProtocol {
    var turns: Int
    func advanced(by duration: Duration) -> Instant { Instant(turns: turns + Int(duration / .seconds(1))) }
    func duration(to other: Instant) -> Duration { .seconds(other.turns - turns) }
    static func < (one: Instant, other: Instant) -> Bool { one.turns < other.turns }
  }

  private let turn = Atomic<Int>(-7)
  let reads = Atomic<Int>(0)
  /// Of the tasks that have slept.
  let marks = Guarded<[Int?]>([])
  @TaskLocal static var mark: Int?
  private let sleepers = Guarded<[(turn: Int, gate: Latch)]>([])

  var now: Instant {
    reads.wrappingAdd(1, ordering: .relaxed)
    return Instant(turns: turn.load(ordering: .acquiring))
  }
  var minimumResolution: Duration { .seconds(1) }

  func sleep(until deadline: Instant, tolerance: Duration?) async throws {
    let latch = Latch()
    marks.withLock { $0.append(Self.mark) }
    sleepers.withLock { $0.append((deadline.turns, latch)) }
    wake()
    guard await latch.opened(until: nil) else { throw CancellationError() }
  }

  func next() {
    turn.wrappingAdd(1, ordering: .releasing)
    wake()
  }

  private func wake() {
    let turn = turn.load(ordering: .acquiring)
    let due = sleepers.withLock { sleepers in
      defer { sleepers.removeAll { $0.turn <= turn } }
      return sleepers.filter { $0.turn <= turn }
    }
    for sleeper in due { sleeper.gate.open() }
  }
}

@Suite("The clock of a central")
struct CentralClockTests {
  struct Number: Eventable { var value = 0 }

  @Test("D8: the time of a dispatch is that of the central's clock, by every way of dispatching", arguments: cores)
  func dispatchTime(core: EventCentral.Core) {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock)
    let pump = EventPump(on: central)
    var times: [DispatchTime] = []
    pump.addEventCallback { (_: Number, _, time) in times.append(time) }
    #expect(central.now.uptimeNanoseconds == clock.nanoseconds)
    let start = central.now
    Number().queue(on: central)
    clock.advance(by: .seconds(1))
    Number().stack(priority: .lowest, on: central)
    pump.run()
    #expect(times == [start + .seconds(1), start])
    times = []
    clock.advance(by: .seconds(1))
    (0..<100).map { Number(value: $0) }.queue(on: central)
    pump.queueEvent(Number())
    clock.advance(by: .seconds(1))
    Number().scheduleQueue(after: .seconds(2), on: central)
    clock.advance(by: .seconds(3))
    pump.run()
    #expect(times == Array(repeating: start + .seconds(2), count: 101) + [start + .seconds(6)])
    pump.cancel()
    pump.run()
  }

  @Test("D8: the clock is read for nobody who does not ask for the time", arguments: cores)
  func readOnlyIfAsked(core: EventCentral.Core) {
    let clock = TurnClock()
    let central = EventCentral(core: core, clock: clock)
    let pump = EventPump(on: central)
    var count = 0
    pump.addEventCallback { (_: Number) in count += 1 }
    let before = clock.reads.load(ordering: .relaxed)
    for value in 0..<100 { Number(value: value).queue(on: central) }
    #expect(clock.reads.load(ordering: .relaxed) == before)
    pump.run()
    // A run looks once, when nothing is left.
    #expect(clock.reads.load(ordering: .relaxed) <= before + 2)
    #expect(count == 100)
    pump.cancel()
    pump.run()
  }

  @Test("timers fire with the task-local values of nobody", arguments: cores)
  func taskLocals(core: EventCentral.Core) async {
    let (clock, log) = (TurnClock(), Log<Int?>())
    let central = EventCentral(core: core, clock: clock)
    let thread = EventThread(on: central)
    thread.addEventCallback { (_: Number) in log.append(TurnClock.mark) }
    TurnClock.$mark.withValue(7) { _ = Number().scheduleQueue(every: .seconds(1), on: central) }
    for _ in 0..<3 {
      let count = log.entries.count
      #expect(
        await yieldUntil {
          clock.next()
          return log.entries.count > count
        })
    }
    #expect(clock.marks.withLock { !$0.isEmpty && $0.allSatisfy { $0 == nil } })
    thread.cancel()
  }

  @Test("an age is that on the central's clock", arguments: cores)
  func ages(core: EventCentral.Core) {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock)
    let (pump, log) = (EventPump(on: central), Log<String>())
    pump.addEventCallback(
      { (event: Number) in log.append("pump \(event.value)") }, interestedIn: .youngerThan(.seconds(5)))
    Number.addListener(
      nil, { event in log.append("listener \(event.value)") }, executeOn: .pump(pump),
      interestedIn: .youngerThan, maximumAge: 6_000_000_000, on: central)
    for value in 0..<3 {
      Number(value: value).queue(on: central)
      clock.advance(by: .seconds(3))
    }
    // Their ages are 9, 6 and 3 seconds.
    pump.run()
    #expect(log.take() == ["pump 2", "listener 2"])
    Number(value: 3).queue(on: central)
    clock.advance(by: .seconds(5))
    pump.run()
    #expect(log.take() == ["listener 3"])
    #expect(pump.statistics.skipped == 2)
    pump.cancel()
    pump.run()
  }

  @Test("the deadline of a run is on the central's clock, and so is the age of what waits", arguments: cores)
  func deadlines(core: EventCentral.Core) {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock)
    let pump = EventPump(on: central)
    var handled = 0
    pump.addEventCallback { (_: Number) in
      handled += 1
      clock.advance(by: .milliseconds(1))
    }
    for value in 0..<100 { Number(value: value).queue(on: central) }
    // No event begins at the deadline or after it.
    let report = pump.run(until: central.now + .milliseconds(10))
    #expect((report.handled, report.waiting) == (10, 90))
    #expect(report.oldestAge == .milliseconds(10))
    #expect(pump.run(until: central.now).handled == 0)
    #expect(pump.run(until: central.now + .milliseconds(50), limit: 5).handled == 5)
    clock.advance(by: .seconds(1))
    #expect(pump.run(until: central.now + .nanoseconds(1)).handled == 1)
    // What is left of an instant of the system's clock counts on the central's.
    #expect(pump.run(until: ContinuousClock.now + .seconds(3600), limit: 3).handled == 3)
    #expect(pump.run(until: ContinuousClock.now).handled == 0)
    #expect(pump.run(until: .distantFuture).handled == 81)
    #expect(pump.run().oldestAge == nil)
    #expect(handled == 100)
    pump.cancel()
    pump.run()
  }

  @Test("a pump waits until a time on the central's clock", arguments: cores)
  func waiting(core: EventCentral.Core) {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock)
    let pump = EventPump(on: central)
    pump.addEventCallback { (_: Number) in }
    #expect(!pump.wait(until: central.now))
    let start = central.now
    runThread {
      _ = waitUntil { clock.sleepers == 1 }
      clock.advance(by: .seconds(5) - .nanoseconds(1))
      clock.advance(by: .nanoseconds(1))
    }
    #expect(!pump.wait(until: start + .seconds(5)))
    #expect(central.now == start + .seconds(5))
    runThread { Number().queue(on: central) }
    #expect(pump.wait(until: start + .seconds(10)))
    #expect(clock.sleepers == 0)
    pump.cancel()
    pump.run()
  }

  @Test("a drain gives up at a time on the central's clock", arguments: cores)
  func drains(core: EventCentral.Core) async {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock)
    // The system's clock is far past this deadline.
    let quick = EventThread(on: central)
    #expect(await quick.drain(until: central.now + .seconds(1)))
    await offThePool {
      for waits in [false, true] {
        let thread = EventThread(on: central)
        let hold = HeldThread(thread)
        thread.addEventCallback { (_: Number) in }
        Number().queue(on: central)
        runThread {
          if !waits { return }
          _ = waitUntil { clock.sleepers == 1 }
          clock.advance(by: .seconds(1))
        }
        #expect(!thread.drain(until: waits ? central.now + .seconds(1) : central.now))
        hold.letGo()
      }
    }
    let thread = EventThread(on: central)
    let hold = HeldThread(thread)
    async let isDrained = thread.drain(until: central.now + .seconds(1))
    _ = await yieldUntil { clock.sleepers == 1 }
    clock.advance(by: .seconds(1))
    #expect(await !isDrained)
    hold.letGo()
  }

  @Test("pools, balanced and shared, deliver the time of the central's clock", arguments: cores)
  func pools(core: EventCentral.Core) {
    final class Worker: EventThread, @unchecked Sendable {}
    for balancer: any EventPoolBalancing in [.roundRobin, .shared] {
      let clock = ManualClock()
      let central = EventCentral(core: core, clock: clock)
      let log = Log<DispatchTime>()
      let pool = EventPool<Worker>(capacity: 2, balancer: balancer, on: central) { _ in
        let worker = Worker()
        worker.addEventCallback { (_: Number, _, time) in log.append(time) }
        return worker
      }
      let start = central.now
      for _ in 0..<10 {
        Number().queue(on: central)
        clock.advance(by: .seconds(1))
      }
      #expect(pool.drain())
      #expect(log.entries.sorted() == (0..<10).map { start + .seconds($0) })
    }
  }

  @Test("a pool's scaler is asked at its interval on the central's clock", arguments: cores)
  func scalers(core: EventCentral.Core) {
    final class Worker: EventThread, @unchecked Sendable {}
    final class Asked: EventPoolScaling {
      let interval: Duration? = .seconds(10)
      let count = Atomic<Int>(0)
      var restingCapacity: Int { 0 }
      func capacity(for reading: EventPoolReading) -> Int {
        count.wrappingAdd(1, ordering: .relaxed)
        return reading.capacity
      }
    }
    let (clock, scaler) = (ManualClock(), Asked())
    let central = EventCentral(core: core, clock: clock)
    let pool = EventPool<Worker>(capacity: 1, scaler: scaler, on: central) { _ in Worker() }
    #expect(clock.sleepers == 1)
    clock.advance(by: .seconds(10) - .nanoseconds(1))
    #expect(scaler.count.load(ordering: .relaxed) == 0)
    clock.advance(by: .nanoseconds(1))
    clock.advance(by: .seconds(10))
    #expect(scaler.count.load(ordering: .relaxed) == 2)
    pool.cancel()
  }

  @Test("any clock with a Duration will do: schedules, times and drains follow it", .timeLimit(.minutes(5)), arguments: cores)
  func anyClock(core: EventCentral.Core) async {
    let clock = TurnClock()
    let central = EventCentral(core: core, clock: clock)
    let thread = EventThread(on: central)
    let log = Log<String>()
    let start = central.now
    thread.addEventCallback { (event: Number, _, time) in
      log.append("\(event.value) after \((time.uptimeNanoseconds - start.uptimeNanoseconds) / 1_000_000_000)")
    }
    Number(value: 1).scheduleQueue(after: .seconds(3), on: central)
    Number(value: 2).scheduleQueue(at: start + .seconds(1), on: central)
    let cancelled = Number(value: 3).scheduleQueue(after: .seconds(2), on: central)
    let repeated = Number(value: 4).scheduleQueue(every: .seconds(2), limit: 2, on: central)
    #expect(log.entries == [])
    clock.next()
    #expect(await yieldUntil { log.entries.count == 1 })
    #expect(cancelled.cancel())
    clock.next()
    #expect(await yieldUntil { log.entries.count == 2 })
    clock.next()
    #expect(await yieldUntil { log.entries.count == 3 })
    clock.next()
    // The state says so from the beginning of the last dispatch on.
    #expect(await yieldUntil { repeated.state == .dispatched && log.entries.count == 4 })
    #expect(await thread.drain(until: central.now + .seconds(1)))
    #expect(log.entries == ["2 after 1", "4 after 2", "1 after 3", "4 after 4"])
  }

  @Test("two centrals on one manual clock fire in the order of the deadlines", arguments: cores)
  func twoCentrals(core: EventCentral.Core) {
    let clock = ManualClock()
    let log = Log<Int>()
    let centrals = (0..<2).map { _ in EventCentral(core: core, clock: clock) }
    let direct = centrals.map { central in
      let node = EventThread(on: central)
      node.addEventCallback { (event: Number) in log.append(event.value) }
      return node
    }
    let holds = direct.map(HeldThread.init)
    for value in 0..<20 {
      Number(value: value).scheduleQueue(after: .seconds(20 - value), on: centrals[value % 2])
    }
    clock.advance(by: .seconds(5))
    #expect(centrals.map { $0.scheduleStatistics.dispatched } == [2, 3])
    clock.advance(by: .seconds(15))
    #expect(centrals.map { $0.scheduleStatistics.pending } == [0, 0])
    for hold in holds { hold.letGo() }
    for thread in direct { thread.drain() }
    #expect(log.entries.filter { $0 % 2 == 0 } == [18, 16, 14, 12, 10, 8, 6, 4, 2, 0])
    #expect(clock.sleepers == 0)
  }

  @Test("D4: schedules that race with the clock are dispatched once, by the next advance at the latest", arguments: cores)
  func racing(core: EventCentral.Core) {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock)
    let thread = EventThread(on: central)
    let count = Log<Int>()
    thread.addEventCallback { (event: Number) in count.append(event.value) }
    onThreads(3) { index in
      for value in 0..<2_000 {
        if index == 0 {
          clock.advance(by: .nanoseconds(5))
        } else {
          Number(value: value).scheduleQueue(after: .nanoseconds(value % 7), on: central)
        }
      }
    }
    clock.advance(by: .nanoseconds(7))
    #expect(central.scheduleStatistics.pending == 0)
    #expect(thread.drain())
    #expect(count.entries.count == 4_000)
  }

  /// Ends each sleep before its time.
  private struct HastyClock: Clock {
    let base = ContinuousClock()
    var now: ContinuousClock.Instant { base.now }
    var minimumResolution: Duration { base.minimumResolution }
    func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {}
  }

  @Test("a drain returns at its time, and not before, though the clock rings early", arguments: cores)
  func earlyAlarm(core: EventCentral.Core) async {
    let central = EventCentral(core: core, clock: HastyClock())
    await offThePool {
      let thread = EventThread(on: central)
      let held = HeldThread(thread)
      let deadline = central.now + .milliseconds(20)
      #expect(!thread.drain(until: deadline))
      #expect(central.now >= deadline)
      held.letGo()
      thread.join()
    }
    let listener = EventListener(on: central)
    let (entered, leave) = (Gate(), Gate())
    Number.addListener(
      nil,
      { _ in
        entered.open()
        leave.pass()
      }, executeOn: .listenerThread, on: listener)
    Number().queue(on: central)
    await offThePool { entered.pass() }
    let deadline = central.now + .milliseconds(20)
    #expect(await !listener.drain(until: deadline))
    #expect(central.now >= deadline)
    leave.open()
  }
}
