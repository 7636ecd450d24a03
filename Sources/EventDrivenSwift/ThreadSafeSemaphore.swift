// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Synchronization

/// Guards a property by a mutex, so that any thread may read and write it.
///
/// ```swift
/// @ThreadSafeSemaphore public var temperatureInCelsius: Float = Float.zero
/// ```
///
/// It is for programs that were written for EventDrivenSwift, and keeps the name. New code does better with
/// `Synchronization.Mutex` in a `let`, whose use the compiler checks and whose locking is visible.
///
/// Each read and each write is atomic, but not both together: `count += 1` first reads and then writes, so
/// that a write of another thread between the two is lost. ``withLock(_:)``, by the underscored name or the
/// projected value, makes one step of both:
///
/// ```swift
/// _count.withLock { $0 += 1 }
/// $count.withLock { $0 += 1 }
/// ```
///
/// **Threads**: any, for every member. Copies of the wrapper share one value.
@propertyWrapper
public struct ThreadSafeSemaphore<Value> {
  @usableFromInline let storage: SemaphoreStorage<Value>

  /// Makes a property with a first value.
  ///
  /// - Parameter wrappedValue: The first value.
  @inlinable
  public init(wrappedValue: Value) {
    storage = SemaphoreStorage(wrappedValue)
  }

  /// The value. A read copies it and a write replaces it under the lock.
  @inlinable
  public var wrappedValue: Value {
    get { storage.hold { $0 } }
    nonmutating set {
      // The old value ends after the lock is released, since its end may run user code.
      var value = newValue
      storage.hold { swap(&$0, &value) }
    }
  }

  /// The wrapper itself, for code that has no access to the underscored name.
  @inlinable
  public var projectedValue: ThreadSafeSemaphore<Value> { self }

  /// Runs a closure that may read and change the value in one step.
  ///
  /// - Parameter body: Gets the value. It must not use the property itself: that would wait for the lock that
  ///   this call holds, and traps. Nor must it release the last reference to an object whose `deinit` uses the
  ///   property: return the old value instead.
  /// - Returns: The result of the closure.
  @inlinable
  @discardableResult
  public func withLock<Result, Failure: Error>(
    _ body: (_ value: inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try storage.hold { value -> Swift.Result<Result, Failure> in
      storage.holding(body, &value)
    }.get()
  }

  /// Runs a closure on the value, as ``withLock(_:)``, if no other thread holds the lock now.
  ///
  /// - Parameter body: As for ``withLock(_:)``.
  /// - Returns: The result of the closure, or nil if the lock was taken and the closure was not called.
  @inlinable
  @discardableResult
  public func withTryLock<Result, Failure: Error>(
    _ body: (_ value: inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    try storage.guarded.withLockIfAvailable { value -> Swift.Result<Result, Failure> in
      storage.holding(body, &value)
    }?.get()
  }

  /// Runs a closure on the value if no other thread holds the lock now, and another closure otherwise.
  ///
  /// - Parameters:
  ///   - onLock: As for ``withLock(_:)``.
  ///   - onCannotLock: Called without the lock.
  @inlinable
  public func withTryLock(
    _ onLock: (_ value: inout Value) -> Void, _ onCannotLock: () -> Void
  ) {
    if withTryLock(onLock) == nil {
      onCannotLock()
    }
  }
}

// The storage is used under its mutex only, and its values may cross threads.
extension ThreadSafeSemaphore: @unchecked Sendable where Value: Sendable {}

/// The value of a `ThreadSafeSemaphore` and its lock.
@usableFromInline
final class SemaphoreStorage<Value>: Sendable {
  @usableFromInline let guarded: Guarded<Value>
  /// The thread that is inside a closure of the user's, or 0.
  private let holder = Atomic<UInt>(0)

  @usableFromInline
  init(_ value: Value) {
    guarded = Guarded(value)
  }

  /// Runs a closure with the lock held. Traps if the calling thread would wait for itself.
  @inlinable
  @inline(__always)
  func hold<Result>(_ body: (inout Value) -> Result) -> Result {
    if let result = guarded.withLockIfAvailable(body) {
      return result
    }
    requireOther()
    return guarded.withLock(body)
  }

  /// Calls a closure of the user's. With the lock held.
  @inlinable
  @inline(__always)
  func holding<Result, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result, _ value: inout Value
  ) -> Swift.Result<Result, Failure> {
    setHolder(true)
    defer { setHolder(false) }
    do throws(Failure) {
      return .success(try body(&value))
    } catch {
      return .failure(error)
    }
  }

  @usableFromInline
  func setHolder(_ isIn: Bool) {
    holder.store(isIn ? currentThreadNumber() : 0, ordering: .relaxed)
  }

  @usableFromInline
  func requireOther() {
    // Relaxed: a thread finds its own number only if it stored it.
    require(
      holder.load(ordering: .relaxed) != currentThreadNumber(),
      """
      The closure of withLock or withTryLock has the value of a @ThreadSafeSemaphore property to \
      itself, and the property was used inside it, where it would wait for itself: use the \
      closure's parameter. If the closure replaced an object whose deinit used the property, return that object from \
      the closure.
      """)
  }
}
