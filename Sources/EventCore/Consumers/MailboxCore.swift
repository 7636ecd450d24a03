// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The seam between the module and its two cores: ten lanes with one consumer (D1 to D3).
protocol MailboxCore: AnyObject, Sendable {
  /// Makes what the mailbox needs to deliver events of one type. `receiver` lives as long as the
  /// mailbox.
  func addSubscription(_ receiver: Receiver) -> Subscription

  /// The same for a handler that wants only the newest of the waiting events: one waits at most,
  /// where the oldest of its lane was. Until `removeLatestSubscription`.
  func addLatestSubscription(_ receiver: Receiver) -> Subscription

  /// Lets go of such a subscription, once no router has it. What waits is still delivered.
  func removeLatestSubscription(_ subscription: Subscription)

  /// Events of such a subscription that a newer one superseded; the second, of all there ever were.
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

/// The result of a pump.
enum PumpResult {
  /// The limit was reached: more may wait.
  case more
  /// Nothing is left, and the mailbox is armed.
  case dry
  /// The mailbox was closed, and everything is handled or dropped.
  case ended
}

/// The seam between the module and its two cores: ten lanes with any number of consumers.
///
/// A *worker* is a consumer that takes from two mailboxes: its own, for what is posted to it alone,
/// and the shared one. It has one wait point for both. Implementations: the lock-free shared
/// mailbox (C) and the locking one (Swift).
///
/// What holds, for each take of each worker:
/// - D1: the event comes from the first lane that is not empty in either mailbox, counting every
///   post to either that returned before the take began and that no other worker has taken. Of one
///   and the same lane the worker's own mailbox comes first.
/// - D2, D3: a lane of the shared mailbox is one queue or one stack for all producers and all
///   workers.
/// - D4: each accepted event is taken by exactly one worker, or dropped and counted once.
protocol SharedMailboxCore: AnyObject, Sendable {
  /// Makes what the mailbox needs to accept events of one type. `entry` lives as long as the
  /// mailbox.
  func addSubscription(_ entry: SharedMailbox.Entry) -> Subscription

  /// The same for handlers that want only the newest of the waiting events: one waits at most, for
  /// all workers together, where the oldest of its lane was. Until
  /// `removeLatestSubscription`.
  func addLatestSubscription(_ entry: SharedMailbox.Entry) -> Subscription

  /// Lets go of such a subscription, once no router has it. What waits is still delivered.
  func removeLatestSubscription(_ subscription: Subscription)

  /// Events that a newer one superseded, of all such subscriptions there ever were.
  var supersededCount: UInt64 { get }

  /// Makes the mailbox of one more worker, which delivers what it takes from here by
  /// `consumer.deliverShared`. Of its own functions:
  /// - `run` delivers from both mailboxes until either closes;
  /// - `close` and `closeWhenEmpty` end this worker alone: it takes nothing more from the shared
  ///   mailbox, finishes its handler, and drops or handles what its own mailbox holds. Nothing of
  ///   the shared mailbox is lost; a sleeping worker is woken for what waits there;
  /// - `depths` and `counts` are about its own mailbox; `taken` counts what it took from either.
  ///
  /// It takes from its own mailbox alone until `admit`, as if there were no such worker: what is
  /// posted to the shared mailbox wakes another one, and the end of that is nothing to it before
  /// then.
  ///
  /// It keeps the shared mailbox alive.
  func makeWorker(_ consumer: Consumer, _ strategy: EventWaitStrategy) -> any MailboxCore

  /// Refuses later posts, drops and counts what waits, and ends all workers: each finishes its
  /// handler and closes its own mailbox. Any thread.
  func close()

  /// Refuses later posts and has the workers handle what waits first; then each of them handles
  /// what its own mailbox holds, and ends. `close` afterwards cuts it short. Without a worker what
  /// waits stays until one is made, or until `dropAll`. Any thread.
  func closeWhenEmpty()

  /// Frees and counts what waits in a closed mailbox that has no worker: otherwise they do so. Any
  /// thread.
  func dropAll()

  /// How many events wait in a lane, not counting the workers' own. Any thread.
  func depths() -> [Int]

  /// Events that workers took from here, and events freed unhandled because the mailbox closed.
  func counts() -> (taken: UInt64, dropped: UInt64)
}
