// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A value that is touched under a mutex only.
///
/// Inlinable for the sake of `ThreadSafeSemaphore`, whose values are of the user's types.
@usableFromInline
package final class Guarded<Value>: @unchecked Sendable {
  // `value` is touched with the mutex held only; its address never changes.
  @usableFromInline let mutex = SystemMutex()
  @usableFromInline let value: UnsafeMutablePointer<Value>

  @usableFromInline
  package init(_ value: Value) {
    self.value = .allocate(capacity: 1)
    self.value.initialize(to: value)
  }

  deinit {
    value.deinitialize(count: 1)
    value.deallocate()
    mutex.free()
  }

  /// Runs `body` with the mutex held. `body` takes no other lock but as its caller's lock order
  /// says, and runs no code of the user's.
  @inlinable
  @inline(__always)
  package func withLock<Result>(_ body: (inout Value) -> Result) -> Result {
    mutex.lock()
    defer { mutex.unlock() }
    return body(&value.pointee)
  }

  /// Runs `body` with the mutex held if nobody holds it now; nil otherwise. As `withLock`.
  @inlinable
  @inline(__always)
  package func withLockIfAvailable<Result>(_ body: (inout Value) -> Result) -> Result? {
    guard mutex.lockIfAvailable() else { return nil }
    defer { mutex.unlock() }
    return body(&value.pointee)
  }
}
