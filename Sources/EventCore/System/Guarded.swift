// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A value that is guarded by a mutex.
///
/// Inlinable for `ThreadSafeSemaphore`, whose values have types of the user's.
@usableFromInline
package final class Guarded<Value>: @unchecked Sendable {
  // The value is used only with the mutex held; its address never changes.
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

  /// Runs `body` with the mutex held. `body` runs no user code, and takes only those locks that the lock
  /// order of its caller allows.
  @inlinable
  @inline(__always)
  package func withLock<Result>(_ body: (inout Value) -> Result) -> Result {
    mutex.lock()
    defer { mutex.unlock() }
    return body(&value.pointee)
  }

  /// As `withLock`, if nobody holds the mutex now; otherwise returns nil.
  @inlinable
  @inline(__always)
  package func withLockIfAvailable<Result>(_ body: (inout Value) -> Result) -> Result? {
    guard mutex.lockIfAvailable() else { return nil }
    defer { mutex.unlock() }
    return body(&value.pointee)
  }
}
