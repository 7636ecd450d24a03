// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

// The forms on the MainActor and on other actors that take several interests at once.

extension Eventable {
  /// Has a closure or a method of the MainActor called for the events of this type that meet
  /// several interests, with their priority and the time of their dispatch, on the main queue.
  ///
  /// - Parameter interests: What an event has to meet, all of it; an empty set is `.all`. With
  ///   `.latestOnly` the newest of the waiting events is found first, and the others judge that
  ///   one. The other parameters are those of the form with one interest.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**: as the form with one interest.
  @inlinable
  @discardableResult
  @preconcurrency
  public static func addListener(
    _ requester: AnyObject?,
    _ callback:
      @escaping @MainActor @Sendable (
        _ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime
      )
      -> Void,
    interestedIn interests: Set<EventListenerInterest>,
    maximumAge: UInt64 = 0,
    customFilter: (
      @MainActor @Sendable (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime)
        -> Bool
    )? = nil,
    once: Bool = false,
    on central: EventCentral = .shared
  ) -> any EventListenerHandling {
    central.listener.addListener(
      requester, .dispatchQueue(.main), nil, isOnce: once,
      HandlerInterest(
        interests, maximumAge: maximumAge, customFilter: customFilter.map { onMainActor($0) }),
      ListenerCallback(onMain: callback))
  }

  /// Has a closure or a method of the MainActor called for the events of this type that meet
  /// several interests, on the main queue.
  ///
  /// - Parameter interests: What an event has to meet, all of it; an empty set is `.all`. With
  ///   `.latestOnly` the newest of the waiting events is found first, and the others judge that
  ///   one. The other parameters are those of the form with one interest.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**: as the form with one interest.
  @inlinable
  @discardableResult
  @preconcurrency
  public static func addListener(
    _ requester: AnyObject?,
    _ callback: @escaping @MainActor @Sendable (_ event: Self) -> Void,
    interestedIn interests: Set<EventListenerInterest>,
    maximumAge: UInt64 = 0,
    customFilter: (
      @MainActor @Sendable (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime)
        -> Bool
    )? = nil,
    once: Bool = false,
    on central: EventCentral = .shared
  ) -> any EventListenerHandling {
    central.listener.addListener(
      requester, .dispatchQueue(.main), nil, isOnce: once,
      HandlerInterest(
        interests, maximumAge: maximumAge, customFilter: customFilter.map { onMainActor($0) }),
      ListenerCallback(onMain: callback))
  }

  /// Has a method of a requester on the MainActor called for the events of this type that meet
  /// several interests, with their priority and the time of their dispatch, on the main queue and
  /// without retaining the requester.
  ///
  /// - Parameter interests: What an event has to meet, all of it; an empty set is `.all`. With
  ///   `.latestOnly` the newest of the waiting events is found first, and the others judge that
  ///   one. The other parameters are those of the form with one interest.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**: as the form with one interest.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public static func addListener<Owner: AnyObject>(
    _ requester: Owner,
    _ method:
      @escaping @MainActor (Owner) ->
      @MainActor (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime)
      -> Void,
    interestedIn interests: Set<EventListenerInterest>,
    maximumAge: UInt64 = 0,
    customFilter: (
      @MainActor (Owner) ->
        @MainActor (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on central: EventCentral = .shared
  ) -> any EventListenerHandling {
    central.listener.addListener(
      requester, .dispatchQueue(.main), nil, isOnce: once,
      HandlerInterest(interests, maximumAge: maximumAge, isJudged: customFilter != nil),
      ListenerCallback(onMain: method, filter: customFilter))
  }

  /// Has a method of a requester on the MainActor called for the events of this type that meet
  /// several interests, on the main queue and without retaining the requester.
  ///
  /// - Parameter interests: What an event has to meet, all of it; an empty set is `.all`. With
  ///   `.latestOnly` the newest of the waiting events is found first, and the others judge that
  ///   one. The other parameters are those of the form with one interest.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**: as the form with one interest.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public static func addListener<Owner: AnyObject>(
    _ requester: Owner,
    _ method: @escaping @MainActor (Owner) -> @MainActor (_ event: Self) -> Void,
    interestedIn interests: Set<EventListenerInterest>,
    maximumAge: UInt64 = 0,
    customFilter: (
      @MainActor (Owner) ->
        @MainActor (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on central: EventCentral = .shared
  ) -> any EventListenerHandling {
    central.listener.addListener(
      requester, .dispatchQueue(.main), nil, isOnce: once,
      HandlerInterest(interests, maximumAge: maximumAge, isJudged: customFilter != nil),
      ListenerCallback(onMain: method, filter: customFilter))
  }

  /// Has a closure called for the events of this type that meet several interests, with their
  /// priority and the time of their dispatch, on the actor that registers it.
  ///
  /// - Parameter interests: What an event has to meet, all of it; an empty set is `.all`. With
  ///   `.latestOnly` the newest of the waiting events is found first, and the others judge that
  ///   one. The other parameters are those of the form with one interest.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**: as the form with one interest.
  @inlinable
  @discardableResult
  public static func addListener(
    isolation: isolated (any Actor)?,
    _ callback:
      @escaping (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime)
      -> Void,
    interestedIn interests: Set<EventListenerInterest>,
    maximumAge: UInt64 = 0,
    customFilter: (
      (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on central: EventCentral = .shared
  ) -> any EventListenerHandling {
    central.listener.addListener(
      nil, .requesterThread, requireIsolation(isolation), isOnce: once,
      HandlerInterest(interests, maximumAge: maximumAge, customFilter: customFilter),
      ListenerCallback(callback))
  }

  /// Has a closure called for the events of this type that meet several interests, on the actor
  /// that registers it.
  ///
  /// - Parameter interests: What an event has to meet, all of it; an empty set is `.all`. With
  ///   `.latestOnly` the newest of the waiting events is found first, and the others judge that
  ///   one. The other parameters are those of the form with one interest.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**: as the form with one interest.
  @inlinable
  @discardableResult
  public static func addListener(
    isolation: isolated (any Actor)?,
    _ callback: @escaping (_ event: Self) -> Void,
    interestedIn interests: Set<EventListenerInterest>,
    maximumAge: UInt64 = 0,
    customFilter: (
      (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on central: EventCentral = .shared
  ) -> any EventListenerHandling {
    central.listener.addListener(
      nil, .requesterThread, requireIsolation(isolation), isOnce: once,
      HandlerInterest(interests, maximumAge: maximumAge, customFilter: customFilter),
      ListenerCallback(callback))
  }

  /// Has a closure called for the events of this type that meet several interests, with their
  /// priority and the time of their dispatch, on an actor, without retaining it.
  ///
  /// - Parameter interests: What an event has to meet, all of it; an empty set is `.all`. With
  ///   `.latestOnly` the newest of the waiting events is found first, and the others judge that
  ///   one. The other parameters are those of the form with one interest.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**: as the form with one interest.
  @inlinable
  @discardableResult
  @preconcurrency
  public static func addListener<Owner: Actor>(
    _ requester: Owner,
    _ callback:
      @escaping @Sendable (
        _ owner: isolated Owner, _ event: Self, _ priority: EventPriority,
        _ dispatchTime: DispatchTime
      )
      -> Void,
    interestedIn interests: Set<EventListenerInterest>,
    maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on central: EventCentral = .shared
  ) -> any EventListenerHandling {
    central.listener.addListener(
      requester, .requesterThread, requester, isOnce: once,
      HandlerInterest(interests, maximumAge: maximumAge, customFilter: customFilter),
      ListenerCallback(on: callback))
  }

  /// Has a closure called for the events of this type that meet several interests, on an actor,
  /// without retaining it.
  ///
  /// - Parameter interests: What an event has to meet, all of it; an empty set is `.all`. With
  ///   `.latestOnly` the newest of the waiting events is found first, and the others judge that
  ///   one. The other parameters are those of the form with one interest.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**: as the form with one interest.
  @inlinable
  @discardableResult
  @preconcurrency
  public static func addListener<Owner: Actor>(
    _ requester: Owner,
    _ callback: @escaping @Sendable (_ owner: isolated Owner, _ event: Self) -> Void,
    interestedIn interests: Set<EventListenerInterest>,
    maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on central: EventCentral = .shared
  ) -> any EventListenerHandling {
    central.listener.addListener(
      requester, .requesterThread, requester, isOnce: once,
      HandlerInterest(interests, maximumAge: maximumAge, customFilter: customFilter),
      ListenerCallback(on: callback))
  }
}
