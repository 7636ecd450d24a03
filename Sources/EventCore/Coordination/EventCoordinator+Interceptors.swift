// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventCoordinator {
  /// Calls a closure for every event of one type that reaches this coordinator.
  ///
  /// ```swift
  /// intercept(AppEvents.Teams.self) { [unowned self] event in
  ///   switch event {
  ///   case .setFavorite(let team):
  ///     favorites.insert(team)
  ///     return .handled
  ///   }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - type: The exact type of event (D11).
  ///   - body: Returns whether the event goes on. The coordinator retains it, so write `[unowned self]` in
  ///     a closure that uses `self`, or use the form with a method.
  /// - Returns: A handle that removes it.
  ///
  /// **Order**: typed interceptors are called in the order in which they were added, and before
  /// `intercept(_:)` and `interceptEvent(_:)`.
  @inlinable
  @discardableResult
  public final func intercept<E: CoordinateEvents>(
    _ type: E.Type = E.self, _ body: @escaping (_ event: E) -> EventInterception
  ) -> any EventRegistration {
    add(ObjectIdentifier(type)) { payload in
      body(payload.assumingMemoryBound(to: E.self).pointee)
    }
  }

  /// Calls a method of this coordinator for every event of one type that reaches it, and retains nothing.
  ///
  /// ```swift
  /// intercept(ShopCoordinator.onTeams)
  /// ```
  ///
  /// - Parameter method: A method of this coordinator's class, named without its object.
  /// - Returns: A handle that removes it. All else is as for the form with a closure.
  @inlinable
  @discardableResult
  public final func intercept<Owner: EventCoordinator, E: CoordinateEvents>(
    _ method: @escaping (Owner) -> (_ event: E) -> EventInterception
  ) -> any EventRegistration {
    require(
      self is Owner,
      """
      A method that is registered without its object belongs to the coordinator's own class; a \
      method of \(Owner.self) was registered with one of type \
      \(Swift.type(of: self as EventCoordinator)): register it there, or a closure here.
      """)
    // Only `offer` of this coordinator calls it, and its caller holds the coordinator: as `unowned(unsafe)`, since that
    // may be its `deinit`, which emits an event and includes itself, where a safe reference would trap.
    return add(ObjectIdentifier(E.self)) { [unowned(unsafe) self] payload in
      // The check above.
      method(unsafeDowncast(self, to: Owner.self))(
        payload.assumingMemoryBound(to: E.self).pointee)
    }
  }
}
