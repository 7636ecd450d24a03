// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation

/// A value that is guarded by a lock of the system's, which sanitizers understand, unlike that of `Mutex`.
final class Locked<Value>: @unchecked Sendable {
  // Used only with the lock held.
  private var value: Value
  private let lock = NSLock()

  init(_ value: Value) {
    self.value = value
  }

  /// `body` runs no user code, and takes no other lock.
  func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
    lock.lock()
    defer { lock.unlock() }
    return try body(&value)
  }
}
