// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

// Listeners with a closure or a bound method: called where they are registered, or elsewhere.
//
// The first four need no `Sendable` callback, since they are called in their own context; the others
// do. They are not `@preconcurrency`: that would make warnings of the errors of Swift 6, and in
// Swift 5 mode they are warnings without it.
//
// What has the closure last is disfavoured: without anything between requester and closure the
// others are meant, which are the same then.

extension Eventable {
  /// Has a closure or a method called for every event of this type, with its priority and the time
  /// of its dispatch, where it is registered.
  ///
  /// ```swift
  /// TemperatureRatingEvent.addListener(self, onTemperatureRatingEvent)
  /// ```
  ///
  /// - Parameters:
  ///   - requester: The owner of the listener. It is not retained: when it is gone the callback
  ///     is never called again (D9). It is kept alive over each call. With nil the listener stays
  ///     until its handle removes it, or what it is registered `on:` ends.
  ///   - callback: What is called, one event at a time, in the context that registers it: on the
  ///     actor, the main queue, the event thread or the queue. It is retained: a method of the
  ///     requester (`onRating`), or a closure that captures it, keeps the requester alive until the
  ///     listener is removed. A method without its object (`Model.onRating`) does not, nor does
  ///     `[weak self]`.
  ///   - interest: Which of these events it wants; the others are skipped and counted.
  ///   - maximumAge: With `.youngerThan`: from how many nanoseconds on an event is too old, judged
  ///     when the callback would be called.
  ///   - customFilter: With `.custom`: returns true for an event that it wants. It is called in the
  ///     same place, right before the callback would be.
  ///   - once: Ends the listener with its first call.
  ///   - source: What it listens to: a central, an event thread, a pool or a listener of your own, as
  ///     ``EventListenable`` tells.
  ///   - isolation: Leave it out. On an actor, the callback is called on that actor.
  /// - Returns: A handle that tells where it runs, and removes it. Letting go of it changes
  ///   nothing.
  ///
  /// **Threads**: the main thread, an actor, or a handler that runs on an event thread or a
  /// listener thread; to them the events come back, so that the callback need not be `Sendable`. In
  /// a task that is on no actor, on a dispatch queue, and on any other thread it traps: there pass
  /// `executeOn:`. An actor is what the compiler knows to be one: a function that is not isolated
  /// does not know its caller's. What the callback captured ends where the listener is removed, or
  /// where its source ends.
  ///
  /// **Order**: as for an event thread (D1 to D3) among all listeners in the same place.
  ///
  /// **Complexity**: O(listeners of the type in the same place).
  @inlinable
  @discardableResult
  public static func addListener(
    _ requester: AnyObject?,
    _ callback:
      @escaping (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Void,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on source: any EventListenable = EventCentral.shared,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    source.listener.addListener(
      requester, nil, isolation, isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, customFilter: customFilter),
      HandlerCallback(callback))
  }

  /// Has a closure or a method called for every event of this type, where it is registered. The
  /// clock is not read for it.
  ///
  /// All else is as for the form with three arguments; a filter and a maximum age need the clock.
  @inlinable
  @discardableResult
  public static func addListener(
    _ requester: AnyObject?,
    _ callback: @escaping (_ event: Self) -> Void,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on source: any EventListenable = EventCentral.shared,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    source.listener.addListener(
      requester, nil, isolation, isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, customFilter: customFilter),
      HandlerCallback(callback))
  }

  /// Has a closure that comes last called for every event of this type, where it is registered.
  ///
  /// ```swift
  /// TemperatureEvent.addListener(self, interestedIn: .latestOnly) { [weak self] event in
  ///   self?.celsius = event.temperatureInCelsius
  /// }
  /// ```
  ///
  /// All else is as for the form with the callback in second place.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public static func addListener(
    _ requester: AnyObject?,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on source: any EventListenable = EventCentral.shared,
    isolation: isolated (any Actor)? = #isolation,
    _ callback: @escaping (_ event: Self) -> Void
  ) -> any EventListenerHandling {
    addListener(
      requester, callback, interestedIn: interest, maximumAge: maximumAge,
      customFilter: customFilter, once: once, on: source, isolation: isolation)
  }

  /// Has a closure or a method called for every event of this type, with its priority and the time
  /// of its dispatch, in a place that it names.
  ///
  /// ```swift
  /// TemperatureRatingEvent.addListener(self, onTemperatureRatingEvent, executeOn: .listenerThread)
  /// ```
  ///
  /// - Parameters:
  ///   - requester: The owner of the listener, which ends with it (D9). It is not retained; with nil
  ///     the listener stays until its handle removes it, or what it is registered `on:` ends.
  ///   - callback: What is called in that place, one event at a time. What it touches must be safe
  ///     there, which the compiler checks.
  ///   - executeOn: Where it is called. `.requesterThread` is the context that registers it, and
  ///     where there is none, a task or the listener thread.
  ///   - interest: Which of these events it wants; the others are skipped and counted.
  ///   - maximumAge: With `.youngerThan`: the age in nanoseconds from which on an event is too old.
  ///   - customFilter: With `.custom`: returns true for an event that it wants. It is called in the
  ///     same place, right before the callback would be.
  ///   - once: Ends the listener with its first call.
  ///   - source: What it listens to, as ``EventListenable`` tells.
  ///   - isolation: Leave it out. On an actor, `.requesterThread` is that actor.
  /// - Returns: A handle that tells where it runs, and removes it.
  ///
  /// **Threads**: any, also inside a handler. All else is as for the form that is called where it is
  /// registered.
  @inlinable
  @discardableResult
  public static func addListener(
    _ requester: AnyObject?,
    _ callback:
      @escaping @Sendable (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime)
      -> Void,
    executeOn: ExecuteEventOn,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on source: any EventListenable = EventCentral.shared,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    source.listener.addListener(
      requester, executeOn, isolation, isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, customFilter: customFilter),
      HandlerCallback(callback))
  }

  /// Has a closure or a method called for every event of this type, in a place that it names. The
  /// clock is not read for it.
  ///
  /// All else is as for the form with three arguments; a filter and a maximum age need the clock.
  @inlinable
  @discardableResult
  public static func addListener(
    _ requester: AnyObject?,
    _ callback: @escaping @Sendable (_ event: Self) -> Void,
    executeOn: ExecuteEventOn,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on source: any EventListenable = EventCentral.shared,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    source.listener.addListener(
      requester, executeOn, isolation, isOnce: once,
      HandlerInterest(interest, maximumAge: maximumAge, customFilter: customFilter),
      HandlerCallback(callback))
  }

  /// Has a closure that comes last called for every event of this type, with its priority and the
  /// time of its dispatch, in a place that it names.
  ///
  /// All else is as for the form with the callback in second place.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public static func addListener(
    _ requester: AnyObject?,
    executeOn: ExecuteEventOn,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on source: any EventListenable = EventCentral.shared,
    isolation: isolated (any Actor)? = #isolation,
    _ callback:
      @escaping @Sendable (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime)
      -> Void
  ) -> any EventListenerHandling {
    addListener(
      requester, callback, executeOn: executeOn, interestedIn: interest, maximumAge: maximumAge,
      customFilter: customFilter, once: once, on: source, isolation: isolation)
  }

  /// Has a closure that comes last called for every event of this type, in a place that it names.
  /// The clock is not read for it.
  ///
  /// ```swift
  /// TemperatureEvent.addListener(self, executeOn: .listenerThread) { event in
  ///   print(event)
  /// }
  /// ```
  ///
  /// All else is as for the form with the callback in second place.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public static func addListener(
    _ requester: AnyObject?,
    executeOn: ExecuteEventOn,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    once: Bool = false,
    on source: any EventListenable = EventCentral.shared,
    isolation: isolated (any Actor)? = #isolation,
    _ callback: @escaping @Sendable (_ event: Self) -> Void
  ) -> any EventListenerHandling {
    addListener(
      requester, callback, executeOn: executeOn, interestedIn: interest, maximumAge: maximumAge,
      customFilter: customFilter, once: once, on: source, isolation: isolation)
  }
}
