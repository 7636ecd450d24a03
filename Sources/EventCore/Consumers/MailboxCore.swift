// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What a mailbox and a shared one have in common. Any thread may call the members.
@usableFromInline
protocol MailboxBase: AnyObject, Sendable {
  /// Releases a conflated subscription that no router has any more. What waits is still delivered.
  func removeLatestSubscription(_ subscription: Subscription)

  /// Superseded events of all conflated subscriptions that there ever were.
  var supersededCount: UInt64 { get }

  /// Refuses later posts; what waits is dropped and counted.
  func close()

  /// Refuses later posts; what waits is handled first.
  func closeWhenEmpty()

  /// How many events wait in each lane; in a shared mailbox without what waits in its workers' own.
  func depths() -> [Int]

  /// Events taken, and events freed unhandled because the mailbox closed.
  func counts() -> (taken: UInt64, dropped: UInt64)

  /// What the mailbox has counted, if it is bounded.
  var overflow: OverflowCounts { get }
}

extension MailboxBase {
  var waiting: Int { depths().reduce(0, +) }

  /// Puts these counts of the mailbox together with the others.
  func statistics(_ counts: (taken: UInt64, dropped: UInt64)) -> EventMailboxStatistics {
    let (superseded, waiting, overflow) = (supersededCount, waiting, overflow)
    return EventMailboxStatistics(
      accepted: counts.taken + counts.dropped + superseded + overflow.dropped + UInt64(waiting),
      refused: overflow.refused, dropped: overflow.dropped, waiting: waiting,
      highWaterMark: Int(overflow.highWaterMark))
  }
}

/// What both cores implement for a mailbox: ten lanes with one consumer (D1 to D3). Any thread may call the
/// members, except `run` and `pump`.
@usableFromInline
protocol MailboxCore: MailboxBase {
  /// Makes a subscription whose events the mailbox delivers to `receiver`, which it retains. If it `isUnbounded`,
  /// they have no place in a bounded mailbox, and find it never full.
  func addSubscription(_ receiver: Receiver) -> Subscription

  /// The same for a conflated handler: at most one event waits, or one of each key (`Receiver.keys`), in the place of
  /// the oldest of its lane. It lasts until `removeLatestSubscription`.
  func addLatestSubscription(_ receiver: Receiver) -> Subscription

  /// Superseded events of one conflated subscription.
  func supersededCount(of subscription: Subscription) -> UInt64

  /// Delivers until the mailbox closes. The consumer's thread.
  func run(_ consumer: Consumer)

  /// Delivers up to `limit` events on the calling thread; one pump at a time. None begins after `deadline`, a
  /// time of `monotonicNanoseconds`, `.max` for none; the C core looks at the clock once a microsecond
  /// (`mailbox_pump.c`). The mailbox has a `ConsumerPump`. When it is armed, as a new one is, and gets something to
  /// do, it wakes the pump once.
  func pump(_ consumer: Consumer, limit: Int, until deadline: UInt64) -> PumpResult

  /// Says that the calling thread is the consumer until `leave`, so that what it dispatches to this mailbox
  /// need not cross the inbox; `run` and `pump` say it themselves. The consumer's thread.
  ///
  /// - Returns: What to pass to `leave`.
  func enter() -> OpaquePointer?
  func leave(_ before: OpaquePointer?)

  /// Where the consumer's own events that are dispatched through a router may be written; nil if each of them has to be
  /// dispatched. Valid as long as both.
  func openBatch(through router: any RouterCore) -> OpenBatch?

  /// Lets a worker take from its shared mailbox.
  func admit()

  /// Makes the consumer call `control()` between two events, and at once if it sleeps.
  func interrupt()
}

extension MailboxCore {
  func openBatch(through router: any RouterCore) -> OpenBatch? { nil }
}

/// The result of a pump.
@usableFromInline
enum PumpResult {
  /// The limit or the deadline was reached: more may wait.
  case more
  /// Nothing is left, and the mailbox is armed.
  case dry
  /// The mailbox was closed, and everything is handled or dropped.
  case ended
}

/// What both cores implement for a shared mailbox: ten lanes with any number of consumers. Any thread may
/// call the members.
///
/// A *worker* is a consumer that takes from two mailboxes: its own, for what is sent to it alone, and the
/// shared one. It sleeps in one place for both. For each take of each worker:
/// - D1: the event comes from the first lane that is not empty in either mailbox, as of every post that
///   returned before the take began. Of the same lane, the worker's own mailbox comes first.
/// - D2, D3: a lane of the shared mailbox is one queue or stack for all producers and workers.
/// - D4: each accepted event is taken by exactly one worker, or dropped and counted once.
///
/// Of the members of `MailboxBase`:
/// - `close` also ends all workers: each finishes its handler and closes its own mailbox.
/// - `closeWhenEmpty` lets the workers handle first what waits here, then what waits in their own mailboxes, and end. A
///   `close` ends that early. Without a worker, what waits stays until one is made, or until `dropAll`.
protocol SharedMailboxCore: MailboxBase {
  /// Makes a subscription for the events of `entry`, which the mailbox retains.
  func addSubscription(_ entry: SharedMailbox.Entry) -> Subscription

  /// The same for conflated handlers: at most one event waits for all workers together, or one of each key, in the
  /// place of the oldest of its lane. It lasts until `removeLatestSubscription`.
  func addLatestSubscription(_ entry: SharedMailbox.Entry) -> Subscription

  /// Makes the mailbox of one more worker, and retains the shared mailbox in it. It passes events from the
  /// shared mailbox to `consumer.deliverShared`. Its members are special in this:
  /// - `run` delivers from both mailboxes until either closes;
  /// - `close` and `closeWhenEmpty` end this worker alone: it takes nothing more from the shared mailbox,
  ///   finishes its handler, and drops or handles what its own mailbox holds. Another worker is woken for
  ///   what waits in the shared mailbox;
  /// - `depths` and `counts` are about its own mailbox; but `taken` counts events from either;
  /// - until `admit`, it takes from its own mailbox alone, and neither posts to the shared mailbox nor its
  ///   end wake the worker.
  func makeWorker(_ consumer: Consumer, _ strategy: EventWaitStrategy) -> any MailboxCore

  /// Frees and counts what waits in a closed mailbox without a worker.
  func dropAll()
}
