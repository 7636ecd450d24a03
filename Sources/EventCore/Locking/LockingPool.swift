// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The envelopes of the locking core: free slots in one list under one mutex.
///
/// Keeps at most 65,536 free slots (4 MiB); more go back to the allocator.
final class LockingPool: @unchecked Sendable {
  static let shared = LockingPool()

  // Everything below is guarded by the mutex.
  private let mutex = Guarded(())
  private var free: UnsafeMutableRawPointer?
  private var count = 0

  private static let limit = 65_536

  /// Takes one slot. Its bytes are anything.
  func take() -> UnsafeMutableRawPointer {
    mutex.withLock { _ in
      guard let slot = free else {
        return .allocate(byteCount: EnvelopeLayout.size, alignment: EnvelopeLayout.size)
      }
      free = envelopeNext(slot)
      count -= 1
      return slot
    }
  }

  /// Gives a chain of slots back, whose payloads have ended.
  func give(_ chain: UnsafeMutableRawPointer, count added: Int) {
    let isKept = mutex.withLock { _ in
      guard count + added <= Self.limit else { return false }
      var last = chain
      while let next = envelopeNext(last) {
        last = next
      }
      setEnvelopeNext(last, free)
      free = chain
      count += added
      return true
    }
    guard !isKept else { return }
    var next: UnsafeMutableRawPointer? = chain
    while let slot = next {
      next = envelopeNext(slot)
      slot.deallocate()
    }
  }
}

/// Free slots on their way back to the pool: one holder gathers them, so that the pool's mutex is
/// taken once for many.
struct LockingReturns: ~Copyable {
  private var chain: UnsafeMutableRawPointer?
  private var count = 0

  /// How many go back at once.
  private static let length = 32

  deinit {
    if let chain {
      LockingPool.shared.give(chain, count: count)
    }
  }

  mutating func give(_ slot: UnsafeMutableRawPointer) {
    setEnvelopeNext(slot, chain)
    chain = slot
    count += 1
    if count == Self.length {
      flush()
    }
  }

  mutating func flush() {
    guard let full = chain else { return }
    LockingPool.shared.give(full, count: count)
    chain = nil
    count = 0
  }
}

/// Links an envelope to the one after it.
@inline(__always)
func setEnvelopeNext(_ envelope: UnsafeMutableRawPointer, _ next: UnsafeMutableRawPointer?) {
  envelope.storeBytes(
    of: next, toByteOffset: EnvelopeLayout.next, as: UnsafeMutableRawPointer?.self)
}
