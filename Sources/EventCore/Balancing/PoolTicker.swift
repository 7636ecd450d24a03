// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import Synchronization

/// Asks a pool's scaler at its interval while the pool is busy. It has no thread, and no timer at rest.
///
/// How it stops without missing work:
///
///     thread of the pool                     ticker
///     W1 promise, or `since`   seq_cst       T1 isAwake = false     seq_cst
///     W2 load isAwake          seq_cst       T2 look at all loads   seq_cst
///     W3 if false: exchange true, schedule   T3 if one is busy: as W3
///
/// In the single total order of these operations, either W2 follows T1 and wakes the ticker, or T2 follows
/// W1 and sees the work. A thread that has ended leaves the pool under its mutex, which T2 takes, too, and then goes
/// to W3: either T2 misses the thread, or the exchange follows T1 and wakes the ticker.
final class PoolTicker: @unchecked Sendable {
  // `watch` writes `pool` once, before the pool has a thread; everything else is atomic or constant.

  private let isAwake = Atomic<Bool>(false)
  private let interval: Duration
  /// Nil for the system's.
  private let clock: CentralClock?
  private let queue = DispatchQueue.global(qos: .utility)
  private weak var pool: (any PoolTicked)?

  init(every interval: Duration, by clock: CentralClock?) {
    let nanoseconds = interval.wholeNanoseconds
    require(
      interval > .zero && nanoseconds <= Int64.max,
      """
      A scaler's interval is more than zero and less than 292 years, and this one is \(interval): give it \
      another, or nil to be asked by rescale() alone.
      """)
    self.interval = interval
    self.clock = clock
  }

  func watch(_ pool: any PoolTicked) {
    self.pool = pool
  }

  /// Called by a thread of the pool that begins to handle an event.
  @inline(__always)
  func noteWork() {
    // W2.
    if !isAwake.load(ordering: .sequentiallyConsistent) {
      wake()
    }
  }

  func wake() {
    // W3.
    guard !isAwake.exchange(true, ordering: .sequentiallyConsistent) else { return }
    schedule()
  }

  private func schedule() {
    // The ticker is not retained, and so ends with its pool.
    let tick: @Sendable () -> Void = { [weak self] in self?.tick() }
    if let clock {
      _ = clock.alarm(at: later(clock.now, by: interval), tick)
    } else {
      queue.asyncAfter(deadline: .later(by: interval), execute: tick)
    }
  }

  private func tick() {
    guard let pool else { return }
    pool.rescale()
    guard pool.isAtRest else { return schedule() }
    // T1, T2, T3.
    isAwake.store(false, ordering: .sequentiallyConsistent)
    if !pool.isAtRest {
      wake()
    }
  }
}

/// A pool as its ticker sees it.
protocol PoolTicked: AnyObject, Sendable {
  /// Asks the scaler, and makes or retires threads accordingly.
  func rescale()
  /// Whether the pool is idle, has no thread that the scaler would retire, and misses none.
  var isAtRest: Bool { get }
}
