// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A typed interceptor of a coordinator (``EventCoordinator/intercept(_:_:)``), and the way to
/// remove it. It may be ignored: the interceptor stays until it is removed or its coordinator is
/// gone.
///
/// **Threads**: that of its coordinator.
final class EventInterceptionHandle: EventRegistration {
  /// Which type it is for (D11: the exact one).
  let key: ObjectIdentifier
  /// Gets the address of the event, whose type is that of the key. Nil once it is removed.
  private(set) var body: ((UnsafeRawPointer) -> EventInterception)?
  private weak var coordinator: EventCoordinator?

  init(
    key: ObjectIdentifier, coordinator: EventCoordinator,
    body: @escaping (UnsafeRawPointer) -> EventInterception
  ) {
    self.key = key
    self.coordinator = coordinator
    self.body = body
  }

  /// Whether it can still be asked.
  public var isActive: Bool { body != nil && coordinator != nil }

  /// Removes the interceptor: after the return no further call of it begins (D6), not even for an
  /// event that is on its way. What it held is freed.
  ///
  /// - Returns: False if it had been removed already.
  @discardableResult
  public func remove() -> Bool {
    guard body != nil else { return false }
    // Freed at the end of the scope, when everything here is consistent: freeing is user code.
    let freed = body
    body = nil
    coordinator?.forget(self)
    return withExtendedLifetime(freed) { true }
  }

  /// The same as ``remove()``: all calls of an interceptor are on the thread of its coordinator, so
  /// that none can be running elsewhere.
  @available(*, noasync, message: "An interceptor is removed by remove().")
  @discardableResult
  public func removeAndWait() -> Bool { remove() }
}
