// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The shared mailbox in pure Swift: an inbox whose mutex also guards the inboxes of its workers'
/// own mailboxes, so that a take sees both at one moment (D1).
final class LockingSharedMailbox: SharedMailboxCore, LockingInboxOwner {
  let inbox = LockingInbox()

  deinit {
    // Workers retain their shared mailbox, so none is left.
    inbox.forgetAll()
  }

  func addSubscription(_ entry: SharedMailbox.Entry) -> Subscription {
    inbox.addSubscription(entry, drop: entry.drop)
  }

  func addLatestSubscription(_ entry: SharedMailbox.Entry) -> Subscription {
    inbox.addLatestSubscription(entry, drop: entry.drop)
  }

  func makeWorker(_ consumer: Consumer, _ strategy: EventWaitStrategy) -> any MailboxCore {
    LockingMailbox(strategy, nil, of: self)
  }

  func dropAll() { inbox.dropAll() }
  func counts() -> (taken: UInt64, dropped: UInt64) { inbox.counts() }
}

/// What the owners of inboxes have in common: a mailbox and a shared one.
protocol LockingInboxOwner {
  var inbox: LockingInbox { get }
}

extension LockingInboxOwner {
  func close() { inbox.close(drops: true) }
  func closeWhenEmpty() { inbox.close(drops: false) }
  func depths() -> [Int] { inbox.depths() }

  func removeLatestSubscription(_ subscription: Subscription) {
    // It ends after the unlock.
    let latest = inbox.withLock { inbox.state.pointee.latests.removeValue(forKey: subscription.pointer) }
    withExtendedLifetime(latest) {}
  }

  func supersededCount(of subscription: Subscription) -> UInt64 {
    inbox.withLock { inbox.state.pointee.latests[subscription.pointer]?.superseded ?? 0 }
  }

  var supersededCount: UInt64 { inbox.withLock { inbox.state.pointee.superseded } }
}
