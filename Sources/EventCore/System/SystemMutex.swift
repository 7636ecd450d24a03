// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A mutex of the system's threads (pthreads).
///
/// On Linux `Synchronization.Mutex` is a futex with priority inheritance, which each unlock hands over to a
/// sleeper. With eight threads that contend for it, each hand-over waits for a thread switch and takes 20 µs
/// instead of 0.1. This mutex goes to a thread that is running. ThreadSanitizer understands it, too.
///
/// With glibc a thread looks some hundred times whether the mutex has become free before it sleeps: nobody
/// holds one for long, and an unlock that has to wake a thread makes a system call.
@usableFromInline
struct SystemMutex: @unchecked Sendable {
  // Made for several threads; its address never changes.
  let address: UnsafeMutablePointer<pthread_mutex_t>

  /// How many bytes a mutex takes.
  static var size: Int { MemoryLayout<pthread_mutex_t>.stride }

  /// Makes a mutex at an address, which `end` ends, or in allocated memory, which `free` frees.
  @usableFromInline
  init(at memory: UnsafeMutableRawPointer? = nil) {
    address =
      memory?.bindMemory(to: pthread_mutex_t.self, capacity: 1) ?? .allocate(capacity: 1)
    #if canImport(Glibc)
      var attributes = pthread_mutexattr_t()
      check(pthread_mutexattr_init(&attributes), "pthread_mutexattr_init")
      check(
        pthread_mutexattr_settype(&attributes, CInt(PTHREAD_MUTEX_ADAPTIVE_NP)), "pthread_mutexattr_settype")
      check(pthread_mutex_init(address, &attributes), "pthread_mutex_init")
      pthread_mutexattr_destroy(&attributes)
    #else
      check(pthread_mutex_init(address, nil), "pthread_mutex_init")
    #endif
  }

  /// Ends a mutex that was made at an address.
  func end() {
    pthread_mutex_destroy(address)
  }

  /// Ends a mutex that was made in allocated memory.
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

  /// Locks the mutex, or returns false if a thread holds it.
  @usableFromInline
  func lockIfAvailable() -> Bool { pthread_mutex_trylock(address) == 0 }
}
