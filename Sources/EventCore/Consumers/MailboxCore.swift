// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The seam between the module and its two cores: ten lanes with one consumer (D1 to D3).
protocol MailboxCore: AnyObject, Sendable {
  /// Makes what the mailbox needs to deliver events of one type. `receiver` lives as long as the
  /// mailbox.
  func addSubscription(_ receiver: Receiver) -> Subscription

  /// The same for a handler that wants only the newest of the waiting events: one waits at most, in
  /// the place of the oldest of its lane. Until `removeLatestSubscription`.
  func addLatestSubscription(_ receiver: Receiver) -> Subscription

  /// Lets go of such a subscription, once no router has it. What waits is still delivered.
  func removeLatestSubscription(_ subscription: Subscription)

  /// Events of such a subscription that a newer one took the place of; of all there ever were.
  func supersededCount(of subscription: Subscription) -> UInt64
  var supersededCount: UInt64 { get }

  /// Delivers until the mailbox closes. The consumer's thread.
  func run(_ consumer: Consumer)

  /// Delivers up to `limit` events on the calling thread; one pump at a time. Only of a mailbox
  /// that was made with a `ConsumerPump`, which it wakes when it is armed and gets something to do,
  /// once for each arming; a new one is armed.
  func pump(_ consumer: Consumer, limit: Int) -> PumpResult

  /// Lets a worker take from its shared mailbox from now on. Any thread.
  func admit()

  /// Has the consumer's `control()` called between two events, at once if it sleeps. Any thread.
  func interrupt()

  /// Refuses later posts; what waits is dropped and counted. Any thread.
  func close()

  /// Refuses later posts; what waits is handled first. Any thread.
  func closeWhenEmpty()

  /// How many events wait in a lane. Any thread.
  func depths() -> [Int]

  /// Events taken, and events freed unhandled because the mailbox closed. Any thread.
  func counts() -> (taken: UInt64, dropped: UInt64)
}

/// What a pump came to.
enum PumpResult {
  /// The limit was reached: more may wait.
  case more
  /// Nothing is left, and the mailbox is armed.
  case dry
  /// The mailbox was closed, and everything is handled or dropped.
  case ended
}
