// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Synchronization

/// Guards a property by a mutex of its own, so that any thread may read and write it.
///
/// ```swift
/// @ThreadSafeSemaphore public var temperatureInCelsius: Float = Float.zero
/// ```
///
/// This is an aid for programs that come from EventDrivenSwift, whose name it keeps. New code does
/// better with `Synchronization.Mutex` in a `let`: the compiler then checks what this wrapper can
/// only promise, and the lock shows where it is taken.
///
/// Each read and each write is atomic by itself, and two of them are not one: `count += 1` reads,
/// and then writes, so that another thread's write between the two is lost. ``withLock(_:)`` makes
/// one step of several, through the underscored name or the projected value:
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

  /// Starts with a value.
  ///
  /// - Parameter wrappedValue: What the property is at first.
  @inlinable
  public init(wrappedValue: Value) {
    storage = SemaphoreStorage(wrappedValue)
  }

  /// The value: a read copies it, a write replaces it, each under the lock.
  @inlinable
  public var wrappedValue: Value {
    get { storage.hold { $0 } }
    nonmutating set {
      // What the old value held ends after the lock is open: that may be code of the user's.
      var value = newValue
      storage.hold { swap(&$0, &value) }
    }
  }

  /// The wrapper itself, for those who cannot reach the underscored name.
  @inlinable
  public var projectedValue: ThreadSafeSemaphore<Value> { self }

  /// Runs a closure that may read and change the value in one step.
  ///
  /// - Parameter body: Gets the value. Inside it, the property itself must not be used: that would
  ///   wait for the lock which this very call holds, and traps.
  /// - Returns: What the closure returns.
  @inlinable
  @discardableResult
  public func withLock<Result, Failure: Error>(
    _ body: (_ value: inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try storage.hold { value -> Swift.Result<Result, Failure> in
      storage.holding(body, &value)
    }.get()
  }

  /// Runs a closure on the value if nobody else holds the lock now.
  ///
  /// - Parameter body: As for ``withLock(_:)``.
  /// - Returns: What the closure returns, or nil if the lock was taken and the closure was not
  ///   called.
  @inlinable
  @discardableResult
  public func withTryLock<Result, Failure: Error>(
    _ body: (_ value: inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    try storage.guarded.withLockIfAvailable { value -> Swift.Result<Result, Failure> in
      storage.holding(body, &value)
    }?.get()
  }

  /// Runs one closure on the value if nobody else holds the lock now, and another one if somebody
  /// does.
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

extension ThreadSafeSemaphore: @unchecked Sendable where Value: Sendable {}
// The storage is touched under its mutex only; what comes out and goes in may cross threads.

/// The value of a `ThreadSafeSemaphore`, behind its lock.
@usableFromInline
final class SemaphoreStorage<Value>: Sendable {
  @usableFromInline let guarded: Guarded<Value>
  /// The thread inside a closure of the user's, or 0. Only for telling a thread about itself.
  private let holder = Atomic<UInt>(0)

  @usableFromInline
  init(_ value: Value) {
    guarded = Guarded(value)
  }

  /// Takes the lock, and traps where the calling thread would wait for itself.
  @inlinable
  @inline(__always)
  func hold<Result>(_ body: (inout Value) -> Result) -> Result {
    if let result = guarded.withLockIfAvailable(body) {
      return result
    }
    requireOther()
    return guarded.withLock(body)
  }

  /// Calls the user's closure with the lock held.
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
    // Relaxed: a thread finds its own number only if it stored it itself.
    require(
      holder.load(ordering: .relaxed) != currentThreadNumber(),
      """
      The closure of withLock or withTryLock has the value of a @ThreadSafeSemaphore property to \
      itself, and the property was used inside it, where it would wait for itself: use the \
      closure's parameter.
      """)
  }
}
