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

  /// The events which follow that, until the first one that needs checks: they are taken without a call. Valid until
  /// the next `take`.
  @inlinable
  @inline(__always)
  var ahead: Ahead {
    Ahead(
      unchecked: pointer(EventBatch.unchecked),
      signal: pointer(EventBatch.signal).assumingMemoryBound(to: Atomic<UInt32>.self),
      left: pointer(EventBatch.left).assumingMemoryBound(to: Atomic<UInt64>.self),
      payload: pointer(EventBatch.batch) + EventBatch.payload)
  }

  /// `take` after the event at `payload`, without a call where the core has found that the next event needs no checks.
  /// The loop that walks has `step` in a register.
  @inlinable
  @inline(__always)
  func next(after payload: UnsafeMutableRawPointer, _ step: Int) -> UnsafeMutableRawPointer? {
    let next = payload + step
    guard ahead.isUnchecked(next) else { return take(OpaquePointer(walk)) }
    ahead.take(next)
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

extension EventBatch {
  /// What a loop keeps in registers while it takes events that need no checks.
  @usableFromInline
  struct Ahead {
    /// The first payload that must not be taken without checks.
    @usableFromInline let unchecked: UnsafeMutableRawPointer
    @usableFromInline let signal: UnsafeMutablePointer<Atomic<UInt32>>
    @usableFromInline let left: UnsafeMutablePointer<Atomic<UInt64>>
    /// Where the core reads the payload that is delivered.
    @usableFromInline let payload: UnsafeMutableRawPointer

    @inlinable
    init(
      unchecked: UnsafeMutableRawPointer, signal: UnsafeMutablePointer<Atomic<UInt32>>,
      left: UnsafeMutablePointer<Atomic<UInt64>>, payload: UnsafeMutableRawPointer
    ) {
      (self.unchecked, self.signal, self.left, self.payload) = (unchecked, signal, left, payload)
    }

    /// Whether the event at `next`, which follows the one that is delivered, may be taken by `take`.
    @inlinable
    @inline(__always)
    func isUnchecked(_ next: UnsafeMutableRawPointer) -> Bool {
      // Relaxed: C3 in mailbox_private.h.
      next != unchecked && signal.pointee.load(ordering: .relaxed) == 0
    }

    /// Takes the event at `next`.
    @inlinable
    @inline(__always)
    func take(_ next: UnsafeMutableRawPointer) {
      payload.storeBytes(of: next, as: UnsafeMutableRawPointer.self)
      // Relaxed: only this thread writes it.
      left.pointee.store(left.pointee.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
    }
  }
}
