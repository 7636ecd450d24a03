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

  /// `body` runs no user code. Of other locks it takes those of the client alone, which calls nobody under one; only that
  /// of a bridge's registrations comes before others of this kind: of a registration, and of its link's subscriptions.
  func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
    lock.lock()
    defer { lock.unlock() }
    return try body(&value)
  }
}
