// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What every registration returns: a listener's, a callback's, a tree handler's, an interceptor's.
///
/// **Threads**: any, for every member; those of an interceptor are its coordinators'.
public protocol EventRegistration: AnyObject {
  /// Whether the handler can still be called. False stays false.
  var isActive: Bool { get }

  /// Ends the registration: after the return no further call of the handler begins (D6). One that
  /// runs goes on.
  ///
  /// - Returns: False if it had ended already.
  ///
  /// **Threads**: also inside the handler itself.
  @discardableResult
  func remove() -> Bool

  /// Ends the registration and returns when no call of the handler is running (D6).
  ///
  /// - Returns: False if it had ended already; a call that still runs is waited for all the same.
  ///
  /// **Threads**: inside the handler itself it would wait for itself, and traps; two handlers that
  /// wait for the end of each other wait for ever. It blocks its thread while the handler runs: a
  /// task writes `await removed()`.
  @available(*, noasync, message: "It blocks its thread: write await removed().")
  @discardableResult
  func removeAndWait() -> Bool
}
