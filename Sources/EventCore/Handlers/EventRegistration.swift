// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The handle of a listener, a callback, a tree's handler or an interceptor.
///
/// **Threads**: any, for every member; for an interceptor its coordinator's thread.
public protocol EventRegistration: AnyObject {
  /// Whether the handler can still be called. False stays false.
  var isActive: Bool { get }

  /// Ends the registration: no further call of the handler begins (D6). A running call continues.
  ///
  /// - Returns: False if it had ended already.
  ///
  /// **Threads**: any, also inside the handler itself.
  @discardableResult
  func remove() -> Bool

  /// Ends the registration and returns when no call of the handler is running (D6).
  ///
  /// - Returns: False if it had ended already; it waits for a running call in either case.
  ///
  /// **Threads**: it blocks the calling thread while the handler runs; in a task write `await removed()`.
  /// Inside the handler itself it traps; that of a coordinator's interceptor, which runs on the caller's thread, returns
  /// at once. Two handlers that wait for each other wait for ever.
  @available(*, noasync, message: "It blocks its thread: write await removed().")
  @discardableResult
  func removeAndWait() -> Bool
}
