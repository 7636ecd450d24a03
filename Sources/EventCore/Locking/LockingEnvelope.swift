// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

// The envelopes of the locking core, in the layout of `EnvelopeLayout`.

/// Something that accepts envelopes of the locking core.
protocol LockingSink: AnyObject, Sendable {
  /// Takes a chain over, whose envelopes lie on one lane. False if it refuses; then the caller
  /// still owns it.
  func post(_ first: UnsafeMutableRawPointer, _ last: UnsafeMutableRawPointer, count: Int) -> Bool
}

/// What an envelope of the locking core is addressed to.
final class LockingSubscription: @unchecked Sendable {
  // Constant, once its maker is done; the target guards itself, and the sink outlives it.
  /// Who handles it: a `Receiver`, or at a shared mailbox a `SharedMailbox.Entry`.
  private let target: AnyObject
  /// Ends a payload; nil for types without references.
  let drop: ((UnsafeMutableRawPointer) -> Void)?
  // Not retained: the sink owns its subscriptions, and a snapshot retains both.
  private(set) unowned(unsafe) var sink: (any LockingSink)!

  init(_ receiver: Receiver, _ sink: any LockingSink) {
    target = receiver
    drop = receiver.drop
    self.sink = sink
  }

  /// For a sink that is made with its subscription: see `setSink`.
  init(_ receiver: Receiver) {
    target = receiver
    drop = receiver.drop
  }

  /// The same at a shared mailbox.
  init(_ entry: SharedMailbox.Entry) {
    target = entry
    drop = entry.drop
  }

  /// Once, before anybody else knows the subscription.
  func setSink(_ sink: any LockingSink) {
    self.sink = sink
  }

  init(_ entry: SharedMailbox.Entry, _ sink: any LockingSink) {
    target = entry
    drop = entry.drop
    self.sink = sink
  }

  /// Of a sink that addresses anew what it accepts, and handles nothing.
  init(drop: ((UnsafeMutableRawPointer) -> Void)?, _ sink: any LockingSink) {
    target = LockingSubscription.nobody
    self.drop = drop
    self.sink = sink
  }

  private static let nobody = Nobody()
  private final class Nobody: Sendable {}

  static func of(_ subscription: Subscription) -> LockingSubscription {
    Unmanaged<LockingSubscription>.fromOpaque(subscription.pointer).takeUnretainedValue()
  }

  /// Only of a subscription that was made with one.
  var receiver: Receiver { unsafeDowncast(target, to: Receiver.self) }
  /// Only of a subscription that was made with one.
  var entry: SharedMailbox.Entry { unsafeDowncast(target, to: SharedMailbox.Entry.self) }
}

enum LockingEnvelope {
  /// Makes an envelope without a payload.
  static func make(
    _ entry: LockingSnapshot.Entry, lane: UInt8, time: UInt64, box: UnsafeMutableRawPointer?
  ) -> UnsafeMutableRawPointer {
    let envelope = LockingPool.shared.take()
    setEnvelopeNext(envelope, nil)
    envelope.storeBytes(
      of: Unmanaged.passUnretained(entry.subscription).toOpaque(),
      toByteOffset: EnvelopeLayout.subscription, as: UnsafeMutableRawPointer.self)
    envelope.storeBytes(of: time, toByteOffset: EnvelopeLayout.time, as: UInt64.self)
    envelope.storeBytes(
      of: entry.generation, toByteOffset: EnvelopeLayout.generation, as: UInt32.self)
    envelope.storeBytes(of: lane, toByteOffset: EnvelopeLayout.lane, as: UInt8.self)
    envelope.storeBytes(
      of: box == nil ? 0 : EnvelopeLayout.boxed, toByteOffset: EnvelopeLayout.flags, as: UInt8.self)
    if let box {
      envelope.storeBytes(
        of: box, toByteOffset: EnvelopeLayout.payload, as: UnsafeMutableRawPointer.self)
    }
    return envelope
  }

  /// Makes a box for a payload that does not fit into an envelope.
  static func makeBox(size: Int, alignment: Int, references: UInt32) -> UnsafeMutableRawPointer {
    let offset = max(EnvelopeLayout.boxHeader, alignment)
    let box = UnsafeMutableRawPointer.allocate(byteCount: offset + size, alignment: offset)
    box.initializeMemory(as: UInt32.self, repeating: references, count: 1)
    box.storeBytes(of: UInt32(offset), toByteOffset: EnvelopeLayout.boxOffset, as: UInt32.self)
    return box
  }

  /// Addresses an envelope to another subscription, on its way.
  static func readdress(
    _ envelope: UnsafeMutableRawPointer, _ subscription: LockingSubscription, _ generation: UInt32,
    timed: Bool
  ) {
    envelope.storeBytes(
      of: Unmanaged.passUnretained(subscription).toOpaque(),
      toByteOffset: EnvelopeLayout.subscription, as: UnsafeMutableRawPointer.self)
    envelope.storeBytes(of: generation, toByteOffset: EnvelopeLayout.generation, as: UInt32.self)
    // Nobody asked for the time when the dispatch began; it has not returned yet (D8).
    if timed, envelope.load(fromByteOffset: EnvelopeLayout.time, as: UInt64.self) == 0 {
      envelope.storeBytes(
        of: monotonicNanoseconds(), toByteOffset: EnvelopeLayout.time, as: UInt64.self)
    }
  }

  static func lane(_ envelope: UnsafeMutableRawPointer) -> Int {
    Int(envelope.load(fromByteOffset: EnvelopeLayout.lane, as: UInt8.self))
  }

  static func subscription(_ envelope: UnsafeMutableRawPointer) -> Unmanaged<LockingSubscription> {
    Unmanaged.fromOpaque(
      envelope.load(fromByteOffset: EnvelopeLayout.subscription, as: UnsafeMutableRawPointer.self))
  }

  static func receiver(_ envelope: UnsafeMutableRawPointer) -> Unmanaged<Receiver> {
    subscription(envelope)._withUnsafeGuaranteedRef { Unmanaged.passUnretained($0.receiver) }
  }

  private static func box(_ envelope: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
    guard
      envelope.load(fromByteOffset: EnvelopeLayout.flags, as: UInt8.self) & EnvelopeLayout.boxed
        != 0
    else { return nil }
    return envelope.load(
      fromByteOffset: EnvelopeLayout.payload, as: UnsafeMutableRawPointer.self)
  }

  private static func references(
    _ box: UnsafeMutableRawPointer
  ) -> UnsafeMutablePointer<Atomic<UInt32>> {
    box.assumingMemoryBound(to: Atomic<UInt32>.self)
  }

  /// Whether no other envelope shares the payload.
  static func ownsPayload(_ envelope: UnsafeMutableRawPointer) -> Bool {
    guard let box = box(envelope) else { return true }
    // Pairs with the count-down in `end`: the others' reads before our move.
    return references(box).pointee.load(ordering: .acquiring) == 1
  }

  /// Ends the payload unless it was moved out, and frees envelope and box.
  static func end(
    _ envelope: UnsafeMutableRawPointer, payloadMoved: Bool, _ returns: inout LockingReturns
  ) {
    let subscription = subscription(envelope)
    if let box = box(envelope) {
      // Pairs with itself and with `ownsPayload`.
      if references(box).pointee.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0
      {
        if !payloadMoved {
          subscription._withUnsafeGuaranteedRef { $0.drop?(envelopePayload(envelope)) }
        }
        box.deallocate()
      }
    } else if !payloadMoved {
      subscription._withUnsafeGuaranteedRef { $0.drop?(envelopePayload(envelope)) }
    }
    returns.give(envelope)
  }
}
