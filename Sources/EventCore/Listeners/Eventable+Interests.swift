// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

// The forms that take several interests at once.

extension Eventable {
  /// Has a closure or a method called for the events of this type that meet several interests, with
  /// their priority and the time of their dispatch, for as long as its requester lives.
  ///
  /// - Parameter interests: What an event has to meet, all of it; an empty set is `.all`. With
  ///   `.latestOnly` the newest of the waiting events is found first, and the others judge that
  ///   one. The other parameters are those of the form with one interest.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**, **Ownership**: as the form with one interest.
  @inlinable
  @discardableResult
  public static func addListener<Owner: AnyObject>(
    _ requester: Owner,
    _ callback:
      @escaping (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime)
      -> Void,
    executeOn: ExecuteEventOn = .requesterThread,
    interestedIn interests: Set<EventListenerInterest>,
    maximumAge: UInt64 = 0,
    customFilter: (
      (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on central: EventCentral = .shared,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    central.listener.addListener(
      requester, executeOn, isolation, isOnce: once,
      HandlerInterest(interests, maximumAge: maximumAge, customFilter: customFilter),
      ListenerCallback(callback))
  }

  /// Has a closure or a method called for the events of this type that meet several interests, for
  /// as long as its requester lives.
  ///
  /// - Parameter interests: What an event has to meet, all of it; an empty set is `.all`. With
  ///   `.latestOnly` the newest of the waiting events is found first, and the others judge that
  ///   one. The other parameters are those of the form with one interest.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**, **Ownership**: as the form with one interest.
  @inlinable
  @discardableResult
  public static func addListener<Owner: AnyObject>(
    _ requester: Owner,
    _ callback: @escaping (_ event: Self) -> Void,
    executeOn: ExecuteEventOn = .requesterThread,
    interestedIn interests: Set<EventListenerInterest>,
    maximumAge: UInt64 = 0,
    customFilter: (
      (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on central: EventCentral = .shared,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    central.listener.addListener(
      requester, executeOn, isolation, isOnce: once,
      HandlerInterest(interests, maximumAge: maximumAge, customFilter: customFilter),
      ListenerCallback(callback))
  }

  /// Has a closure called for the events of this type that meet several interests, with their
  /// priority and the time of their dispatch, with or without a requester.
  ///
  /// - Parameter interests: What an event has to meet, all of it; an empty set is `.all`. With
  ///   `.latestOnly` the newest of the waiting events is found first, and the others judge that
  ///   one. The other parameters are those of the form with one interest.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**, **Ownership**: as the form with one interest.
  @inlinable
  @discardableResult
  @preconcurrency
  public static func addListener(
    _ requester: AnyObject?,
    _ callback:
      @escaping @Sendable (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime)
      -> Void,
    executeOn: ExecuteEventOn = .requesterThread,
    interestedIn interests: Set<EventListenerInterest>,
    maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on central: EventCentral = .shared,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    central.listener.addListener(
      requester, executeOn, isolation, isOnce: once,
      HandlerInterest(interests, maximumAge: maximumAge, customFilter: customFilter),
      ListenerCallback(callback))
  }

  /// Has a closure called for the events of this type that meet several interests, with or without
  /// a requester.
  ///
  /// - Parameter interests: What an event has to meet, all of it; an empty set is `.all`. With
  ///   `.latestOnly` the newest of the waiting events is found first, and the others judge that
  ///   one. The other parameters are those of the form with one interest.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**, **Ownership**: as the form with one interest.
  @inlinable
  @discardableResult
  @preconcurrency
  public static func addListener(
    _ requester: AnyObject?,
    _ callback: @escaping @Sendable (_ event: Self) -> Void,
    executeOn: ExecuteEventOn = .requesterThread,
    interestedIn interests: Set<EventListenerInterest>,
    maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on central: EventCentral = .shared,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    central.listener.addListener(
      requester, executeOn, isolation, isOnce: once,
      HandlerInterest(interests, maximumAge: maximumAge, customFilter: customFilter),
      ListenerCallback(callback))
  }

  /// Has a method of a requester called for the events of this type that meet several interests,
  /// with their priority and the time of their dispatch, without retaining the requester.
  ///
  /// - Parameter interests: What an event has to meet, all of it; an empty set is `.all`. With
  ///   `.latestOnly` the newest of the waiting events is found first, and the others judge that
  ///   one. The other parameters are those of the form with one interest.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**, **Ownership**: as the form with one interest.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public static func addListener<Owner: AnyObject>(
    _ requester: Owner,
    _ method:
      @escaping (Owner) -> (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime)
      -> Void,
    executeOn: ExecuteEventOn = .requesterThread,
    interestedIn interests: Set<EventListenerInterest>,
    maximumAge: UInt64 = 0,
    customFilter: (
      (Owner) -> (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on central: EventCentral = .shared,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    central.listener.addListener(
      requester, executeOn, isolation, isOnce: once,
      HandlerInterest(interests, maximumAge: maximumAge, isJudged: customFilter != nil),
      ListenerCallback(method, filter: customFilter))
  }

  /// Has a method of a requester called for the events of this type that meet several interests,
  /// without retaining the requester.
  ///
  /// - Parameter interests: What an event has to meet, all of it; an empty set is `.all`. With
  ///   `.latestOnly` the newest of the waiting events is found first, and the others judge that
  ///   one. The other parameters are those of the form with one interest.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**, **Ownership**: as the form with one interest.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public static func addListener<Owner: AnyObject>(
    _ requester: Owner,
    _ method: @escaping (Owner) -> (_ event: Self) -> Void,
    executeOn: ExecuteEventOn = .requesterThread,
    interestedIn interests: Set<EventListenerInterest>,
    maximumAge: UInt64 = 0,
    customFilter: (
      (Owner) -> (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on central: EventCentral = .shared,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    central.listener.addListener(
      requester, executeOn, isolation, isOnce: once,
      HandlerInterest(interests, maximumAge: maximumAge, isJudged: customFilter != nil),
      ListenerCallback(method, filter: customFilter))
  }
}
