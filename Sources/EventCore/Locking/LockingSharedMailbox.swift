// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The shared mailbox in pure Swift: an inbox whose mutex also guards the inboxes of its workers'
/// own mailboxes, so that a take sees both at one moment (D1).
final class LockingSharedMailbox: SharedMailboxCore {
  let inbox = LockingInbox()

  deinit {
    // Workers retain their shared mailbox: there is none left.
    inbox.forgetAll()
  }

  func addSubscription(_ entry: SharedMailbox.Entry) -> Subscription {
    inbox.addSubscription(entry, drop: entry.drop)
  }

  func addLatestSubscription(_ entry: SharedMailbox.Entry) -> Subscription {
    inbox.addLatestSubscription(entry, drop: entry.drop)
  }

  func removeLatestSubscription(_ subscription: Subscription) {
    inbox.removeLatestSubscription(subscription)
  }

  func makeWorker(
    _ consumer: Consumer, _ strategy: EventWaitStrategy, isHeld: Bool
  ) -> any MailboxCore {
    LockingMailbox(strategy, nil, of: self, isHeld: isHeld)
  }

  var supersededCount: UInt64 { inbox.supersededCount }
  func close() { inbox.close(drops: true) }
  func closeWhenEmpty() { inbox.close(drops: false) }
  func dropAll() { inbox.dropAll() }
  func depths() -> [Int] { inbox.depths() }
  func counts() -> (taken: UInt64, dropped: UInt64) { inbox.counts() }
}
