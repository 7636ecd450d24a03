// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The consumer whose handlers the calling thread is running, if any: set for as long as a consumer
/// delivers on a thread, or lets go of ended handlers there, not for each event.
enum CurrentConsumer {
  /// Swift has no thread-local variables: a key of the system's.
  private static let key: pthread_key_t = {
    var key = pthread_key_t()
    check(pthread_key_create(&key, nil), "pthread_key_create")
    return key
  }()

  /// Nil elsewhere.
  static var value: Consumer? {
    pthread_getspecific(key).map { Unmanaged<Consumer>.fromOpaque($0).takeUnretainedValue() }
  }

  /// Runs `body` with `consumer` as the current one. The caller keeps it alive.
  static func with<Result>(_ consumer: Consumer, _ body: () -> Result) -> Result {
    // An end of a mailbox may run inside another consumer's handler.
    let outer = pthread_getspecific(key)
    check(
      pthread_setspecific(key, Unmanaged.passUnretained(consumer).toOpaque()),
      "pthread_setspecific")
    defer { check(pthread_setspecific(key, outer), "pthread_setspecific") }
    return body()
  }
}
