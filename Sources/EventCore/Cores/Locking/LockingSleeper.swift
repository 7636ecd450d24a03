// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A consumer that sleeps, or may do so: then its inboxes have it in their lists. A worker has two, with one mutex.
final class LockingSleeper: @unchecked Sendable {
  // Constant.
  let monitor: Monitor
  /// Woken in place of a thread; nil if the consumer has one.
  let pump: ConsumerPump?
  // Not retained: its mailbox, which keeps both, withdraws it before they end.
  private unowned(unsafe) let inbox: LockingInbox
  private unowned(unsafe) let shared: LockingInbox?

  init(_ inbox: LockingInbox, _ shared: LockingInbox?, _ pump: ConsumerPump?) {
    (self.inbox, self.shared, self.pump) = (inbox, shared, pump)
    monitor = Monitor(inbox.mutex)
  }

  /// Has those who post wake the consumer. Locked, as the next one.
  func announce(toShared: Bool) {
    inbox.sleepers.append(self)
    if toShared { shared?.sleepers.append(self) }
  }

  /// Whoever does this for the consumer wakes it after the unlock.
  func withdraw() {
    inbox.sleepers.removeAll { $0 === self }
    shared?.sleepers.removeAll { $0 === self }
  }

  func wake() {
    if let pump { pump.wake() } else { monitor.wake() }
  }
}
