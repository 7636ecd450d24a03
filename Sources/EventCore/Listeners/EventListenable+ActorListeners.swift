// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

// Listeners on the MainActor and on other actors.

extension EventListenable {
  /// Has a closure or a method of the MainActor called for every event of a type, with its priority
  /// and the time of its dispatch: on the main queue, wherever it is registered.
  ///
  /// - Parameters: As for the other forms. A requester is not retained; nil means until it is
  ///   removed.
  /// - Returns: A handle that tells how many events wait for the main queue, and removes the
  ///   listener.
  ///
  /// **Threads**: any, also inside a handler. Somebody has to serve the main queue: an
  /// application's run loop, `dispatchMain()`, or an `async` main function.
  @inlinable
  @discardableResult
  @preconcurrency
  public func addListener<E: Eventable>(
    _ requester: AnyObject?,
    _ callback:
      @escaping @MainActor @Sendable (
        _ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime
      )
      -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      @MainActor @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) ->
        Bool
    )? = nil,
    once: Bool = false
  ) -> any EventListenerHandling {
    listener.addListener(
      requester, .dispatchQueue(.main), nil, isOnce: once,
      HandlerInterest(
        interest, maximumAge: maximumAge, customFilter: customFilter.map { onMainActor($0) }),
      ListenerCallback(onMain: callback))
  }

  /// Has a closure or a method of the MainActor called for every event of a type: on the main
  /// queue, wherever it is registered. The clock is not read for it.
  ///
  /// - Parameters: As for the other forms. A requester is not retained; nil means until it is
  ///   removed.
  /// - Returns: A handle that tells how many events wait for the main queue, and removes the
  ///   listener.
  ///
  /// **Threads**: as for the form with three arguments.
  @inlinable
  @discardableResult
  @preconcurrency
  public func addListener<E: Eventable>(
    _ requester: AnyObject?,
    _ callback: @escaping @MainActor @Sendable (_ event: E) -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      @MainActor @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) ->
        Bool
    )? = nil,
    once: Bool = false
  ) -> any EventListenerHandling {
    listener.addListener(
      requester, .dispatchQueue(.main), nil, isOnce: once,
      HandlerInterest(
        interest, maximumAge: maximumAge, customFilter: customFilter.map { onMainActor($0) }),
      ListenerCallback(onMain: callback))
  }

  /// Has a method of a requester on the MainActor called for every event of a type, with its
  /// priority and the time of its dispatch, on the main queue and without retaining the requester.
  ///
  /// - Parameters: As for other methods that are named without their object.
  /// - Returns: A handle that tells how many events wait for the main queue, and removes the
  ///   listener.
  ///
  /// **Threads**: any, also inside a handler.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public func addListener<Owner: AnyObject, E: Eventable>(
    _ requester: Owner,
    _ method:
      @escaping @MainActor (Owner) ->
      @MainActor (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime)
      -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      @MainActor (Owner) ->
        @MainActor (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false
  ) -> any EventListenerHandling {
    listener.addListener(
      requester, .dispatchQueue(.main), nil, isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, isJudged: customFilter != nil),
      ListenerCallback(onMain: method, filter: customFilter))
  }

  /// Has a method of a requester on the MainActor called for every event of a type, on the main
  /// queue and without retaining the requester. The clock is not read for it.
  ///
  /// - Parameters: As for other methods that are named without their object.
  /// - Returns: A handle that tells how many events wait for the main queue, and removes the
  ///   listener.
  ///
  /// **Threads**: any, also inside a handler.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public func addListener<Owner: AnyObject, E: Eventable>(
    _ requester: Owner,
    _ method: @escaping @MainActor (Owner) -> @MainActor (_ event: E) -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      @MainActor (Owner) ->
        @MainActor (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false
  ) -> any EventListenerHandling {
    listener.addListener(
      requester, .dispatchQueue(.main), nil, isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, isJudged: customFilter != nil),
      ListenerCallback(onMain: method, filter: customFilter))
  }

  /// Has a closure called for every event of a type, with its priority and the time of its
  /// dispatch, on the actor that registers it.
  ///
  /// - Parameters: As for the form that takes the event alone.
  /// - Returns: A handle that removes it.
  ///
  /// **Threads**, **Order**: as for the form that takes the event alone.
  @inlinable
  @discardableResult
  public func addListener<E: Eventable>(
    isolation: isolated (any Actor)?,
    _ callback:
      @escaping (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime)
      -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false
  ) -> any EventListenerHandling {
    listener.addListener(
      nil, .requesterThread, requireIsolation(isolation), isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, customFilter: customFilter),
      ListenerCallback(callback))
  }

  /// Has a closure called for every event of a type on the actor that registers it. It may touch
  /// what the actor guards.
  ///
  /// ```swift
  /// listener.addListener(isolation: #isolation) { (event: TemperatureEvent) in
  ///   self.latest = event.temperatureInCelsius
  /// }
  /// ```
  ///
  /// A closure that is isolated to an actor retains it: the actor lives until the listener is
  /// removed. The form that is given the actor (`addListener(self) { (self: isolated Model, event)
  /// in ... }`) does not. To end with another object, pass it as the requester of the form with a
  /// closure, which runs on its caller's actor, too.
  ///
  /// - Parameters:
  ///   - isolation: `#isolation`, or the actor. Nil, which is what it is outside of any actor,
  ///     traps.
  ///   - callback: What is called on the actor, one event at a time.
  ///   - type: The exact type of event.
  ///   - interest: As for the other forms, as are `maximumAge`, `customFilter`, `once`.
  /// - Returns: A handle that removes it.
  ///
  /// **Threads**: the actor.
  ///
  /// **Order**: as for an event thread (D1 to D3) among all listeners on the same actor. Events
  /// that wait together are handled by one job of the actor's executor, in batches that let its
  /// other work in between.
  @inlinable
  @discardableResult
  public func addListener<E: Eventable>(
    isolation: isolated (any Actor)?,
    _ callback: @escaping (_ event: E) -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false
  ) -> any EventListenerHandling {
    listener.addListener(
      nil, .requesterThread, requireIsolation(isolation), isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, customFilter: customFilter),
      ListenerCallback(callback))
  }

  /// Has a closure called for every event of a type, with its priority and the time of its
  /// dispatch, on an actor, without retaining it.
  ///
  /// - Parameters: As for the form that takes the event alone.
  /// - Returns: A handle that removes it.
  ///
  /// **Threads**, **Order**: as for the form that takes the event alone.
  @inlinable
  @discardableResult
  @preconcurrency
  public func addListener<Owner: Actor, E: Eventable>(
    _ requester: Owner,
    _ callback:
      @escaping @Sendable (
        _ owner: isolated Owner, _ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime
      )
      -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false
  ) -> any EventListenerHandling {
    listener.addListener(
      requester, .requesterThread, requester, isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, customFilter: customFilter),
      ListenerCallback(on: callback))
  }

  /// Has a closure called for every event of a type on an actor, without retaining it: the listener
  /// ends with the actor (D9).
  ///
  /// ```swift
  /// listener.addListener(self) { (self: isolated Model, event: TemperatureEvent) in
  ///   self.latest = event.temperatureInCelsius
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - requester: The actor.
  ///   - callback: What is called on it, with it: name it `self` and declare it `isolated`.
  ///   - type: The exact type of event.
  ///   - interest: As for the other forms, as are `maximumAge`, `customFilter`, `once`.
  /// - Returns: A handle that removes it.
  ///
  /// **Threads**: any, also inside a handler.
  ///
  /// **Order**: as for an event thread (D1 to D3) among all listeners on the same actor.
  @inlinable
  @discardableResult
  @preconcurrency
  public func addListener<Owner: Actor, E: Eventable>(
    _ requester: Owner,
    _ callback: @escaping @Sendable (_ owner: isolated Owner, _ event: E) -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false
  ) -> any EventListenerHandling {
    listener.addListener(
      requester, .requesterThread, requester, isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, customFilter: customFilter),
      ListenerCallback(on: callback))
  }
}
