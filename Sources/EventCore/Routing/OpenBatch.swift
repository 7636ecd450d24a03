// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// Where the events of a loop join the batch that is open in its mailbox, for code that is inlined into the loop:
/// `begin_one` and `commit_one` of the C core (routing/dispatch.c) without a call. With calls, and with what the consumer
/// says around them, a post takes three times as many instructions.
///
/// Sources/CEventCore/memory/consumed.h has the reasons, and asserts the offsets.
@usableFromInline
struct OpenBatch {
  /// What the core notes of the consumer's own events (consumed.h). The mailbox has it, and outlives this.
  @usableFromInline let consumed: UnsafeMutableRawPointer
  /// The version of the router through which the loop dispatches, which outlives this, too.
  @usableFromInline let version: UnsafeRawPointer

  init(consumed: UnsafeMutableRawPointer, version: UnsafeRawPointer) {
    self.consumed = consumed
    self.version = version
  }

  @inlinable static var batch: Int { 24 }
  @inlinable static var limit: Int { 32 }
  @inlinable static var openVersion: Int { 56 }
  @inlinable static var key: Int { 64 }
  @inlinable static var lane: Int { 88 }
  @inlinable static var inbox: Int { 112 }
  @inlinable static var joined: Int { 120 }
  @inlinable static var attention: Int { 128 }
  /// In a batch.
  @inlinable static var end: Int { 16 }
  @inlinable static var step: Int { 24 }
  /// The bits of a head that count, and those of `attention` that are lanes.
  @inlinable static var headCount: UInt { 63 }
  @inlinable static var attentionLanes: UInt32 { 1023 }

  /// The place of an event that may join; nil if it has to be dispatched. `didWrite` follows, and nothing comes between
  /// but the move of the event, which runs no user code: so the batch is not marked as one that is being written. Nor does
  /// user code run between the two steps of a dispatch through this router, in which a first event may be written.
  ///
  /// Events of one type all have one size and alignment. The consumer's thread only.
  @inlinable
  @inline(__always)
  func place<E: Eventable>(for type: E.Type, _ lane: Lane) -> UnsafeMutableRawPointer? {
    guard
      // Relaxed: V4 in router_private.h. No batch is open for the version 0.
      relaxed(version) == consumed.load(fromByteOffset: OpenBatch.openVersion, as: UInt.self),
      consumed.load(fromByteOffset: OpenBatch.key, as: UInt.self) == eventKey(type),
      consumed.load(fromByteOffset: OpenBatch.lane, as: UInt32.self) == UInt32(lane.index),
      // Relaxed, both: as the place and the commit in consumed.h.
      relaxed(pointer(OpenBatch.inbox)) <= OpenBatch.headCount,
      pointer(OpenBatch.attention).assumingMemoryBound(to: Atomic<UInt32>.self).pointee.load(ordering: .relaxed)
        <= OpenBatch.attentionLanes
    else { return nil }
    let end = pointer(OpenBatch.batch).load(fromByteOffset: OpenBatch.end, as: UnsafeMutableRawPointer.self)
    return end != pointer(OpenBatch.limit) ? end : nil
  }

  /// Ends what `place` began.
  @inlinable
  @inline(__always)
  func didWrite(_ place: UnsafeMutableRawPointer) {
    let batch = pointer(OpenBatch.batch)
    let step = Int(batch.load(fromByteOffset: OpenBatch.step, as: Int32.self))
    batch.storeBytes(of: place + step, toByteOffset: OpenBatch.end, as: UnsafeMutableRawPointer.self)
    let joined = pointer(OpenBatch.joined).assumingMemoryBound(to: Atomic<UInt64>.self)
    // Releasing, as the commit in consumed.h: pairs with whoever reads depths. Only this thread writes it.
    joined.pointee.store(joined.pointee.load(ordering: .relaxed) &+ 1, ordering: .releasing)
  }

  @inlinable
  @inline(__always)
  func pointer(_ offset: Int) -> UnsafeMutableRawPointer {
    consumed.load(fromByteOffset: offset, as: UnsafeMutableRawPointer.self)
  }

  @inlinable
  @inline(__always)
  func relaxed(_ address: UnsafeRawPointer) -> UInt {
    address.assumingMemoryBound(to: Atomic<UInt>.self).pointee.load(ordering: .relaxed)
  }
}
