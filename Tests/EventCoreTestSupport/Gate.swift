// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// A door that one thread waits at until another opens it. A gate that nobody opens fails the test
/// after ten minutes instead of hanging it: the tests that block the few threads of the cooperative
/// pool may hold up those that need one for a long time.
public final class Gate: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)

  public init() {}

  /// Lets one waiter through.
  public func open() { semaphore.signal() }

  /// Waits until the gate is opened. False after the time-out.
  @discardableResult
  public func pass(within seconds: Int = 600) -> Bool {
    semaphore.wait(timeout: .now() + .seconds(seconds)) == .success
  }
}
