// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import Testing

/// A door that one thread waits at until another opens it. A gate that nobody opens fails the test
/// after ten minutes instead of hanging it. The limit is that long because tests that block the few
/// threads of the cooperative pool may hold up those that need one.
public final class Gate: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)

  public init() {}

  /// Lets one waiter through.
  public func open() { semaphore.signal() }

  /// Waits until the gate is opened. After the time-out it fails the test and returns false.
  @discardableResult
  public func pass(
    within seconds: Int = 600, file: StaticString = #fileID, line: Int = #line
  ) -> Bool {
    if semaphore.wait(timeout: .now() + .seconds(seconds)) == .success { return true }
    Issue.record("Nobody opened the gate of \(file):\(line) within \(seconds) s.")
    return false
  }

  /// Goes through if the gate is open, without waiting.
  public func passIfOpen() -> Bool { semaphore.wait(timeout: .now()) == .success }
}
