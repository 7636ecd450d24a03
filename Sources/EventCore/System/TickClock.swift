// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if URCU
  internal import CSwiftRuntime

  /// The system's clock for a thread that reads it often, at half the price: between two looks at the clock itself,
  /// which are a millisecond apart at most, it adds what the processor's counter of ticks has counted.
  ///
  /// How exact it is: a look reads clock and counter at the same moment, but for `window` ticks, and the rate is that
  /// of two stretches of ten milliseconds or more which agree to one in a thousand. So the time is less than two
  /// microseconds off (`TickClockTests`); it is 0.3 in one call of a thousand, and mostly less than 0.05. Where ticks
  /// have no constant rate, and until the rate is known, each call is a look. It never goes back. Two threads' times
  /// that are closer together than this may be in the wrong order, unless the one is told the other's (`now(after:)`).
  ///
  /// The thread's own.
  struct TickClock {
    private static let isSteady = swift_runtime_ticks_are_steady()
    /// Some 0.3 µs.
    private static let window: UInt64 = 1_000
    private static let stretch: UInt64 = 10_000_000
    /// Of a longer one the product below would overflow.
    private static let longestStretch: UInt64 = 1_000_000_000

    private var ticks: UInt64 = 0
    private var nanoseconds: UInt64 = 0
    /// How many ticks after the last look the next one is due, and after one that could read both; 0 if the rate is
    /// not known.
    private var validity: UInt64 = 0
    private var fullValidity: UInt64 = 0
    /// Nanoseconds in 2^32 ticks; 0 if it is not known.
    private var rate: UInt64 = 0
    private var last: UInt64 = 0
    /// Where the present stretch began.
    private var first: (ticks: UInt64, nanoseconds: UInt64) = (0, 0)

    /// Nanoseconds on the scale of `monotonicNanoseconds`, not before `time`, which has passed.
    @inline(__always)
    mutating func now(after time: UInt64 = 0) -> UInt64 {
      // A counter that is behind the look, on another processor or after a sleep of the system, is far ahead here.
      let passed = swift_runtime_ticks() &- ticks
      let found = passed < validity ? nanoseconds &+ (passed &* rate) >> 32 : look()
      last = max(last, found, time)
      return last
    }

    /// What the system's clock shows, which may be before what `now` has shown.
    @inline(never)
    private mutating func look() -> UInt64 {
      let before = swift_runtime_ticks()
      let time = monotonicNanoseconds()
      // The thread may have been taken away between the two.
      if Self.isSteady, swift_runtime_ticks() &- before < Self.window {
        (ticks, nanoseconds) = (before, time)
        learnRate()
        validity = fullValidity
      } else {
        validity = 0
      }
      return time
    }

    private mutating func learnRate() {
      let stretch = nanoseconds &- first.nanoseconds
      guard stretch >= Self.stretch else { return }
      let passed = ticks &- first.ticks
      first = (ticks, nanoseconds)
      guard stretch < Self.longestStretch, passed > 0, passed < 1 << 40 else { return }
      let new = (stretch << 32) / passed
      // They do not after a sleep of the system, nor on another machine.
      let agrees = max(new, rate) &- min(new, rate) <= new >> 10
      rate = new
      fullValidity = agrees ? (1_000_000 << 32) / rate : 0
    }
  }
#else
  /// The system's clock: this build has no C, which alone can read the processor's counter.
  struct TickClock {
    private var last: UInt64 = 0

    mutating func now(after time: UInt64 = 0) -> UInt64 {
      last = max(last, time, monotonicNanoseconds())
      return last
    }
  }
#endif
