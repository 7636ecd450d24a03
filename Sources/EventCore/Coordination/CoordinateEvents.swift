// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What happened deep in a user interface, or in any other hierarchy, told to those above.
///
/// Declare one enum for each domain, in a namespace of its own:
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
/// Such an event is an ``Eventable`` as well: it can be queued and stacked, and what reaches the
/// top of the coordinators unhandled can go on to an ``EventCentral``
/// (``EventCoordinator/dispatchUnhandled(to:priority:)``).
public protocol CoordinateEvents: Eventable {}

/// What an interceptor did with an event.
public enum EventInterception: Sendable {
  /// The event has arrived: nobody further up is asked.
  case handled
  /// The event goes on to the next one up, whatever the interceptor did with it.
  case pass
}

/// The result of an emission.
public enum EventEmission: Sendable {
  /// Somebody stopped it: with ``EventInterception/handled``, or with true from
  /// `interceptEvent(_:)`.
  case handled
  /// It reached the top and nobody had stopped it, or there was nobody to ask.
  case unhandled
}
