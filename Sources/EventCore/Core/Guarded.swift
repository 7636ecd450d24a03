// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// A value that is touched under a mutex only.
///
/// `Synchronization.Mutex` alone would do, but ThreadSanitizer does not see inside it (its code is
/// part of the runtime, which is not instrumented) and reports a race for whatever it guards. The
/// stamp makes the same edge, from each unlock to the next lock, with an atomic of this module.
///
/// Inlinable for the sake of `ThreadSafeSemaphore`, whose values are of the user's types.
@usableFromInline
package final class Guarded<Value>: @unchecked Sendable {
  // `value` is touched with the mutex held only; its address never changes.
  @usableFromInline let mutex = Mutex(())
  @usableFromInline let stamp = Atomic<Bool>(false)
  @usableFromInline let value: UnsafeMutablePointer<Value>

  @usableFromInline
  package init(_ value: Value) {
    self.value = .allocate(capacity: 1)
    self.value.initialize(to: value)
  }

  deinit {
    value.deinitialize(count: 1)
    value.deallocate()
  }

  /// Runs `body` with the mutex held. `body` takes no other lock but as its caller's lock order
  /// says, and runs no code of the user's.
  @inlinable
  @inline(__always)
  package func withLock<Result>(_ body: (inout Value) -> Result) -> Result {
    var result: Result?
    mutex.withLock { _ in
      // Pairs with the store below.
      _ = stamp.load(ordering: .acquiring)
      result = body(&value.pointee)
      stamp.store(true, ordering: .releasing)
    }
    // Set above: the closure is called exactly once.
    return result.unsafelyUnwrapped
  }

  /// Runs `body` with the mutex held if nobody holds it now; nil otherwise. As `withLock`.
  @inlinable
  @inline(__always)
  package func withLockIfAvailable<Result>(_ body: (inout Value) -> Result) -> Result? {
    mutex.withLockIfAvailable { _ in
      // Pairs with the store of the last holder.
      _ = stamp.load(ordering: .acquiring)
      let result = body(&value.pointee)
      stamp.store(true, ordering: .releasing)
      return result
    }
  }
}
