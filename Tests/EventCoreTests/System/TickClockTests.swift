// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("The clock of a thread that measures")
struct TickClockTests {
  /// How far a time is off at least, of which it is known that it was read between two looks at the system's clock.
  private static func error(_ time: UInt64, _ before: UInt64, _ after: UInt64) -> UInt64 {
    time < before ? before - time : time > after ? time - after : 0
  }

  @Test("D8: it shows the system's time, less than two microseconds off, and never goes back, on each of some threads")
  func exact() {
    onThreads(3) { _ in
      var clock = TickClock()
      var (last, largest, hasGoneBack) = (UInt64(0), UInt64(0), false)
      // Long enough for the rate to be known, which takes 20 milliseconds.
      let end = monotonicNanoseconds() + 100_000_000
      var before = monotonicNanoseconds()
      while before < end {
        let time = clock.now()
        let after = monotonicNanoseconds()
        largest = max(largest, Self.error(time, before, after))
        hasGoneBack = hasGoneBack || time < last
        (last, before) = (time, after)
      }
      #expect(largest < 2_000 && !hasGoneBack)
    }
  }

  @Test("D8: it is exact again after a while without a call")
  func pauses() {
    var clock = TickClock()
    for round in 0..<40 {
      for _ in 0..<1_000 { _ = clock.now() }
      let end = monotonicNanoseconds() + 2_000_000
      var before = monotonicNanoseconds()
      while before < end { before = monotonicNanoseconds() }
      let time = clock.now()
      #expect(Self.error(time, before, monotonicNanoseconds()) < 2_000, "in round \(round)")
    }
  }

  @Test("it is not before a time that it is told has passed, nor before any that it has shown since")
  func told() {
    var (clock, last) = (TickClock(), UInt64(0))
    let end = monotonicNanoseconds() + 50_000_000
    while last < end {
      let told = monotonicNanoseconds() + 500
      let time = clock.now(after: told)
      #expect(time >= told && time >= last)
      last = clock.now()
      #expect(last >= time)
    }
  }
}
