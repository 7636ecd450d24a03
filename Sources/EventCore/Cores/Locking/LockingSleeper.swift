// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A consumer that sleeps, or may do so.
final class LockingSleeper: @unchecked Sendable {
  // `isAsleep` is guarded by the mutex of its inboxes, of which a worker has two, with one mutex; the rest is
  // constant.
  let monitor: Monitor
  /// Woken in place of a thread; nil if the consumer has one.
  let pump: ConsumerPump?
  /// Whether nobody has woken it yet. Whoever clears this wakes it after the unlock.
  var isAsleep = false

  init(_ mutex: SystemMutex, _ pump: ConsumerPump?) {
    monitor = Monitor(mutex)
    self.pump = pump
  }

  func wake() {
    if let pump { pump.wake() } else { monitor.wake() }
  }
}
