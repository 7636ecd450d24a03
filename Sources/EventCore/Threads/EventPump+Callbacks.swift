// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

extension EventPump {
  /// Registers a closure that is called inside ``run(until:limit:)-(ContinuousClock.Instant?,_)`` for every event of a type, with the event's
  /// priority and the time of its dispatch.
  ///
  /// - Parameters:
  ///   - callback: The closure, which need not be `Sendable`. It is retained until the first run after its
  ///     removal, or until the pump ends.
  ///   - type: The exact type of event.
  ///   - interest: Which events the callback wants; the others are skipped and counted
  ///     (``EventListenerHandling/skippedCount``).
  ///   - maximumAge: With `.youngerThan`: the age in nanoseconds from which on an event is too old at the
  ///     moment at which the callback would run.
  ///   - customFilter: With `.custom`: returns true for an event that the callback wants. It runs right before
  ///     the callback.
  /// - Returns: A handle that removes the callback. Any thread may use it.
  ///
  /// **Threads**: those of the loop, also inside a callback.
  ///
  /// **Order**: the callbacks for one type are called in the order of their registration. Each gets the
  /// events that are dispatched after this call returns (D4). Callbacks with `.latestOnly` keep no order
  /// with the others.
  ///
  /// **Complexity**: O(receivers of the type), whose list is copied.
  @inlinable
  @discardableResult
  public func addEventCallback<E: Eventable>(
    _ callback:
      @escaping (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interest: EventListenerInterest = .all, maximumAge: UInt64 = 0,
    customFilter: ((_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool)? = nil
  ) -> any EventListenerHandling {
    add(
      HandlerCallback(callback),
      HandlerInterest(interest, maximumAge: maximumAge, customFilter: customFilter))
  }

  /// Registers a closure that is called for every event of a type. All else is as for the closure with three
  /// parameters. The clock is not read for this callback, unless it has an age or a filter.
  @inlinable
  @discardableResult
  public func addEventCallback<E: Eventable>(
    _ callback: @escaping (_ event: E) -> Void, forEventType type: E.Type = E.self,
    interestedIn interest: EventListenerInterest = .all, maximumAge: UInt64 = 0,
    customFilter: ((_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool)? = nil
  ) -> any EventListenerHandling {
    add(
      HandlerCallback(callback),
      HandlerInterest(interest, maximumAge: maximumAge, customFilter: customFilter))
  }

  @inlinable
  func add<E: Eventable>(
    _ callback: HandlerCallback<E>, _ interest: HandlerInterest<E>
  ) -> any EventListenerHandling {
    addHandler(TypedHandler(callback, interest), eventTypeActions(E.self))
  }

  @usableFromInline
  func addHandler(_ handler: EventHandler, _ type: EventTypeActions) -> any EventListenerHandling {
    EventCallbackHandle(handler.state, consumer, consumer.registry.add(handler, type))
  }
}
