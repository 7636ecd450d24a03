// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What a sink did with a record.
enum LockingFate {
  /// The sink has it. In the second case it took the place of one that waited.
  case accepted, displacing
  /// Accepted, but another one is left in its memory for the caller to end: the one that it replaced, or itself.
  case superseded
  /// The caller ends it. In the last case the sink had closed.
  case dropped, refused, ended
}

/// A post of some records of one dispatch to one receiver.
struct LockingPost {
  /// Ends a payload. Not taken from the records, whose subscriptions may be gone.
  let drop: ((UnsafeMutableRawPointer) -> Void)?
  /// Until when it waits for places, once it has to.
  var deadline: UInt64?
  /// What has become of its records so far.
  var outcome = EventDispatchOutcome()

  init(drop: ((UnsafeMutableRawPointer) -> Void)?) { self.drop = drop }

  /// Whether a record of it found its receiver open.
  var hasBegun: Bool { outcome.accepted + outcome.dropped + outcome.refused > 0 }

  /// Counts what became of a record, and ends what is left of it, which is code of the user's.
  mutating func finish(_ record: LockingRecord, _ fate: LockingFate) {
    switch fate {
    case .accepted, .superseded: outcome.accepted += 1
    case .displacing: (outcome.accepted, outcome.displaced) = (outcome.accepted + 1, outcome.displaced + 1)
    case .dropped: outcome.dropped += 1
    case .refused: outcome.refused += 1
    case .ended: outcome.ended += 1
    }
    if fate != .accepted, fate != .displacing { record.end(drop) }
  }
}

/// Something that accepts records.
class LockingSink: @unchecked Sendable {
  // It has no state; its subclasses guard theirs.

  /// Takes over records of one lane, or ends them.
  func post(_ run: LockingRun, _ post: inout LockingPost) {
    for index in 0..<run.count { post.finish(run[index], place(run[index], &post)) }
  }

  /// Takes one record over, if the fate says so.
  func place(_ record: LockingRecord, _ post: inout LockingPost) -> LockingFate { .ended }

  /// Has the consumer call `control` soon: an event that was promised to it went for nothing (`EventLoad.lose`).
  func lookAgain() {}
}

/// Whoever handles records: a receiver, or at a shared mailbox an entry of that.
protocol LockingTarget: AnyObject {
  var drop: (@Sendable (UnsafeMutableRawPointer) -> Void)? { get }
  /// Tells the keys of its events apart; nil if it does not ask for the newest of each.
  var keys: ConflationKeys? { get }
}
extension Receiver: LockingTarget {}
extension SharedMailbox.Entry: LockingTarget {}

/// What a record is addressed to.
final class LockingSubscription: @unchecked Sendable {
  // Everything is constant but `met`, which is the consumer's; the target guards itself.
  private let target: AnyObject?
  /// The address of the target, which is read without counting a reference.
  private let address: UnsafeMutableRawPointer?
  let isShared: Bool
  /// Whether its records have no place in a bounded inbox, and find it never full.
  let isUnbounded: Bool
  /// Ends a payload; nil for types without references.
  let drop: ((UnsafeMutableRawPointer) -> Void)?
  /// Not retained, unless it is in `latest`: it owns this subscription, or is the gate of what does.
  unowned(unsafe) let sink: LockingSink
  /// The sink, if the subscription is latest-only or conflated.
  let latest: LockingLatest?
  /// What a run has `known` when it handled one of its events (`LockingStretch.meet`).
  @exclusivity(unchecked) var met: UInt64 = 0

  /// - Parameter target: Nil for a sink that addresses anew what it accepts.
  init(
    _ target: (any LockingTarget)?, drop: ((UnsafeMutableRawPointer) -> Void)?, _ sink: LockingSink
  ) {
    self.target = target
    address = self.target.map { Unmanaged.passUnretained($0).toOpaque() }
    isShared = target is SharedMailbox.Entry
    isUnbounded = (target as? Receiver)?.isUnbounded ?? false
    self.drop = drop
    self.sink = sink
    latest = sink as? LockingLatest
  }

  static func of(_ subscription: Subscription) -> LockingSubscription {
    Unmanaged<LockingSubscription>.fromOpaque(subscription.pointer).takeUnretainedValue()
  }

  /// As the module names it.
  var name: Subscription { Subscription(pointer: Unmanaged.passUnretained(self).toOpaque()) }

  // Neither is asked of a subscription without a target, whose records are addressed anew before they wait.

  /// The target, if it is a receiver.
  var receiver: Unmanaged<Receiver> { .fromOpaque(address.unsafelyUnwrapped) }
  /// The target, if it is an entry of a shared mailbox (`isShared`).
  var entry: Unmanaged<SharedMailbox.Entry> { .fromOpaque(address.unsafelyUnwrapped) }
}
