// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The offsets in the 64 bytes of an envelope: those of `struct evc_envelope`, which the locking core uses
/// for its records. Sources/CEventCore/memory/slot.h has the table; EnvelopeLayoutTests compares the two.
@usableFromInline
enum EnvelopeLayout {
  @inlinable static var next: Int { 0 }
  @inlinable static var subscription: Int { 8 }
  @inlinable static var time: Int { 16 }
  @inlinable static var generation: Int { 24 }
  /// In the generation: the event is measured. `DirectHandlers` compare the generation, and so pass such events on
  /// without looking at a mark of its own.
  @inlinable static var mark: UInt32 { 1 << 31 }
  @inlinable static var lane: Int { 28 }
  @inlinable static var flags: Int { 29 }
  @inlinable static var payload: Int { 32 }
  /// An alignment for which the locking core, which moves its records, puts a payload into a box. The C core
  /// moves no payload.
  @inlinable static var unmovedAlignment: Int { 32 }
  /// A flag: the payload lies in a box, whose address is stored in its place.
  @inlinable static var boxed: UInt8 { 1 }
  /// A flag: the envelope is the token of a latest-only subscription.
  @inlinable static var token: UInt8 { 2 }
  /// In a box: where the offset of the payload is stored.
  @inlinable static var boxOffset: Int { 4 }
  /// In a box: the size of the header.
  @inlinable static var boxHeader: Int { 16 }
}

extension Instruments.Note {
  /// In the generation of the events.
  var mark: UInt32 { isMeasured ? EnvelopeLayout.mark : 0 }
}

/// Where the payload of an envelope lies.
@inlinable
@inline(__always)
func envelopePayload(_ envelope: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer {
  let flags = envelope.load(fromByteOffset: EnvelopeLayout.flags, as: UInt8.self)
  guard flags & EnvelopeLayout.boxed != 0 else { return envelope + EnvelopeLayout.payload }
  let box = envelope.load(
    fromByteOffset: EnvelopeLayout.payload, as: UnsafeMutableRawPointer.self)
  return box + Int(box.load(fromByteOffset: EnvelopeLayout.boxOffset, as: UInt32.self))
}

/// The envelope after this one in a dispatch.
@inlinable
@inline(__always)
func envelopeNext(_ envelope: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
  envelope.load(fromByteOffset: EnvelopeLayout.next, as: UnsafeMutableRawPointer?.self)
}
