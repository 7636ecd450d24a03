// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A typed interceptor of a coordinator (``EventCoordinator/intercept(_:_:)``), and its handle. The
/// interceptor stays until it is removed or its coordinator is gone, even if the handle is released.
///
/// **Threads**: that of its coordinator.
final class EventInterceptionHandle: EventRegistration {
  /// The exact type of event (D11).
  let key: ObjectIdentifier
  /// Gets the address of an event of that type. Nil once the interceptor is removed.
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

  /// Whether the interceptor can still be called.
  public var isActive: Bool { body != nil && coordinator != nil }

  /// Removes and frees the interceptor: no further call begins (D6), not even for an event on its way.
  ///
  /// - Returns: False if it had been removed already.
  ///
  /// **Complexity**: O(interceptors of the coordinator), and O(1) for the one that was added last.
  @discardableResult
  public func remove() -> Bool {
    guard body != nil else { return false }
    // Freed at the end of the scope, since freeing runs user code.
    let freed = body
    body = nil
    coordinator?.forget(self)
    return withExtendedLifetime(freed) { true }
  }

  /// The same as ``remove()``, since an interceptor never runs on another thread than its coordinator's.
  @available(*, noasync, message: "An interceptor is removed by remove().")
  @discardableResult
  public func removeAndWait() -> Bool { remove() }
}
