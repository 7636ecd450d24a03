// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// One event in flight: the header of `EnvelopeLayout`, then the payload, in memory where the next record
/// follows. It is moved as bytes. A payload that is too large or too strictly aligned lies in a box.
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
  private var isBoxed: Bool { header.pointee.flags & EnvelopeLayout.boxed != 0 }
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
  static func makeBox(size: Int, alignment: Int) -> UnsafeMutableRawPointer {
    let offset = max(EnvelopeLayout.boxHeader, alignment)
    let box = UnsafeMutableRawPointer.allocate(byteCount: offset + size, alignment: offset)
    box.storeBytes(of: UInt32(offset), toByteOffset: EnvelopeLayout.boxOffset, as: UInt32.self)
    return box
  }

  /// Ends the payload, unless it was moved out, and its box. `drop` is code of the user's, so that no lock
  /// may be held.
  @inline(__always)
  func end(payloadMoved: Bool = false, _ drop: ((UnsafeMutableRawPointer) -> Void)?) {
    if !payloadMoved { drop?(envelopePayload(address)) }
    if isBoxed { pointer.deallocate() }
  }

  /// The same for a record that waited for nothing.
  func endUnhandled() {
    end(header.pointee.subscription._withUnsafeGuaranteedRef { $0.drop })
  }

  /// The same record in memory of its own, which the caller frees.
  func copy() -> LockingRecord {
    let copy = UnsafeMutableRawPointer.allocate(byteCount: length, alignment: 64)
    copy.copyMemory(from: address, byteCount: length)
    return LockingRecord(address: copy)
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
}
