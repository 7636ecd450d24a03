// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A gate that opens once and stays open.
final class Latch: @unchecked Sendable {
  // `hasOpened` is guarded by the monitor.
  private let monitor = Monitor()
  private var hasOpened = false

  /// Whether `wait` would return at once. Any thread.
  var isOpen: Bool {
    monitor.lock()
    defer { monitor.unlock() }
    return hasOpened
  }

  /// Lets everybody through, now and later. Any thread.
  func open() {
    monitor.lock()
    hasOpened = true
    monitor.unlock()
    monitor.wakeAll()
  }

  /// Waits until the gate is open. Any thread.
  func wait() {
    _ = wait(until: nil)
  }

  /// Waits until the gate is open, or until a time on the monotonic clock. True if it is open.
  func wait(until deadline: UInt64?) -> Bool {
    monitor.lock()
    defer { monitor.unlock() }
    while !hasOpened {
      guard monitor.wait(until: deadline) else { return hasOpened }
    }
    return true
  }
}
