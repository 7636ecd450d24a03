// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

// The forms of `addEventCallback` on the MainActor that take several interests at once.

extension UIEventThread {
  /// Has a closure or a method of the MainActor called for the events of a type that meet several
  /// interests, with their priority and the time of their dispatch.
  ///
  /// - Parameter interests: What an event has to meet, all of it; an empty set is `.all`. The other
  ///   parameters are those of the form with one interest.
  /// - Returns: A handle that ends the callback.
  ///
  /// **Threads**: any, also inside a callback.
  @inlinable
  @discardableResult
  @preconcurrency
  public func addEventCallback<E: Eventable>(
    _ callback:
      @escaping @MainActor @Sendable (
        _ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interests: Set<EventListenerInterest>, maximumAge: UInt64 = 0,
    customFilter: (
      @MainActor @Sendable (
        _ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Bool
    )? = nil
  ) -> EventCallbackHandle {
    let interest = HandlerInterest<E>(
      interests, maximumAge: maximumAge, customFilter: customFilter.map { onMainActor($0) })
    return addHandler(
      TypedHandler(
        { event, priority, time in MainActor.assumeIsolated { callback(event, priority, time) } },
        interest), eventTypeActions(E.self))
  }

  /// Has a closure or a method of the MainActor called for the events of a type that meet several
  /// interests.
  ///
  /// - Parameter interests: What an event has to meet, all of it; an empty set is `.all`. The other
  ///   parameters are those of the form with one interest.
  /// - Returns: A handle that ends the callback.
  ///
  /// **Threads**: any, also inside a callback.
  @inlinable
  @discardableResult
  @preconcurrency
  public func addEventCallback<E: Eventable>(
    _ callback: @escaping @MainActor @Sendable (_ event: E) -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interests: Set<EventListenerInterest>, maximumAge: UInt64 = 0,
    customFilter: (
      @MainActor @Sendable (
        _ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Bool
    )? = nil
  ) -> EventCallbackHandle {
    let interest = HandlerInterest<E>(
      interests, maximumAge: maximumAge, customFilter: customFilter.map { onMainActor($0) })
    return addHandler(
      TypedHandler({ event in MainActor.assumeIsolated { callback(event) } }, interest),
      eventTypeActions(E.self))
  }

  /// Has a method of this object on the MainActor called for the events of a type that meet
  /// several interests, without retaining the object.
  ///
  /// - Parameter interests: What an event has to meet, all of it; an empty set is `.all`. The other
  ///   parameters are those of the form with one interest.
  /// - Returns: A handle that ends the callback.
  ///
  /// **Threads**: any, also inside a callback.
  @inlinable
  @discardableResult
  @preconcurrency
  @_disfavoredOverload
  public func addEventCallback<Owner: UIEventThread, E: Eventable>(
    _ method: @escaping @MainActor (Owner) -> @MainActor (_ event: E) -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interests: Set<EventListenerInterest>, maximumAge: UInt64 = 0,
    customFilter: (
      @MainActor @Sendable (
        _ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Bool
    )? = nil
  ) -> EventCallbackHandle {
    let call: @Sendable (Owner) -> (E) -> Void = { owner in
      { event in MainActor.assumeIsolated { method(owner)(event) } }
    }
    requireOwner(Owner.self)
    let interest = HandlerInterest<E>(
      interests, maximumAge: maximumAge, customFilter: customFilter.map { onMainActor($0) })
    return addHandler(TypedHandler(call, interest), eventTypeActions(E.self))
  }

  /// Has a method of this object on the MainActor called for the events of a type that meet
  /// several interests, with their priority and the time of their dispatch, without retaining the
  /// object.
  ///
  /// - Parameter interests: What an event has to meet, all of it; an empty set is `.all`. The other
  ///   parameters are those of the form with one interest.
  /// - Returns: A handle that ends the callback.
  ///
  /// **Threads**: any, also inside a callback.
  @inlinable
  @discardableResult
  @preconcurrency
  @_disfavoredOverload
  public func addEventCallback<Owner: UIEventThread, E: Eventable>(
    _ method:
      @escaping @MainActor (Owner) ->
      @MainActor (
        _ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interests: Set<EventListenerInterest>, maximumAge: UInt64 = 0,
    customFilter: (
      @MainActor @Sendable (
        _ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Bool
    )? = nil
  ) -> EventCallbackHandle {
    let call: @Sendable (Owner) -> (E, EventPriority, DispatchTime) -> Void = { owner in
      { event, priority, time in
        MainActor.assumeIsolated { method(owner)(event, priority, time) }
      }
    }
    requireOwner(Owner.self)
    let interest = HandlerInterest<E>(
      interests, maximumAge: maximumAge, customFilter: customFilter.map { onMainActor($0) })
    return addHandler(TypedHandler(call, interest), eventTypeActions(E.self))
  }
}
