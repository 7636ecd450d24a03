// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Keeps a listener as long as the token lives: store it in a property of whoever listens.
///
/// ```swift
/// let token = Score.listen(executeOn: .listenerThread) { score in print(score) }
/// ```
///
/// The listener ends with the token's last reference. A token that nobody keeps ends it at once, and
/// Swift may release a local constant after its last use.
///
/// **Threads**: any, for every member.
public final class EventListenerToken: Sendable {
  /// The listener's handle.
  public let handle: any EventListenerHandling

  @usableFromInline
  init(_ handle: any EventListenerHandling) {
    self.handle = handle
  }

  deinit {
    handle.remove()
  }

  /// Ends the listener before the token. As ``EventRegistration/remove()``.
  @discardableResult
  public func remove() -> Bool { handle.remove() }
}

extension Eventable {
  /// Calls a closure for every event of this type, where it is registered, until the token is released. There is
  /// neither a filter nor `once`: the closure passes over what it does not want, and the token ends the listener. All
  /// else is as for ``Eventable/addListener(_:interestedIn:maximumAge:customFilter:once:on:isolation:_:)``.
  @inlinable
  public static func listen(
    interestedIn interest: EventListenerInterest = .all, maximumAge: UInt64 = 0,
    on source: any EventListenable = EventCentral.shared, isolation: isolated (any Actor)? = #isolation,
    _ callback: @escaping (_ event: Self) -> Void
  ) -> EventListenerToken {
    EventListenerToken(
      addListener(
        nil, callback, interestedIn: interest, maximumAge: maximumAge, on: source, isolation: isolation))
  }

  /// Calls a closure for every event of this type, in the place that `executeOn` names, until the token is released.
  /// There is neither a filter nor `once`, as in the other form. All else is as for
  /// ``Eventable/addListener(_:executeOn:interestedIn:maximumAge:customFilter:once:on:isolation:_:)-(_,_,_,_,_,_,_,_,(Self)->Void)``.
  @inlinable
  public static func listen(
    executeOn: ExecuteEventOn, interestedIn interest: EventListenerInterest = .all, maximumAge: UInt64 = 0,
    on source: any EventListenable = EventCentral.shared, isolation: isolated (any Actor)? = #isolation,
    _ callback: @escaping @Sendable (_ event: Self) -> Void
  ) -> EventListenerToken {
    EventListenerToken(
      addListener(
        nil, callback, executeOn: executeOn, interestedIn: interest, maximumAge: maximumAge, on: source,
        isolation: isolation))
  }

  /// Do not call this: a listener has an owner.
  @available(
    *, unavailable,
    message: "Name the owner, with which it ends: addListener(self) { … }; or write listen { … } and keep the token."
  )
  public static func addListener(_ callback: @escaping (_ event: Self) -> Void) {}
}

extension EventListenerToken: ActiveByItself {}
