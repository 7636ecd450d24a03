// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A mutex of the system's threads, in memory of its owner's.
///
/// `Synchronization.Mutex` is a futex with priority inheritance on Linux, which each unlock hands
/// over to a sleeper: with eight threads at it, each pass waits for a switch of threads, and takes
/// 20 µs in memory of 0.1. This one may be had by whoever runs. ThreadSanitizer knows it, too.
@usableFromInline
struct SystemMutex: @unchecked Sendable {
  // Made for being used by several threads; its address never changes.
  let address: UnsafeMutablePointer<pthread_mutex_t>

  /// How long one is, at an address.
  static var size: Int { MemoryLayout<pthread_mutex_t>.stride }

  /// Makes one in memory of its own, or at an address. Until `end`.
  @usableFromInline
  init(at memory: UnsafeMutableRawPointer? = nil) {
    address =
      memory?.bindMemory(to: pthread_mutex_t.self, capacity: 1) ?? .allocate(capacity: 1)
    check(pthread_mutex_init(address, nil), "pthread_mutex_init")
  }

  /// Ends it where it lies.
  func end() {
    pthread_mutex_destroy(address)
  }

  /// Ends one that has memory of its own.
  @usableFromInline
  func free() {
    end()
    address.deallocate()
  }

  @usableFromInline
  @inline(__always)
  func lock() { check(pthread_mutex_lock(address), "pthread_mutex_lock") }

  @usableFromInline
  @inline(__always)
  func unlock() { check(pthread_mutex_unlock(address), "pthread_mutex_unlock") }

  /// False if somebody has it.
  @usableFromInline
  func lockIfAvailable() -> Bool { pthread_mutex_trylock(address) == 0 }
}
