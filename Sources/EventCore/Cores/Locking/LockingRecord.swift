// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// One event in flight: the header of `EnvelopeLayout`, then the payload, in memory where the next record
/// follows. It is moved as bytes. A payload that is too large or too strictly aligned lies in a box, which
/// all receivers share.
struct LockingRecord {
  let address: UnsafeMutableRawPointer

  /// Laid out as `EnvelopeLayout` says; `LockingDispatchTests` compares the two.
  struct Header {
    /// The next record of a dispatch. While a post is in two steps, the inbox.
    var link: UnsafeMutableRawPointer?
    var subscription: Unmanaged<LockingSubscription>
    var time: UInt64
    var generation: UInt32
    var lane: UInt8
    /// `EnvelopeLayout.boxed`, `.token`, or 0; during a dispatch also `skipped`.
    var flags: UInt8
    /// How long the record is, with its payload, in steps of 16 bytes.
    var steps: UInt16
  }

  /// The largest payload that lies in a record; `step` is the strictest alignment of one.
  static let largestPayload = 4096
  static let step = 16

  /// Whether such a payload needs no box.
  @inline(__always)
  static func holds(_ size: Int, _ alignment: Int) -> Bool {
    size <= largestPayload && alignment <= step
  }

  /// How many bytes a record has, with a payload of so many.
  static func length(payload: Int) -> Int {
    (EnvelopeLayout.payload &+ payload &+ step &- 1) & -step
  }
  /// The same with a pointer as the payload.
  static var pointerLength: Int { length(payload: MemoryLayout<UnsafeMutableRawPointer>.size) }
  /// The same without a payload.
  static var headerLength: Int { length(payload: 0) }

  @inline(__always)
  var header: UnsafeMutablePointer<Header> { address.assumingMemoryBound(to: Header.self) }

  /// Writes the header of a record for a receiver.
  @inline(__always)
  func initialize(
    _ subscription: Unmanaged<LockingSubscription>, _ generation: UInt32 = 0,
    link: UnsafeMutableRawPointer? = nil, lane: UInt8, length: Int, time: UInt64 = 0,
    flags: UInt8 = 0
  ) {
    header.initialize(
      to: Header(
        link: link, subscription: subscription, time: time, generation: generation, lane: lane,
        flags: flags, steps: UInt16(truncatingIfNeeded: length / Self.step)))
  }

  var lane: Int { Int(header.pointee.lane) }
  /// A flag of the first record of a receiver that is not to get the events of a dispatch. It leaves the dispatch with
  /// no record.
  static let skipped: UInt8 = 128
  var isSkipped: Bool { header.pointee.flags & Self.skipped != 0 }
  var isToken: Bool { header.pointee.flags & EnvelopeLayout.token != 0 }
  var length: Int { Int(header.pointee.steps) * Self.step }

  /// The payload of a boxed record.
  var pointer: UnsafeMutableRawPointer {
    get { address.load(fromByteOffset: EnvelopeLayout.payload, as: UnsafeMutableRawPointer.self) }
    nonmutating set {
      address.storeBytes(
        of: newValue, toByteOffset: EnvelopeLayout.payload, as: UnsafeMutableRawPointer.self)
    }
  }

  // MARK: The payload

  /// Makes a box for a payload.
  static func makeBox(size: Int, alignment: Int, references: Int) -> UnsafeMutableRawPointer {
    let offset = max(EnvelopeLayout.boxHeader, alignment)
    let box = UnsafeMutableRawPointer.allocate(byteCount: offset + size, alignment: offset)
    box.initializeMemory(as: UInt32.self, repeating: UInt32(references), count: 1)
    box.storeBytes(of: UInt32(offset), toByteOffset: EnvelopeLayout.boxOffset, as: UInt32.self)
    return box
  }

  private var boxReferences: UnsafeMutablePointer<Atomic<UInt32>>? {
    header.pointee.flags & EnvelopeLayout.boxed == 0
      ? nil : pointer.assumingMemoryBound(to: Atomic<UInt32>.self)
  }

  /// Whether no other record shares the payload.
  @inline(__always)
  var ownsPayload: Bool {
    // Acquiring: pairs with the subtraction in `end`, so that the others have read before we move.
    boxReferences.map { $0.pointee.load(ordering: .acquiring) == 1 } ?? true
  }

  /// Ends the payload, unless it was moved out, and its box. `drop` is code of the user's, so that no lock
  /// may be held.
  @inline(__always)
  func end(payloadMoved: Bool, _ drop: ((UnsafeMutableRawPointer) -> Void)?) {
    if let references = boxReferences {
      // Pairs with itself and with `ownsPayload`.
      let left = references.pointee.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue
      guard left == 0 else { return }
      if !payloadMoved { drop?(envelopePayload(address)) }
      pointer.deallocate()
    } else if !payloadMoved {
      drop?(envelopePayload(address))
    }
  }
}

/// Records of one dispatch for one receiver, side by side in the memory of whoever posts them.
struct LockingRun {
  var first: LockingRecord
  var count: Int
  /// Of each record.
  var length: Int { first.length }

  subscript(index: Int) -> LockingRecord {
    LockingRecord(address: first.address + index * length)
  }

  /// Ends the payloads of the first records, which is code of the user's.
  func end(first count: Int, _ drop: ((UnsafeMutableRawPointer) -> Void)?) {
    for index in 0..<count { self[index].end(payloadMoved: false, drop) }
  }
}

/// Something that accepts records. Its subclasses guard themselves.
class LockingSink: @unchecked Sendable {
  /// Takes over records of one lane. Returns how many of the first ones the caller still has to end; nil if
  /// it refuses them all.
  func post(_ run: LockingRun) -> Int? { nil }

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
  // Everything is constant; the target guards itself.
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
