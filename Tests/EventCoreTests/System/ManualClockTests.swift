// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("A manual clock by itself")
struct ManualClockTests {
  @Test("its instants are as far apart as the durations between them")
  func instants() {
    let now = ManualClock().now
    for nanoseconds in [0, 1, 999_999_999, 1_000_000_000, 1_234_567_890_123] {
      let duration = Duration.nanoseconds(nanoseconds)
      #expect(now.duration(to: now.advanced(by: duration)) == duration)
      #expect(now.advanced(by: duration).duration(to: now) == .zero - duration)
      #expect(now.advanced(by: .zero - duration).advanced(by: duration) == now || nanoseconds > 1_000_000_000_000)
    }
    // Rounded up: a deadline is never early.
    #expect(now.advanced(by: Duration(secondsComponent: 0, attosecondsComponent: 1)) == now.advanced(by: .nanoseconds(1)))
    #expect(now < now.advanced(by: .nanoseconds(1)))
    // The ends of the range stand still.
    #expect(now.advanced(by: .seconds(Int64.max)) == now.advanced(by: .seconds(Int64.max)).advanced(by: .seconds(1)))
    #expect(now.advanced(by: .seconds(-2_000)) == now.advanced(by: .seconds(-1_000)))
  }

  @Test("a task sleeps until the clock has been moved, and not a nanosecond less", .timeLimit(.minutes(5)))
  func sleep() async throws {
    let (clock, log) = (ManualClock(), Log<Int>())
    let start = clock.now
    try await clock.sleep(until: start)
    try await clock.sleep(until: start.advanced(by: .seconds(-1)))
    let task = Task {
      try await clock.sleep(for: .seconds(10))
      log.append(1)
    }
    #expect(await yieldUntil { clock.sleepers == 1 })
    clock.advance(by: .seconds(10) - .nanoseconds(1))
    #expect(clock.sleepers == 1)
    clock.advance(by: .nanoseconds(1))
    try await task.value
    #expect(log.entries == [1])
    #expect(clock.sleepers == 0)
    #expect(start.duration(to: clock.now) == .seconds(10))
  }

  @Test("a task that is cancelled stops sleeping", .timeLimit(.minutes(5)))
  func cancelledSleep() async {
    let clock = ManualClock()
    let task = Task { try await clock.sleep(for: .seconds(10)) }
    #expect(await yieldUntil { clock.sleepers == 1 })
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(clock.sleepers == 0)
  }

  @Test("alarms ring in the order of their times, equal ones in the order in which they were set, and none when cancelled")
  func alarms() {
    var random = SeededRandom(seed: announcedSeed("alarms"))
    let (clock, log) = (ManualClock(), Log<Int>())
    let start = clock.nanoseconds
    var expected: [(time: UInt64, number: Int)] = []
    for number in 0..<500 {
      let time = start + UInt64.random(in: 0..<100, using: &random)
      let cancel = clock.alarm(at: time) { log.append(number) }
      if Bool.random(using: &random) { expected.append((time, number)) } else { cancel() }
    }
    expected.sort { ($0.time, $0.number) < ($1.time, $1.number) }
    for step in [UInt64(0), 17, 1, 40, 100] {
      clock.advance(by: .nanoseconds(Int64(step)))
      #expect(log.entries == expected.prefix { $0.time <= clock.nanoseconds }.map(\.number))
    }
  }

  @Test("an alarm may move the clock, and set and cancel alarms")
  func reentry() {
    let (clock, log) = (ManualClock(), Log<String>())
    let start = clock.nanoseconds
    let last = clock.alarm(at: start + 30) { log.append("cancelled") }
    _ = clock.alarm(at: start + 10) {
      log.append("first")
      last()
      _ = clock.alarm(at: start + 20) { log.append("third") }
      clock.advance(by: .nanoseconds(5))
    }
    _ = clock.alarm(at: start + 15) { log.append("second") }
    clock.advance(by: .nanoseconds(10))
    #expect(log.entries == ["first", "second"])
    clock.advance(by: .nanoseconds(85))
    #expect(log.entries == ["first", "second", "third"])
  }

  @Test("what two threads move it by at once adds up, and it goes back for neither")
  func together() {
    let clock = ManualClock()
    let start = clock.now
    onThreads(2) { _ in
      var (last, steps) = (clock.now, 0)
      for _ in 0..<100_000 {
        clock.advance(by: .nanoseconds(1))
        let now = clock.now
        if now > last { steps += 1 }
        last = now
      }
      #expect(steps == 100_000)
    }
    #expect(start.duration(to: clock.now) == .nanoseconds(200_000))
    clock.advance(to: CentralClock.start)
    #expect(start.duration(to: clock.now) == .nanoseconds(200_000))
  }

  @Test("a clock that has reached its end has not reached the time that never comes", arguments: cores)
  func end(core: EventCentral.Core) {
    struct Ping: Eventable {}
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock)
    let never = Ping().scheduleQueue(at: .distantFuture, on: central)
    let ticks = Ping().scheduleQueue(every: .seconds(1), on: central)
    clock.advance(by: .seconds(Int64.max))
    clock.advance(to: .max)
    #expect(never.state == .waiting)
    #expect(waitUntil { ticks.dispatches == 1 })
    #expect(never.cancel() && ticks.cancel())
    #expect(central.scheduleStatistics.pending == 0)
  }

  @Test("D12: a clock that is to go back traps")
  func back() async {
    await #expect(processExitsWith: .failure) { ManualClock().advance(by: .nanoseconds(-1)) }
  }
}
