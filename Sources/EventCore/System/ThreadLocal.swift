// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A reference that each thread has for itself: for the length of a call (`with`), or until the thread
/// ends (`kept`).
///
/// `@TaskLocal` would follow a task from thread to thread, and Swift has no thread-local variables.
final class ThreadLocal<Value: AnyObject>: Sendable {
  // Constant.
  private let key: pthread_key_t

  /// - Parameter keepsValues: Whether the references are for `kept`, and not for `with`.
  init(keepsValues: Bool = false) {
    var key = pthread_key_t()
    guard keepsValues else {
      check(pthread_key_create(&key, nil), "pthread_key_create")
      self.key = key
      return
    }
    let status = pthread_key_create(&key) { value in
      // Optional on some systems, and never nil.
      Unmanaged<AnyObject>.fromOpaque((value as UnsafeMutableRawPointer?).unsafelyUnwrapped).release()
    }
    check(status, "pthread_key_create")
    self.key = key
  }

  deinit {
    pthread_key_delete(key)
  }

  /// The value of the innermost call of `with` on the calling thread; nil outside of it.
  var value: Value? {
    pthread_getspecific(key).map { Unmanaged.fromOpaque($0).takeUnretainedValue() }
  }

  /// The same without a retain, for those who use it at once.
  @inline(__always)
  var unretained: Unmanaged<Value>? { pthread_getspecific(key).map { .fromOpaque($0) } }

  /// Runs `body` with a value, or with none, on the calling thread, and restores the previous value.
  func with<Result>(_ value: Value?, _ body: () throws -> Result) rethrows -> Result {
    let before = pthread_getspecific(key)
    // The key does not retain `value`, which outlives the call.
    let address = value.map { Unmanaged.passUnretained($0).toOpaque() }
    check(pthread_setspecific(key, address), "pthread_setspecific")
    defer { check(pthread_setspecific(key, before), "pthread_setspecific") }
    return try withExtendedLifetime(value, body)
  }

  /// The value that the calling thread keeps, which is made if there is none.
  @inline(__always)
  func kept(or make: () -> Value) -> Unmanaged<Value> {
    if let value = pthread_getspecific(key) { return .fromOpaque(value) }
    let value = Unmanaged.passRetained(make())
    check(pthread_setspecific(key, value.toOpaque()), "pthread_setspecific")
    return value
  }
}
