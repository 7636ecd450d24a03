// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

// Listeners with a method that is named without its object, which retain nothing.
//
// Here and in the other files, the forms with a method are disfavoured: the compiler does not infer the
// result of a closure with several statements, so `{ event in … }` could also take the owner and return a
// function, and would be ambiguous.
//
// A filter is a closure and not a second method, since the compiler does not check the isolation of a
// function that a function returns: it would accept an actor's method for any thread.

extension Eventable {
  /// Calls a method of the requester for every event of this type, with its priority and the time of its
  /// dispatch, where it is registered, and does not retain the requester.
  ///
  /// ```swift
  /// TemperatureRatingEvent.addListener(self, Model.onRating)
  /// ```
  ///
  /// - Parameters:
  ///   - requester: The object of the method. The listener ends with it (D9).
  ///   - method: A method of the requester's class, named without its object.
  ///   - interest: For which events the method is called; the others are skipped and counted.
  ///   - maximumAge: With `.youngerThan`: the age in nanoseconds from which on an event is too old.
  ///   - customFilter: With `.custom`: returns true for an event for which the method is called:
  ///     `{ owner, event, priority, dispatchTime in owner.wants(event) }`.
  ///   - once: Ends the listener with its first call.
  ///   - source: What it listens to (``EventListenable``).
  ///   - isolation: Leave it out. On an actor, the method is called on that actor.
  /// - Returns: The listener's handle.
  ///
  /// **Threads**, **Order**: as for the closure that is called where it is registered. Pass a method of a
  /// global actor other than the MainActor inside a closure: the compiler does not check the isolation of a
  /// function that a function returns.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public static func addListener<Owner: AnyObject>(
    _ requester: Owner,
    _ method:
      @escaping (Owner) -> (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime)
      -> Void,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      (_ owner: Owner, _ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on source: any EventListenable = EventCentral.shared,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    source.listener.addListener(
      requester, nil, isolation, isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, isJudged: customFilter != nil),
      HandlerCallback(method, filter: customFilter))
  }

  /// Calls a method of the requester for every event of this type, where it is registered, and does not
  /// retain the requester. All else is as for the method with three arguments.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public static func addListener<Owner: AnyObject>(
    _ requester: Owner,
    _ method: @escaping (Owner) -> (_ event: Self) -> Void,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      (_ owner: Owner, _ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on source: any EventListenable = EventCentral.shared,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    source.listener.addListener(
      requester, nil, isolation, isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, isJudged: customFilter != nil),
      HandlerCallback(method, filter: customFilter))
  }

  /// Calls a method of a `Sendable` requester for every event of this type, in the place that `executeOn`
  /// names, and does not retain the requester. All else is as for the method that is called where it is
  /// registered.
  ///
  /// **Threads**: any, also inside a handler. Leave `executeOn:` out for a method of the MainActor.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public static func addListener<Owner: AnyObject & Sendable>(
    _ requester: Owner,
    _ method: @escaping @Sendable (Owner) -> (_ event: Self) -> Void,
    executeOn: ExecuteEventOn,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (
        _ owner: Owner, _ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Bool
    )? = nil,
    once: Bool = false,
    on source: any EventListenable = EventCentral.shared,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    source.listener.addListener(
      requester, executeOn, isolation, isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, isJudged: customFilter != nil),
      HandlerCallback(method, filter: customFilter))
  }
}
