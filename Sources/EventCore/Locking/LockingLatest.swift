// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The way into a locking mailbox for a subscription of which one event waits at most: the newest.
/// It lies in a slot; what goes into the mailbox is a token, at most one for each lane, which tells
/// the consumer where in the lanes to look into the slot.
///
/// Routers hold it, and it holds the mailbox; tokens hold the slot alone, since they lie in the
/// mailbox.
final class LockingLatest: LockingSink {
  let subscription: LockingSubscription
  let slot: LockingLatestSlot
  private let mailbox: any LockingLatestMailbox

  init(_ subscription: LockingSubscription, _ mailbox: any LockingLatestMailbox) {
    self.mailbox = mailbox
    self.subscription = subscription
    slot = LockingLatestSlot(subscription)
    subscription.setSink(self)
  }

  func post(_ first: UnsafeMutableRawPointer, _ last: UnsafeMutableRawPointer, count: Int) -> Bool {
    var old: UnsafeMutableRawPointer?
    guard mailbox.replace(in: slot, by: last, count: count, &old) else { return false }
    // Outside the lock: the end of a payload is user code.
    var returns = LockingReturns()
    var next = first
    for _ in 1..<max(1, count) {
      let envelope = next
      next = envelopeNext(envelope).unsafelyUnwrapped
      LockingEnvelope.end(envelope, payloadMoved: false, &returns)
    }
    if let old {
      LockingEnvelope.end(old, payloadMoved: false, &returns)
    }
    return true
  }
}

/// What a `LockingLatest` stands in front of.
protocol LockingLatestMailbox: AnyObject, Sendable {
  /// With its mutex held, puts `newest`, the last of `count`, into the slot, posts the token for
  /// it, if any, and counts what was superseded. False if the mailbox refuses.
  func replace(
    in slot: LockingLatestSlot, by newest: UnsafeMutableRawPointer, count: Int,
    _ old: inout UnsafeMutableRawPointer?
  ) -> Bool
}

/// The slot of a `LockingLatest`, with its tokens. Everything is guarded by the mailbox's monitor,
/// but for the link of a token, which is its holder's.
final class LockingLatestSlot: @unchecked Sendable {
  var superseded: UInt64 = 0
  private let subscription: LockingSubscription
  private var envelope: UnsafeMutableRawPointer?
  /// One bit for each lane whose token is in the mailbox.
  private var posted: UInt32 = 0
  private let tokens: UnsafeMutableRawPointer

  init(_ subscription: LockingSubscription) {
    self.subscription = subscription
    tokens = .allocate(
      byteCount: Lane.count * EnvelopeLayout.size, alignment: EnvelopeLayout.size)
    for lane in 0..<Lane.count {
      let token = tokens + lane * EnvelopeLayout.size
      token.storeBytes(of: UInt8(lane), toByteOffset: EnvelopeLayout.lane, as: UInt8.self)
      token.storeBytes(
        of: EnvelopeLayout.token, toByteOffset: EnvelopeLayout.flags, as: UInt8.self)
      token.storeBytes(
        of: Unmanaged.passUnretained(self).toOpaque(), toByteOffset: EnvelopeLayout.payload,
        as: UnsafeMutableRawPointer.self)
    }
  }

  deinit {
    // The slot is empty: what was in it had a token to come, which held us.
    tokens.deallocate()
  }

  /// Puts the newest of `count` envelopes in. Returns the one that was there, and the token to
  /// post, if any; adds what was superseded to the mailbox's figure too.
  func replace(
    _ newest: UnsafeMutableRawPointer, count: Int, _ total: inout UInt64
  ) -> (old: UnsafeMutableRawPointer?, token: UnsafeMutableRawPointer?) {
    let old = envelope
    envelope = newest
    superseded += UInt64(count - 1 + (old == nil ? 0 : 1))
    total += UInt64(count - 1 + (old == nil ? 0 : 1))
    let lane = LockingEnvelope.lane(newest)
    guard posted & (1 << lane) == 0 else { return (old, nil) }
    posted |= 1 << lane
    // Ended by whoever takes the token, when the event has ended.
    _ = Unmanaged.passRetained(self)
    let token = tokens + lane * EnvelopeLayout.size
    setEnvelopeNext(token, nil)
    return (old, token)
  }

  /// A token of a lane has left the mailbox: the event it stands for, or nil.
  ///
  /// `anyLane`: also an event of a later lane, which otherwise waits for its own token.
  func take(_ lane: Int, anyLane: Bool) -> UnsafeMutableRawPointer? {
    posted &= ~(1 << lane)
    guard let event = envelope, anyLane || LockingEnvelope.lane(event) <= lane else { return nil }
    envelope = nil
    return event
  }

  /// The slot that a token is of, with the token's reference; nil for an event.
  static func of(_ envelope: UnsafeMutableRawPointer) -> Unmanaged<LockingLatestSlot>? {
    guard
      envelope.load(fromByteOffset: EnvelopeLayout.flags, as: UInt8.self) & EnvelopeLayout.token
        != 0
    else { return nil }
    return Unmanaged.fromOpaque(
      envelope.load(fromByteOffset: EnvelopeLayout.payload, as: UnsafeMutableRawPointer.self))
  }
}

extension LockingMailbox: LockingLatestMailbox {
  func replace(
    in slot: LockingLatestSlot, by newest: UnsafeMutableRawPointer, count: Int,
    _ old: inout UnsafeMutableRawPointer?
  ) -> Bool {
    var wakes = false
    let isAccepted = withLock { shared in
      guard !shared.refuses else { return false }
      let token: UnsafeMutableRawPointer?
      (old, token) = slot.replace(newest, count: count, &shared.superseded)
      if let token {
        wakes = append(token, token, count: 1, &shared)
      }
      return true
    }
    if wakes { pump?.wake() }
    return isAccepted
  }

  func addLatestSubscription(_ receiver: Receiver) -> Subscription {
    let latest = LockingLatest(LockingSubscription(receiver), self)
    let pointer = Unmanaged.passUnretained(latest.subscription).toOpaque()
    withLock { $0.latests[pointer] = latest }
    return Subscription(pointer: pointer)
  }

  func removeLatestSubscription(_ subscription: Subscription) {
    // Ends outside the lock.
    let latest = withLock { $0.latests.removeValue(forKey: subscription.pointer) }
    withExtendedLifetime(latest) {}
  }

  func supersededCount(of subscription: Subscription) -> UInt64 {
    withLock { $0.latests[subscription.pointer]?.slot.superseded ?? 0 }
  }

  var supersededCount: UInt64 { withLock { $0.superseded } }
}
