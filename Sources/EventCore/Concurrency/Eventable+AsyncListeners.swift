// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

extension Eventable {
  /// Awaits an `async` closure for every event of this type, in a task of its own.
  ///
  /// ```swift
  /// Order.addListener(shop, concurrency: .concurrent(4), on: world) { order in
  ///   try await ledger.book(order)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - requester: The owner of the listener, which ends with it (D9). It is not retained, not even while a call is
  ///     running or suspended: a callback that needs it captures it. With nil the listener stays until its handle
  ///     removes it, or its source ends.
  ///   - concurrency: How many calls may run at the same time.
  ///   - interest: For which events the callback is called; the others are skipped and counted.
  ///   - maximumAge: With `.youngerThan`: the age in nanoseconds from which on an event is too old when it is taken for
  ///     a call. With `.concurrent` the callback may begin later, when a thread is free.
  ///   - customFilter: With `.custom`: returns true for an event for which the callback is called. It runs in the
  ///     listener's task when the event is taken; with `.concurrent` the callback follows in a task of its own.
  ///   - source: What it listens to (``EventListenable``).
  ///   - callback: Called for each event. If it throws, the error is dispatched as an ``EventFailure`` on the central;
  ///     what a callback for ``EventFailure`` itself throws is dropped.
  /// - Returns: The listener's handle. The listener stays if the handle is released. `removed()` also waits for the
  ///   calls that are suspended; inside the callback it traps. A task that the callback starts may await it, unless the
  ///   callback awaits that task.
  ///
  /// **Threads**: any, also inside a handler. The callback runs where Swift runs a function that is on no actor. One that
  /// is on an actor has begun (D6) before it waits for that actor. Its task keeps the priority and the task-local
  /// values of the code that registers it; to keep none, register it in a `Task.detached { }`.
  ///
  /// **Order**: when a call can begin, the most urgent event that waits is taken for it (D1 to D3).
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public static func addListener(
    _ requester: AnyObject?, concurrency: EventConcurrency = .serial,
    interestedIn interest: EventListenerInterest = .all, maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    on source: any EventListenable = EventCentral.shared,
    _ callback: @escaping @Sendable (_ event: Self) async throws -> Void
  ) -> any EventListenerHandling {
    let listener = source.listener
    let report = listener.failureReport(of: Self.self)
    return AsyncListener.start(
      Self.self, requester, listener,
      HandlerInterest(interest, maximumAge: maximumAge, customFilter: customFilter), concurrency
    ) { event, receiver in
      do {
        try await callback(event)
      } catch {
        receiver.noteFailure(error)
        report(error, receiver)
      }
    }
  }
}

extension EventListener {
  /// Dispatches what a handler of this listener throws, on the listener's central.
  @usableFromInline
  final func failureReport<E: Eventable>(
    of type: E.Type
  ) -> @Sendable (any Error, any EventListenerHandling) -> Void {
    // The router, not the listener, which is not retained by its listeners.
    let router = contexts.central
    // The error of one who handles failures would come back to it, and so on for ever.
    if type == EventFailure.self { return { _, _ in } }
    return { error, receiver in
      dispatch(
        EventFailure(eventType: type, receiver: receiver, error: error), lane: Lane(.queue, .normal), through: router)
    }
  }
}
