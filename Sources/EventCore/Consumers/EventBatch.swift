// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The events of a batch that have not been taken yet, while it is delivered.
///
/// Sources/CEventCore/mailbox/mailbox_batch.c has the reasons, and asserts the offsets.
@usableFromInline
struct EventBatch {
  /// What the core notes of the walk over the batch.
  @usableFromInline let walk: UnsafeMutableRawPointer
  /// Takes the next event and returns its payload; nil if another one comes first.
  @usableFromInline let take: @convention(c) (_ walk: OpaquePointer?) -> UnsafeMutableRawPointer?

  init(_ walk: OpaquePointer, take: @escaping @convention(c) (OpaquePointer?) -> UnsafeMutableRawPointer?) {
    self.walk = UnsafeMutableRawPointer(walk)
    self.take = take
  }

  @inlinable static var unchecked: Int { 0 }
  @inlinable static var signal: Int { 8 }
  @inlinable static var left: Int { 16 }
  @inlinable static var batch: Int { 24 }
  /// In a batch.
  @inlinable static var payload: Int { 8 }
  @inlinable static var step: Int { 24 }

  /// The distance from one payload to the next, in bytes.
  @inlinable
  @inline(__always)
  var step: Int { Int(pointer(EventBatch.batch).load(fromByteOffset: EventBatch.step, as: Int32.self)) }

  /// `take` after the event at `payload`, without a call where the core has found that the next event needs no checks.
  /// The loop that walks has `step` in a register.
  @inlinable
  @inline(__always)
  func next(after payload: UnsafeMutableRawPointer, _ step: Int) -> UnsafeMutableRawPointer? {
    let next = payload + step
    guard
      next != pointer(EventBatch.unchecked),
      // Relaxed: C3 in mailbox_private.h.
      pointer(EventBatch.signal).assumingMemoryBound(to: Atomic<UInt32>.self).pointee.load(ordering: .relaxed) == 0
    else { return take(OpaquePointer(walk)) }
    pointer(EventBatch.batch).storeBytes(of: next, toByteOffset: EventBatch.payload, as: UnsafeMutableRawPointer.self)
    let left = pointer(EventBatch.left).assumingMemoryBound(to: Atomic<UInt64>.self)
    // Relaxed: only this thread writes it.
    left.pointee.store(left.pointee.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
    return next
  }

  /// Calls `body` with the payload that is delivered, and with that of each event which follows.
  func forEach(from payload: UnsafeMutableRawPointer, _ body: (UnsafeMutableRawPointer) -> Void) {
    let step = step
    var payload = payload
    while true {
      body(payload)
      guard let next = next(after: payload, step) else { return }
      payload = next
    }
  }

  @inlinable
  @inline(__always)
  func pointer(_ offset: Int) -> UnsafeMutableRawPointer {
    walk.load(fromByteOffset: offset, as: UnsafeMutableRawPointer.self)
  }
}
