// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

// The forms of `addEventCallback` that take several interests at once.

extension EventThread {
  /// Has a closure called for the events of a type that meet several interests, with their priority
  /// and the time of their dispatch.
  ///
  /// ```swift
  /// thread.addEventCallback(
  ///   draw, forEventType: FrameEvent.self,
  ///   interestedIn: [.latestOnly, .youngerThan], maximumAge: 16_000_000)
  /// ```
  ///
  /// With `.latestOnly` the newest of the waiting events is found first, and the other interests
  /// judge that one: if it is turned away, none of the older ones comes in its place.
  ///
  /// - Parameters:
  ///   - callback: As for the form with one interest, as are the other parameters.
  ///   - interests: What an event has to meet, all of it; an empty set is `.all`.
  /// - Returns: A handle that ends the callback.
  ///
  /// **Threads**: any, also inside a callback.
  @inlinable
  @discardableResult
  @preconcurrency
  public func addEventCallback<E: Eventable>(
    _ callback:
      @escaping @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime)
      -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interests: Set<EventListenerInterest>, maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil
  ) -> EventCallbackHandle {
    let interest = HandlerInterest(interests, maximumAge: maximumAge, customFilter: customFilter)
    return addHandler(TypedHandler(callback, interest), eventTypeActions(E.self))
  }

  /// Has a closure called for the events of a type that meet several interests.
  ///
  /// - Parameters:
  ///   - callback: As for the form with one interest, as are the other parameters.
  ///   - interests: What an event has to meet, all of it; an empty set is `.all`.
  /// - Returns: A handle that ends the callback.
  ///
  /// **Threads**: any, also inside a callback.
  @inlinable
  @discardableResult
  @preconcurrency
  public func addEventCallback<E: Eventable>(
    _ callback: @escaping @Sendable (_ event: E) -> Void, forEventType type: E.Type = E.self,
    interestedIn interests: Set<EventListenerInterest>, maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil
  ) -> EventCallbackHandle {
    let interest = HandlerInterest(interests, maximumAge: maximumAge, customFilter: customFilter)
    return addHandler(TypedHandler(callback, interest), eventTypeActions(E.self))
  }

  /// Has a method of this thread called for the events of a type that meet several interests,
  /// without retaining the thread.
  ///
  /// - Parameters:
  ///   - method: A method of the thread's class, named without its object.
  ///   - interests: What an event has to meet, all of it; an empty set is `.all`.
  /// - Returns: A handle that ends the callback.
  ///
  /// **Threads**: any, also inside a callback.
  @inlinable
  @discardableResult
  @preconcurrency
  @_disfavoredOverload
  public func addEventCallback<Owner: EventThread, E: Eventable>(
    _ method: @escaping @Sendable (Owner) -> (_ event: E) -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interests: Set<EventListenerInterest>, maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil
  ) -> EventCallbackHandle {
    requireOwner(Owner.self)
    let interest = HandlerInterest(interests, maximumAge: maximumAge, customFilter: customFilter)
    return addHandler(TypedHandler(method, interest), eventTypeActions(E.self))
  }

  /// Has a method of this thread called for the events of a type that meet several interests, with
  /// their priority and the time of their dispatch, without retaining the thread.
  ///
  /// - Parameters:
  ///   - method: A method of the thread's class, named without its object.
  ///   - interests: What an event has to meet, all of it; an empty set is `.all`.
  /// - Returns: A handle that ends the callback.
  ///
  /// **Threads**: any, also inside a callback.
  @inlinable
  @discardableResult
  @preconcurrency
  @_disfavoredOverload
  public func addEventCallback<Owner: EventThread, E: Eventable>(
    _ method:
      @escaping @Sendable (Owner) -> (
        _ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interests: Set<EventListenerInterest>, maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil
  ) -> EventCallbackHandle {
    requireOwner(Owner.self)
    let interest = HandlerInterest(interests, maximumAge: maximumAge, customFilter: customFilter)
    return addHandler(TypedHandler(method, interest), eventTypeActions(E.self))
  }
}
