// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventCoordinator {
  /// Has a closure asked about every event of one type that comes by.
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
  ///   - body: Says whether the event goes on. A closure that names `self` is held by the
  ///     coordinator and holds it: say `[unowned self]`, or name a method (the other form).
  /// - Returns: A handle that removes it.
  ///
  /// **Order**: that in which they were added, and before `intercept(_:)` and `interceptEvent(_:)`.
  ///
  /// **Complexity**: the closure gets the event itself: no cast, no box.
  @inlinable
  @discardableResult
  public final func intercept<E: CoordinateEvents>(
    _ type: E.Type = E.self, _ body: @escaping (_ event: E) -> EventInterception
  ) -> any EventRegistration {
    add(ObjectIdentifier(type)) { payload in
      body(payload.assumingMemoryBound(to: E.self).pointee)
    }
  }

  /// Has a method of this coordinator asked about every event of one type that comes by. It retains
  /// nothing.
  ///
  /// ```swift
  /// intercept(ShopCoordinator.onTeams)
  /// ```
  ///
  /// - Parameter method: A method of this coordinator's class, named without its object.
  /// - Returns: A handle that removes it.
  ///
  /// **Order**: as for the form with a closure.
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
    return add(ObjectIdentifier(E.self)) { [unowned self] payload in
      // The check above.
      method(unsafeDowncast(self, to: Owner.self))(
        payload.assumingMemoryBound(to: E.self).pointee)
    }
  }
}
