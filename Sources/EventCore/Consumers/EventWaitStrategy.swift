// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What an event thread does while nothing waits for it.
public enum EventWaitStrategy: Sendable, Equatable {
  /// Sleeps, after a look of a few microseconds. An idle thread takes no processor time.
  case park
  /// Spins for this long before it sleeps, so that nobody pays for a wake-up within that time.
  case spinThenPark(Duration)
  /// Offers the processor to other threads between two looks; never sleeps.
  case yield
  /// Spins: the shortest latency, for one processor that is busy all the time.
  case spin

  /// Nanoseconds for which `.park` looks: a wake-up costs several times as much.
  private static let shortSpin: UInt64 = 4_000

  /// Nanoseconds to spin before sleeping; nil = never sleeps.
  var spinNanoseconds: UInt64? {
    switch self {
    case .park: return Self.shortSpin
    case .spinThenPark(let limit): return limit.wholeNanoseconds
    case .yield, .spin: return nil
    }
  }
}
