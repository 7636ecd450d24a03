// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import Synchronization

/// Asks a pool's scaler at its interval, as long as the pool has something to do: no thread of its
/// own, and no timer while the pool rests.
///
/// Falling asleep, and the wake-up that must not be missed:
///
///     thread of the pool                     ticker
///     W1 promise, or `since`   seq_cst RMW   T1 isAwake = false     seq_cst
///     W2 load isAwake          seq_cst       T2 look at all loads   seq_cst
///     W3 if false: exchange true, schedule   T3 if one is busy: as W3
///
/// In the single order of these, either W2 follows T1 and wakes, or T2 follows W1 and sees the
/// work.
final class PoolTicker: Sendable {
  private let isAwake = Atomic<Bool>(false)
  private let interval: DispatchTimeInterval
  private let queue = DispatchQueue.global(qos: .utility)
  private let pool: Box

  /// The pool, which the ticker does not keep alive.
  private final class Box: @unchecked Sendable {
    // Written once, by `watch`, before the pool has a thread.
    weak var core: (any PoolTicked)?
  }

  init(every interval: Duration) {
    let nanoseconds = interval.wholeNanoseconds
    require(
      interval > .zero && nanoseconds <= Int.max,
      """
      A scaler's interval is more than zero and less than 292 years, and this one is \(interval): give it another, \
      or nil to be asked by rescale() alone.
      """)
    self.interval = .nanoseconds(Int(nanoseconds))
    pool = Box()
  }

  func watch(_ core: any PoolTicked) {
    pool.core = core
  }

  /// A thread of the pool begins to handle an event.
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
    // Not retained: a pool that is released is not asked any more.
    queue.asyncAfter(deadline: .now() + interval) { [weak self] in self?.tick() }
  }

  private func tick() {
    guard let core = pool.core else { return }
    core.rescale()
    guard core.isAtRest else { return schedule() }
    // T1, T2, T3.
    isAwake.store(false, ordering: .sequentiallyConsistent)
    if !core.isAtRest {
      wake()
    }
  }
}

/// What a ticker asks: a pool.
protocol PoolTicked: AnyObject, Sendable {
  /// Has as many threads as it ought to.
  func rescale()
  /// Whether there is nothing to do, with no more threads than it rests with.
  var isAtRest: Bool { get }
}
