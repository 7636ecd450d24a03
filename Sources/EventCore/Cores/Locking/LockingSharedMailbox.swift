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

  func makeWorker(_ consumer: Consumer, _ strategy: EventWaitStrategy) -> any MailboxCore {
    LockingMailbox(strategy, nil, of: self)
  }

  func dropAll() { inbox.dropAll() }
}
