// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

// How a consumer ends, and whether it has. Any thread.
extension Consumer {
  /// Unsubscribes the consumer, and closes the mailbox. `whenEmpty`: what waits is handled first, and not dropped.
  func close(whenEmpty: Bool) {
    if whenEmpty {
      refuse()
      return mailbox.closeWhenEmpty()
    }
    registry.close()
    mailbox.close()
    pump?.end()
    guests.value?.closeMailboxes(whenEmpty: false)
  }

  /// Unsubscribes the consumer, and leaves its mailbox open: for a worker, which goes on to take what waits in a shared
  /// mailbox that was closed, ends with that, and must not be kept by what it sends to itself.
  func refuse() {
    // Guests first, so that none is refused because of its host without being known to drain itself.
    guests.value?.closeMailboxes(whenEmpty: true)
    registry.close(whenEmpty: true)
  }

  /// False once it was closed.
  var isOpen: Bool { registry.isOpen }

  /// The same, but true also while it handles what waits before its end, and after that until it is closed at once.
  var delivers: Bool { registry.delivers }

  /// Whether it takes nothing more, and still handles what waits.
  var isDraining: Bool { registry.phase.isDraining && !ended.isOpen }

  /// Whether it has jobs alone, and everything that was dispatched before is handled. In this order: what is taken
  /// between the two looks has a thread drive it at the second, unless it is handled by then. Any thread.
  var isIdle: Bool {
    guard waiting == 0 else { return false }
    // Between the count of what was taken and the state: pairs with the fence of a thread that begins to drive, between
    // its state and what it takes and counts (`ConsumerPump.claim`).
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    return pump?.isIdle == true
  }

  /// Closes it, and ends it on the calling thread if it is idle then, as one that has handled what waits: calls that its
  /// task has taken and not begun are made. Any thread.
  ///
  /// - Returns: Whether it was idle. If not, whatever drives it ends it, or who has borrowed it.
  func closeAndEndIfIdle() -> Bool {
    // Closed before the look: what was accepted until then is found, and handled.
    close(whenEmpty: true)
    return endIfDrained()
  }

  /// Ends it on the calling thread if it was closed to handle what waits, and has. Any thread: one that closes it and then
  /// looks, or one that gives it back and then looks. The mutex of the registry and the state of the pump order the two.
  @discardableResult
  func endIfDrained() -> Bool {
    guard isDraining, isIdle else { return false }
    mailbox.close()
    pump?.end()
    return true
  }

  /// How many events were freed since it ended, without the jobs that others run or count. Any thread.
  var lostCount: UInt64 {
    // The mailbox of the C core counts a job after it has dropped it, and so after `keptJobs`.
    let (kept, dropped) = (keptJobs.load(ordering: .relaxed), mailbox.counts().dropped)
    return dropped > kept ? dropped - kept : 0
  }
}
