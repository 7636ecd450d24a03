// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

// Listeners with a closure or a bound method, called where they are registered or elsewhere.
//
// The forms without `executeOn:` need no `Sendable` callback, since it stays in its context; the others do.
// They are not `@preconcurrency`, which would turn the errors of Swift 6 mode into warnings; in Swift 5
// mode they are warnings anyway.
//
// The forms with the closure last are disfavoured, since a call with only requester and closure fits both.

extension Eventable {
  /// Calls a closure or a method for every event of this type, with its priority and the time of its
  /// dispatch, where it is registered.
  ///
  /// ```swift
  /// TemperatureRatingEvent.addListener(self, onTemperatureRatingEvent)
  /// ```
  ///
  /// - Parameters:
  ///   - requester: The owner of the listener, which ends with it (D9). It is not retained, except during
  ///     each call. With nil the listener stays until its handle removes it, or its source ends.
  ///   - callback: Called for one event at a time, in the place where it is registered. It is retained: a
  ///     method of the requester (`onRating`), or a closure that captures the requester, keeps it alive
  ///     until the listener is removed. `Model.onRating` and `[weak self]` do not.
  ///   - interest: For which events the callback is called; the others are skipped and counted.
  ///   - maximumAge: With `.youngerThan`: the age in nanoseconds from which on an event is too old when the
  ///     callback would be called.
  ///   - customFilter: With `.custom`: returns true for an event for which the callback is called. It runs
  ///     in the same place, right before the callback.
  ///   - once: Ends the listener with its first call.
  ///   - source: What it listens to: a central, an event thread, a pool or a listener of your own
  ///     (``EventListenable``).
  ///   - isolation: Leave it out. On an actor, the callback is called on that actor.
  /// - Returns: The listener's handle. The listener stays if the handle is released.
  ///
  /// **Threads**: the main thread, an actor, or a handler on an event thread or a listener thread. In a
  /// task that is on no actor, on a dispatch queue, and on any other thread it traps: pass `executeOn:`
  /// there. A function that is not isolated does not know its caller's actor
  /// (``ExecuteEventOn/requesterThread``). What the callback captured is freed by whoever
  /// removes the listener or ends its source, or in the place in which it is called; in an ``EventPump`` always by its
  /// loop.
  ///
  /// **Order**: as for an event thread (D1 to D3), among all listeners in the same place.
  ///
  /// **Complexity**: O(receivers of the type), whose list is copied, here and when the last listener of a place is
  /// removed; with ``EventListenerInterest/latestOnly`` and ``EventListenerInterest/latestPerKey`` also O(such listeners of the
  /// type in the same place).
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

  /// Calls a closure or a method for every event of this type, where it is registered. All else is as for the
  /// form with three arguments, except that the clock is not read unless a filter or a maximum age needs it.
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

  /// Calls a closure, passed last, for every event of this type, where it is registered.
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

  /// Calls a closure or a method for every event of this type, with its priority and the time of its
  /// dispatch, in the place that `executeOn` names.
  ///
  /// ```swift
  /// TemperatureRatingEvent.addListener(self, onTemperatureRatingEvent, executeOn: .listenerThread)
  /// ```
  ///
  /// - Parameters:
  ///   - requester: The owner of the listener, which ends with it (D9). It is not retained. With nil the
  ///     listener stays until its handle removes it, or its source ends.
  ///   - callback: Called in that place, for one event at a time. What it uses must be safe to use there,
  ///     which the compiler checks in Swift 6 mode.
  ///   - executeOn: Where the callback is called.
  ///   - interest: For which events the callback is called; the others are skipped and counted.
  ///   - maximumAge: With `.youngerThan`: the age in nanoseconds from which on an event is too old.
  ///   - customFilter: With `.custom`: returns true for an event for which the callback is called.
  ///   - once: Ends the listener with its first call.
  ///   - source: What it listens to (``EventListenable``).
  ///   - isolation: Leave it out. On an actor, `.requesterThread` is that actor.
  /// - Returns: The listener's handle.
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

  /// Calls a closure or a method for every event of this type, in the place that `executeOn` names. All
  /// else is as for the form with three arguments, except that the clock is not read unless a filter or a
  /// maximum age needs it.
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

  /// Calls a closure, passed last, for every event of this type, with its priority and the time of its
  /// dispatch, in the place that `executeOn` names. All else is as for the form with the callback in second
  /// place.
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

  /// Calls a closure, passed last, for every event of this type, in the place that `executeOn` names.
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
