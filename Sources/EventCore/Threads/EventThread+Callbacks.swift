// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

extension EventThread {
  /// Registers a closure that is called on this thread for every event of a type, with the event's priority
  /// and the time of its dispatch.
  ///
  /// - Parameters:
  ///   - callback: The closure. It is retained until it is removed or the thread ends: a bound method or a
  ///     closure that captures this thread keeps the thread alive until ``cancel()``.
  ///   - type: The exact type of event.
  ///   - interest: Which events the callback wants; the others are skipped and counted
  ///     (``EventListenerHandling/skippedCount``).
  ///   - maximumAge: With `.youngerThan`: the age in nanoseconds from which on an event is too old at the
  ///     moment at which the callback would run.
  ///   - customFilter: With `.custom`: returns true for an event that the callback wants. It runs on this
  ///     thread, right before the callback.
  /// - Returns: A handle that removes the callback.
  ///
  /// **Threads**: any, also inside a callback.
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
      @escaping @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime)
      -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interest: EventListenerInterest = .all, maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil
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
    _ callback: @escaping @Sendable (_ event: E) -> Void, forEventType type: E.Type = E.self,
    interestedIn interest: EventListenerInterest = .all, maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil
  ) -> any EventListenerHandling {
    add(
      HandlerCallback(callback),
      HandlerInterest(interest, maximumAge: maximumAge, customFilter: customFilter))
  }

  /// Registers a method of this thread, named without its object, which does not retain the thread.
  ///
  /// ```swift
  /// addEventCallback(TemperatureProcessor.onTemperature)
  /// ```
  ///
  /// All else is as for the closures. A method of the MainActor needs a ``UIEventThread``; the compiler does
  /// not check that, since it ignores the isolation of a function that is the result of a function.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public func addEventCallback<Owner: EventThread, E: Eventable>(
    _ method: @escaping @Sendable (Owner) -> (_ event: E) -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interest: EventListenerInterest = .all, maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil
  ) -> any EventListenerHandling {
    requireOwner(Owner.self)
    return add(
      HandlerCallback(method),
      HandlerInterest(interest, maximumAge: maximumAge, customFilter: customFilter))
  }

  /// Registers a method of this thread that also takes the event's priority and the time of its dispatch.
  /// All else is as for the method that takes the event alone.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public func addEventCallback<Owner: EventThread, E: Eventable>(
    _ method:
      @escaping @Sendable (Owner) -> (
        _ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interest: EventListenerInterest = .all, maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil
  ) -> any EventListenerHandling {
    requireOwner(Owner.self)
    return add(
      HandlerCallback(method),
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

  @usableFromInline
  func requireOwner<Owner: EventThread>(_ type: Owner.Type) {
    require(
      self is Owner,
      """
      A method that is registered without its object is called on the thread it is registered with: \
      this thread is a \(Swift.type(of: self)), the method is one of \(type). Register it on a thread \
      of that class, or pass a closure.
      """)
  }
}
