// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The 64 bytes of an envelope as Swift reads them: those of `struct evc_envelope`, which the locking
// core uses too. Sources/CEventCore/slot.h has the table; EnvelopeLayoutTests compares the two.

@usableFromInline
enum EnvelopeLayout {
  @usableFromInline static let size = 64
  @usableFromInline static let next = 0
  @usableFromInline static let subscription = 8
  @usableFromInline static let time = 16
  @usableFromInline static let generation = 24
  @usableFromInline static let lane = 28
  @usableFromInline static let flags = 29
  @usableFromInline static let payload = 32
  /// How many payload bytes fit, and the strictest alignment they may have.
  @usableFromInline static let inlineSize = 32
  /// The payload lies in a box, whose address is where the payload would be.
  @usableFromInline static let boxed: UInt8 = 1
  /// No event, but a place in the lanes for one that waits elsewhere.
  @usableFromInline static let token: UInt8 = 2
  /// In a box: where the payload begins, in bytes.
  @usableFromInline static let boxOffset = 4
  /// In a box: the size of the header.
  @usableFromInline static let boxHeader = 16
}

/// Where the payload of an envelope lies.
@inlinable
@inline(__always)
func envelopePayload(_ envelope: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer {
  let flags = envelope.load(fromByteOffset: 29, as: UInt8.self)
  guard flags & 1 != 0 else { return envelope + 32 }
  let box = envelope.load(fromByteOffset: 32, as: UnsafeMutableRawPointer.self)
  return box + Int(box.load(fromByteOffset: 4, as: UInt32.self))
}

/// The envelope after this one in a dispatch.
@inlinable
@inline(__always)
func envelopeNext(_ envelope: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
  envelope.load(fromByteOffset: 0, as: UnsafeMutableRawPointer?.self)
}
