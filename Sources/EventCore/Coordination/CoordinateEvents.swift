// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// An event that goes up a user interface, or any other hierarchy, until a coordinator handles it.
///
/// Declare one enum for each domain, within a namespace:
///
/// ```swift
/// struct AppEvents {
///   enum Teams: CoordinateEvents, Equatable {
///     case setFavorite(_ team: Team)
///   }
/// }
///
/// emitEvent(AppEvents.Teams.setFavorite(team))
/// ```
///
/// Such an event is an ``Eventable`` as well, so it can be queued and stacked. Events that reach the top
/// coordinator unhandled can go on to an ``EventCentral``
/// (``EventCoordinator/dispatchUnhandled(to:priority:)``).
public protocol CoordinateEvents: Eventable {}

/// What an interceptor did with an event.
public enum EventInterception: Sendable {
  /// The event stops here.
  case handled
  /// The event goes on upwards, whatever the interceptor did with it.
  case pass
}

/// The result of an emission.
public enum EventEmission: Sendable {
  /// An interceptor stopped the event: by ``EventInterception/handled``, or true from `interceptEvent(_:)`.
  case handled
  /// No interceptor stopped the event.
  case unhandled
}
