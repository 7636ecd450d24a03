// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What an event thread does while nothing waits for it.
public enum EventWaitStrategy: Sendable, Equatable {
  /// Sleeps, after it has spun for a few microseconds. An idle thread takes no processor time.
  case park
  /// Spins for this long before it sleeps. An event that comes within that time costs no wake-up.
  case spinThenPark(Duration)
  /// Never sleeps, and offers the processor to other threads between two checks.
  case yield
  /// Never sleeps: the shortest latency, for a processor that is busy all the time.
  case spin

  /// Nanoseconds for which `.park` spins; a wake-up costs several times as much.
  private static let shortSpin: UInt64 = 4_000

  /// Nanoseconds to spin before sleeping; nil if the strategy never sleeps.
  var spinNanoseconds: UInt64? {
    switch self {
    case .park: return Self.shortSpin
    case .spinThenPark(let limit): return limit.wholeNanoseconds
    case .yield, .spin: return nil
    }
  }
}
