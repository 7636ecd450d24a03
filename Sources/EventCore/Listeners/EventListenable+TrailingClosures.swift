// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

// The closure comes last, so that it can stand behind the parentheses. Disfavoured: without
// anything between requester and closure the other forms are meant, which are the same then.

extension EventListenable {
  /// Has a closure that comes last called for every event of a type, with its priority and the time
  /// of its dispatch, for as long as its requester lives.
  ///
  /// ```swift
  /// listener.addListener(self, executeOn: .listenerThread) { (event: TemperatureEvent) in
  ///   print(event)
  /// }
  /// ```
  ///
  /// - Parameters: As for the form with the callback in second place.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**, **Complexity**: as there.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public func addListener<Owner: AnyObject, E: Eventable>(
    _ requester: Owner,
    forEventType type: E.Type = E.self,
    executeOn: ExecuteEventOn = .requesterThread,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    isolation: isolated (any Actor)? = #isolation,
    _ callback:
      @escaping (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime)
      -> Void
  ) -> any EventListenerHandling {
    addListener(
      requester, callback, forEventType: type, executeOn: executeOn, interestedIn: interest,
      maximumAge: maximumAge, customFilter: customFilter, once: once,
      isolation: isolation)
  }

  /// Has a closure that comes last called for every event of a type, for as long as its requester
  /// lives. The clock is not read for it.
  ///
  /// - Parameters: As for the form with the callback in second place.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**: as there.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public func addListener<Owner: AnyObject, E: Eventable>(
    _ requester: Owner,
    forEventType type: E.Type = E.self,
    executeOn: ExecuteEventOn = .requesterThread,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    isolation: isolated (any Actor)? = #isolation,
    _ callback: @escaping (_ event: E) -> Void
  ) -> any EventListenerHandling {
    addListener(
      requester, callback, forEventType: type, executeOn: executeOn, interestedIn: interest,
      maximumAge: maximumAge, customFilter: customFilter, once: once,
      isolation: isolation)
  }

  /// Has a closure that comes last called for every event of a type, with its priority and the time
  /// of its dispatch, until it is removed; the requester may be nil.
  ///
  /// - Parameters: As for the form with the callback in second place.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**: any, also inside a handler.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  @preconcurrency
  public func addListener<E: Eventable>(
    _ requester: AnyObject?,
    forEventType type: E.Type = E.self,
    executeOn: ExecuteEventOn = .requesterThread,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    isolation: isolated (any Actor)? = #isolation,
    _ callback:
      @escaping @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime)
      -> Void
  ) -> any EventListenerHandling {
    addListener(
      requester, callback, forEventType: type, executeOn: executeOn, interestedIn: interest,
      maximumAge: maximumAge, customFilter: customFilter, once: once, isolation: isolation)
  }

  /// Has a closure that comes last called for every event of a type, until it is removed; the
  /// requester may be nil. The clock is not read for it.
  ///
  /// - Parameters: As for the form with the callback in second place.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**: any, also inside a handler.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  @preconcurrency
  public func addListener<E: Eventable>(
    _ requester: AnyObject?,
    forEventType type: E.Type = E.self,
    executeOn: ExecuteEventOn = .requesterThread,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    isolation: isolated (any Actor)? = #isolation,
    _ callback: @escaping @Sendable (_ event: E) -> Void
  ) -> any EventListenerHandling {
    addListener(
      requester, callback, forEventType: type, executeOn: executeOn, interestedIn: interest,
      maximumAge: maximumAge, customFilter: customFilter, once: once, isolation: isolation)
  }
}
