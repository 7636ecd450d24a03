// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

// Listeners with a closure or a bound method.

extension Eventable {
  /// Has a closure or a method called for every event of this type, with its priority and the time
  /// of its dispatch, for as long as its requester lives.
  ///
  /// ```swift
  /// TemperatureRatingEvent.addListener(self, onTemperatureRatingEvent, executeOn: .listenerThread)
  /// ```
  ///
  /// - Parameters:
  ///   - requester: Whom the listener belongs to. It is not retained: when it is gone the callback
  ///     is never called again (D9). It is kept alive over each call.
  ///   - callback: What is called, in the place that `executeOn` says, one event at a time. It is
  ///     retained: a method of the requester (`onRating`), or a closure that captures it, keeps the
  ///     requester alive until the listener is removed. A method without its object
  ///     (`Model.onRating`) does not, nor does `[weak self]`.
  ///   - executeOn: Where it is called; by default in the context that registers it.
  ///   - interest: Which of these events it wants; the others are skipped and counted.
  ///   - maximumAge: With `.youngerThan`: from how many nanoseconds on an event is too old, judged
  ///     when the callback would be called.
  ///   - customFilter: With `.custom`: returns true for an event that it wants. It is called in the
  ///     same place.
  ///   - once: Ends the listener with its first call.
  ///   - central: Where the events are dispatched.
  ///   - isolation: Leave it out. Registered on an actor, `.requesterThread` is that actor.
  /// - Returns: A handle that tells where it runs, and removes it. Letting go of it changes
  ///   nothing.
  ///
  /// **Threads**: any, also inside a handler. With a requester the callback need not be `Sendable`:
  /// by default it runs in the context that registered it. With any other `executeOn`, or
  /// registered where no such context can be had (in a task, on a thread of one's own), see to it
  /// that what it touches is safe there.
  ///
  /// **Order**: as for an event thread (D1 to D3) among all listeners in the same place.
  ///
  /// **Complexity**: O(listeners of the type in the same place).
  @inlinable
  @discardableResult
  public static func addListener<Owner: AnyObject>(
    _ requester: Owner,
    _ callback:
      @escaping (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime)
      -> Void,
    executeOn: ExecuteEventOn = .requesterThread,
    interestedIn interest: EventListenerInterest = .all,
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
      HandlerInterest(interest, maximumAge: maximumAge, customFilter: customFilter),
      ListenerCallback(callback))
  }

  /// Has a closure or a method called for every event of this type, for as long as its requester
  /// lives. The clock is not read for it.
  ///
  /// - Parameters: As for the form with three arguments; a filter and a maximum age need the clock.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**, **Order**: as for the form with three arguments.
  @inlinable
  @discardableResult
  public static func addListener<Owner: AnyObject>(
    _ requester: Owner,
    _ callback: @escaping (_ event: Self) -> Void,
    executeOn: ExecuteEventOn = .requesterThread,
    interestedIn interest: EventListenerInterest = .all,
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
      HandlerInterest(interest, maximumAge: maximumAge, customFilter: customFilter),
      ListenerCallback(callback))
  }

  /// Has a closure called for every event of this type, with its priority and the time of its
  /// dispatch, until it is removed.
  ///
  /// - Parameters: As for the form with a requester, which here may be nil: such a listener lives
  ///   until its handle removes it, or its central ends.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**: any, also inside a handler.
  @inlinable
  @discardableResult
  @preconcurrency
  public static func addListener(
    _ requester: AnyObject?,
    _ callback:
      @escaping @Sendable (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime)
      -> Void,
    executeOn: ExecuteEventOn = .requesterThread,
    interestedIn interest: EventListenerInterest = .all,
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
      HandlerInterest(interest, maximumAge: maximumAge, customFilter: customFilter),
      ListenerCallback(callback))
  }

  /// Has a closure called for every event of this type, until it is removed. The clock is not read
  /// for it.
  ///
  /// - Parameters: As for the form with three arguments and a requester, which here may be nil:
  ///   such a listener lives until its handle removes it, or its central ends.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**: any, also inside a handler.
  @inlinable
  @discardableResult
  @preconcurrency
  public static func addListener(
    _ requester: AnyObject?,
    _ callback: @escaping @Sendable (_ event: Self) -> Void,
    executeOn: ExecuteEventOn = .requesterThread,
    interestedIn interest: EventListenerInterest = .all,
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
      HandlerInterest(interest, maximumAge: maximumAge, customFilter: customFilter),
      ListenerCallback(callback))
  }
}
