// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The shared mailbox in pure Swift: an inbox whose mutex also guards the inboxes of its workers' own
/// mailboxes, so that a take sees both at one moment (D1).
final class LockingSharedMailbox: SharedMailboxCore, LockingInboxOwner {
  let inbox: LockingInbox

  init(_ capacity: EventMailboxCapacity) {
    inbox = LockingInbox(capacity)
  }

  deinit {
    // Workers retain their shared mailbox, so none is left.
    inbox.forgetAll()
  }

  func makeWorker(_ consumer: Consumer, _ strategy: EventWaitStrategy) -> any MailboxCore {
    LockingMailbox(strategy, .unbounded, nil, of: self)
  }

  func dropAll() { inbox.dropAll() }
}

/// What the owners of inboxes have in common: a mailbox and a shared one.
protocol LockingInboxOwner {
  var inbox: LockingInbox { get }
}

extension LockingInboxOwner {
  func close() { inbox.close(drops: true) }
  func closeWhenEmpty() { inbox.close(drops: false) }

  func addSubscription(_ target: some LockingTarget) -> Subscription { add(target, inbox) }
  func addLatestSubscription(_ target: some LockingTarget) -> Subscription {
    add(target, LockingLatest(inbox, target.keys))
  }

  private func add(_ target: some LockingTarget, _ sink: LockingSink) -> Subscription {
    let subscription = LockingSubscription(target, drop: target.drop, sink)
    subscription.latest?.subscription = .passUnretained(subscription)
    inbox.withLock { inbox.subscriptions[subscription.name.pointer] = subscription }
    return subscription.name
  }

  func removeLatestSubscription(_ subscription: Subscription) {
    let removed = inbox.withLock {
      let removed = inbox.subscriptions.removeValue(forKey: subscription.pointer)
      removed?.latest?.remove()
      return removed
    }
    // It ends after the unlock.
    removed?.latest?.letKeysGo()
  }

  var supersededCount: UInt64 { inbox.withLock { inbox.superseded } }
  func supersededCount(of subscription: Subscription) -> UInt64 {
    inbox.withLock { inbox.subscriptions[subscription.pointer]?.latest?.superseded ?? 0 }
  }

  var overflow: OverflowCounts { inbox.withLock { inbox.bound?.counts ?? OverflowCounts() } }

  func depths() -> [Int] {
    let posted = inbox.withLock { (0..<Lane.count).map { inbox.lanes[$0].pointee.posted } }
    // Relaxed: a momentary figure. Read after `posted`, so that it may be a little ahead of it.
    return posted.enumerated().map { lane, posted in
      let taken = UInt32(truncatingIfNeeded: inbox.taken[lane].load(ordering: .relaxed))
      return max(0, Int(Int32(bitPattern: posted &- taken)))
    }
  }

  func counts() -> (taken: UInt64, dropped: UInt64) {
    let dropped = inbox.withLock { inbox.dropped }
    let all = (0..<Lane.count).reduce(0) { $0 + inbox.taken[$1].load(ordering: .relaxed) }
    return (all - dropped, dropped)
  }
}
