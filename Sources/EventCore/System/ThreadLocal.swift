// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A reference that each thread has for itself, for the duration of a call.
///
/// `@TaskLocal` would follow a task from thread to thread, and Swift has no thread-local variables.
final class ThreadLocal<Value: AnyObject>: Sendable {
  // Constant.
  private let key: pthread_key_t

  init() {
    var key = pthread_key_t()
    check(pthread_key_create(&key, nil), "pthread_key_create")
    self.key = key
  }

  deinit {
    pthread_key_delete(key)
  }

  /// The value of the innermost call of `with` on the calling thread; nil outside of it.
  var value: Value? {
    pthread_getspecific(key).map { Unmanaged.fromOpaque($0).takeUnretainedValue() }
  }

  /// Runs `body` with a value on the calling thread, and restores the previous value.
  func with<Result>(_ value: Value, _ body: () throws -> Result) rethrows -> Result {
    let before = pthread_getspecific(key)
    // The key does not retain `value`, which outlives the call.
    check(pthread_setspecific(key, Unmanaged.passUnretained(value).toOpaque()), "pthread_setspecific")
    defer { check(pthread_setspecific(key, before), "pthread_setspecific") }
    return try withExtendedLifetime(value, body)
  }
}
