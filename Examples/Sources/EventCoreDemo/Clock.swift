// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import MachineSamples

/// The monotonic clock, in nanoseconds: the scale of `DispatchTime.uptimeNanoseconds`.
enum Clock {
  static let second: UInt64 = 1_000_000_000

  static func now() -> UInt64 { DispatchTime.now().uptimeNanoseconds }

  /// Sleeps until a deadline, so that a delay before the call does not add up.
  static func sleep(until deadline: UInt64) {
    #if canImport(Darwin)
      while true {
        let now = now()
        guard now < deadline else { return }
        var span = timespec(nanoseconds: deadline - now)
        nanosleep(&span, nil)
      }
    #else
      var time = timespec(nanoseconds: deadline)
      while clock_nanosleep(CLOCK_MONOTONIC, Int32(TIMER_ABSTIME), &time, nil) == EINTR {}
    #endif
  }
}

extension timespec {
  fileprivate init(nanoseconds: UInt64) {
    self.init(
      tv_sec: time_t(nanoseconds / Clock.second), tv_nsec: Int(nanoseconds % Clock.second))
  }
}
