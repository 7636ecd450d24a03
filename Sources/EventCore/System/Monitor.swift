// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A mutex with a condition variable to sleep on, which `Synchronization` does not have.
final class Monitor: @unchecked Sendable {
  // The mutex and the condition are made for several threads; their addresses never change.
  private let mutex: SystemMutex
  private let ownsMutex: Bool
  private let condition: UnsafeMutablePointer<pthread_cond_t>

  /// - Parameter shared: A mutex that outlives the monitor; nil makes one.
  init(_ shared: SystemMutex? = nil) {
    mutex = shared ?? SystemMutex()
    ownsMutex = shared == nil
    condition = .allocate(capacity: 1)
    var attributes = pthread_condattr_t()
    check(pthread_condattr_init(&attributes), "pthread_condattr_init")
    #if !canImport(Darwin)
      check(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC), "pthread_condattr_setclock")
    #endif
    check(pthread_cond_init(condition, &attributes), "pthread_cond_init")
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(condition)
    condition.deallocate()
    if ownsMutex { mutex.free() }
  }

  func lock() { mutex.lock() }
  func unlock() { mutex.unlock() }
  func withLock<Result>(_ body: () -> Result) -> Result {
    mutex.lock()
    defer { mutex.unlock() }
    return body()
  }
  func wake() { pthread_cond_signal(condition) }
  func wakeAll() { pthread_cond_broadcast(condition) }

  /// Unlocks the mutex and sleeps until woken, until a deadline on the monotonic clock, or until a spurious
  /// wake-up; then locks the mutex again. False if the deadline has passed.
  func wait(until deadline: UInt64?) -> Bool {
    guard let deadline else {
      check(pthread_cond_wait(condition, mutex.address), "pthread_cond_wait")
      return true
    }
    #if canImport(Darwin)
      let now = monotonicNanoseconds()
      guard now < deadline else { return false }
      var span = timespec(nanoseconds: deadline - now)
      return pthread_cond_timedwait_relative_np(condition, mutex.address, &span) != ETIMEDOUT
    #else
      var time = timespec(nanoseconds: deadline)
      return pthread_cond_timedwait(condition, mutex.address, &time) != ETIMEDOUT
    #endif
  }
}

/// Nanoseconds on the scale of `DispatchTime.uptimeNanoseconds`.
func monotonicNanoseconds() -> UInt64 {
  #if canImport(Darwin)
    nanoseconds(of: CLOCK_UPTIME_RAW)
  #else
    nanoseconds(of: CLOCK_MONOTONIC)
  #endif
}

/// A clock that takes a few nanoseconds to read and ticks every few milliseconds, to measure how long a
/// handler has been running: it is read for each event of a pool. Its scale is not that of
/// `monotonicNanoseconds`.
func coarseNanoseconds() -> UInt64 {
  #if canImport(Darwin)
    nanoseconds(of: CLOCK_MONOTONIC_RAW_APPROX)
  #else
    nanoseconds(of: CLOCK_MONOTONIC_COARSE)
  #endif
}

@inline(__always)
private func nanoseconds(of clock: clockid_t) -> UInt64 {
  var now = timespec()
  clock_gettime(clock, &now)
  return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
}

extension timespec {
  /// Caps at the largest value of the type, so that "for ever" is a very long time.
  fileprivate init(nanoseconds: UInt64) {
    self.init(
      tv_sec: time_t(min(nanoseconds / 1_000_000_000, UInt64(Int32.max))),
      tv_nsec: Int(nanoseconds % 1_000_000_000))
  }
}

/// Ends the program if a call of the system failed that cannot fail unless an invariant is broken.
@inline(__always)
func check(_ status: Int32, _ call: StaticString) {
  require(status == 0, "\(call) failed with error \(status), which EventCore cannot recover from.")
}
