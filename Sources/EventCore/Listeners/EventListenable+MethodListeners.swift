// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

// Listeners with a method that is named without its object, which retain nothing.

extension EventListenable {
  /// Has a method of the requester called for every event of a type, with its priority and the time
  /// of its dispatch, without retaining the requester.
  ///
  /// ```swift
  /// listener.addListener(self, Model.onRating)
  /// ```
  ///
  /// - Parameters:
  ///   - requester: Whose method it is. The listener ends with it (D9).
  ///   - method: A method of the requester's class, named without its object.
  ///   - type: The exact type of event.
  ///   - executeOn: Where it is called; by default in the context that registers it.
  ///   - interest: Which of these events it wants; the others are skipped and counted.
  ///   - maximumAge: With `.youngerThan`: the age in nanoseconds from which on an event is too old.
  ///   - customFilter: With `.custom`: a method that returns true for an event that it wants, named
  ///     without its object, too.
  ///   - once: Ends the listener with its first call.
  ///   - isolation: Leave it out. Registered on an actor, `.requesterThread` is that actor.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**: as for the form with a closure.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public func addListener<Owner: AnyObject, E: Eventable>(
    _ requester: Owner,
    _ method:
      @escaping (Owner) -> (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime)
      -> Void,
    forEventType type: E.Type = E.self,
    executeOn: ExecuteEventOn = .requesterThread,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      (Owner) -> (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    listener.addListener(
      requester, executeOn, isolation, isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, isJudged: customFilter != nil),
      ListenerCallback(method, filter: customFilter))
  }

  /// Has a method of the requester called for every event of a type, without retaining the
  /// requester. The clock is not read for it.
  ///
  /// - Parameters: As for a method with three arguments.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**: as for the form with a closure.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public func addListener<Owner: AnyObject, E: Eventable>(
    _ requester: Owner,
    _ method: @escaping (Owner) -> (_ event: E) -> Void,
    forEventType type: E.Type = E.self,
    executeOn: ExecuteEventOn = .requesterThread,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      (Owner) -> (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    listener.addListener(
      requester, executeOn, isolation, isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, isJudged: customFilter != nil),
      ListenerCallback(method, filter: customFilter))
  }

  /// Has a method of the requester called for the events of a type that a closure admits, with
  /// their priority and the time of their dispatch, without retaining the requester.
  ///
  /// - Parameter customFilter: With `.custom`: returns true for an event that the method wants. The
  ///   other parameters are those of the form whose filter is a method, too.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**: as for the form with a closure.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public func addListener<Owner: AnyObject, E: Eventable>(
    _ requester: Owner,
    _ method:
      @escaping (Owner) -> (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime)
      -> Void,
    forEventType type: E.Type = E.self,
    executeOn: ExecuteEventOn = .requesterThread,
    interestedIn interest: EventListenerInterest,
    maximumAge: UInt64 = 0,
    customFilter:
      @escaping (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool,
    once: Bool = false,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    listener.addListener(
      requester, executeOn, isolation, isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, customFilter: customFilter),
      ListenerCallback(method, filter: nil))
  }

  /// Has a method of the requester called for the events of a type that a closure admits, without
  /// retaining the requester.
  ///
  /// - Parameter customFilter: With `.custom`: returns true for an event that the method wants. The
  ///   other parameters are those of the form whose filter is a method, too.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**: as for the form with a closure.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public func addListener<Owner: AnyObject, E: Eventable>(
    _ requester: Owner,
    _ method: @escaping (Owner) -> (_ event: E) -> Void,
    forEventType type: E.Type = E.self,
    executeOn: ExecuteEventOn = .requesterThread,
    interestedIn interest: EventListenerInterest,
    maximumAge: UInt64 = 0,
    customFilter:
      @escaping (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool,
    once: Bool = false,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    listener.addListener(
      requester, executeOn, isolation, isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, customFilter: customFilter),
      ListenerCallback(method, filter: nil))
  }
}
