// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

extension EventThread {
  /// Has a closure called for every event of a type, with its priority and the time of its
  /// dispatch.
  ///
  /// - Parameters:
  ///   - callback: Runs on this thread. It is retained until it is removed or the thread ends: a
  ///     bound method or a closure over this thread keeps the thread alive until ``cancel()``.
  ///   - type: The exact type of event.
  ///   - interest: Which of these events it wants; the others are skipped and counted
  ///     (``EventListenerHandling/skippedCount``).
  ///   - maximumAge: With `.youngerThan`: from how many nanoseconds on an event is too old, judged
  ///     when the callback would run.
  ///   - customFilter: With `.custom`: returns true for an event that the callback wants. It runs
  ///     on this thread, right before the callback would.
  /// - Returns: A handle that ends the callback.
  ///
  /// **Threads**: any, also inside a callback.
  ///
  /// **Order**: several callbacks for one type are called in the order of their registration; each
  /// gets the events that are dispatched after this call returns (D4). A callback with `.latestOnly`
  /// waits apart from theirs, and keeps no order with them.
  ///
  /// **Complexity**: O(receivers of the type), which are listed anew.
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

  /// Has a closure called for every event of a type; the clock is not read for it.
  ///
  /// All else is as for the form with three parameters; an age and a filter need the clock.
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

  /// Has a method of this thread called for every event of a type, without retaining the thread.
  ///
  /// ```swift
  /// addEventCallback(TemperatureProcessor.onTemperature)
  /// ```
  ///
  /// It is a method of the thread's class, named without its object. One of the MainActor needs a
  /// ``UIEventThread``, which the compiler does not see: it does not look at the isolation of a
  /// function that a function returns. All else is as for the closures.
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

  /// Has a method of this thread called for every event of a type, with its priority and the time
  /// of its dispatch, without retaining the thread.
  ///
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
