// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// How much is measured: all of it, or what fits into two minutes.
struct Scale: Sendable {
  let isQuick: Bool
  /// Measured runs of each candidate, after one that does not count.
  let runs: Int
  /// What the numbers of events are divided by.
  private var divisor: Int

  init(isQuick: Bool) {
    self.isQuick = isQuick
    runs = isQuick ? 5 : 7
    divisor = isQuick ? 2 : 1
  }

  /// The same with half of the events: for the payloads beside the 24 bytes.
  var halved: Scale {
    var half = self
    half.divisor *= 2
    return half
  }

  /// Events of one run for a subject that takes tens of nanoseconds for each, and for one that
  /// takes hundreds. Powers of two, so that batches, producers and the unmeasured eighth come out
  /// even.
  func events(_ subject: Subject) -> Int {
    let isFast =
      switch subject {
      case .lockFree, .locking, .plain, .rawC, .mutexSwap: true
      default: false
      }
    return (isFast ? 1 << 20 : 1 << 17) / divisor
  }

  /// Wake-ups of one run.
  var wakes: Int { isQuick ? 500 : 2_000 }
  /// Timers that wait while others are set and cancelled; a power of two.
  var pendingTimers: Int { 1 << 20 }
  /// Timers whose lateness is noted in one run.
  var lateTimers: Int { isQuick ? 200 : 500 }
  /// Round trips of one run.
  var rounds: Int { isQuick ? 100_000 : 400_000 }
  /// Events of one run whose handlers take a microsecond.
  var pooledEvents: Int { (1 << 17) / divisor }
  /// Events of one run that come one by one, 20,000 a second.
  var pacedEvents: Int { isQuick ? 5_000 : 10_000 }
}
