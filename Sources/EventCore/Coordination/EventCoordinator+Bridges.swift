// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventCoordinator {
  /// Queues, on a central, the events that no interceptor stopped. An event counts as handled if a receiver there
  /// accepts it, whatever that does with it: a recorder accepts all, one that is full and refuses does not, and that of
  /// ``Eventable/keepNewest(on:maximumAge:)`` does not count. It sets ``unhandledEvents``.
  ///
  /// - Parameters:
  ///   - central: Where the events are queued. It is retained.
  ///   - priority: Their priority.
  ///
  /// **Threads**: the emission does not wait for the receivers. If these coordinators also emit the events of the central
  /// (``emitEvents(of:from:executeOn:isolation:)``), one of that type that nobody stops circulates for ever.
  public final func dispatchUnhandled(
    to central: EventCentral = .shared, priority: EventPriority = .normal
  ) {
    unhandledEvents = { event in
      dispatch(event, to: central, priority)
    }
  }

  /// Raises, at a node of a tree, the events that no interceptor stopped. An event counts as handled if a
  /// handler of the tree consumes it. It sets ``unhandledEvents``.
  ///
  /// - Parameters:
  ///   - node: Where the events are raised. It is retained.
  ///   - scope: How far they go in the tree.
  ///
  /// **Threads**: the tree's handlers run before the emission returns, on its thread, except those with
  /// `executeOn:`. A handler that emits the event to these coordinators again makes it circulate for ever.
  public final func raiseUnhandled(at node: EventNode, scope: EventRaiseScope = .tree) {
    unhandledEvents = { event in
      node.raise(event: event, scope: scope).isConsumed ? .handled : .pass
    }
  }

  /// Emits every event of a type that any thread dispatches to a central: this coordinator is asked first,
  /// then those above it.
  ///
  /// ```swift
  /// app.emitEvents(of: AppEvents.Session.self, from: network)
  /// ```
  ///
  /// - Parameters:
  ///   - type: The exact type of event (D11).
  ///   - central: Where the events are dispatched.
  ///   - executeOn: The place where the coordinators are used, and where they are asked. The default is the
  ///     caller's place: the main thread, an actor, or a handler of an event thread or of a dispatch queue.
  ///     In a task, and on any other thread, it traps.
  ///   - isolation: Leave it out. On an actor, `.requesterThread` is that actor.
  /// - Returns: A handle that ends it.
  ///
  /// **Order**: by priority and method, as for a listener in the same place (D1 to D3).
  ///
  /// **Ownership**: the coordinator is not retained, and ends the registration with itself (D9).
  @discardableResult
  public final func emitEvents<E: CoordinateEvents>(
    of type: E.Type, from central: EventCentral = .shared,
    executeOn: ExecuteEventOn = .requesterThread,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    receive(E.self, from: central, executeOn, isolation, for: "emitEvents(of:from:)") { coordinator, event in
      coordinator.emitEvent(event, includingEmitter: true)
    }
  }

  /// Calls a closure with this coordinator for every event of a type, as ``emitEvents(of:from:executeOn:isolation:)``
  /// emits them: in the place where the coordinators are used, until this one is gone.
  ///
  /// - Parameter caller: The function that traps for a caller who has no place.
  @_spi(Bridge)
  public final func receive<E: Eventable>(
    _ type: E.Type, from central: EventCentral, _ executeOn: ExecuteEventOn, _ isolation: isolated (any Actor)?,
    for caller: String, _ body: @escaping (_ coordinator: EventCoordinator, _ event: E) -> Void
  ) -> any EventListenerHandling {
    if case .requesterThread = executeOn {
      require(
        isolation != nil || ExecutionContexts.isCallerInPlace,
        """
        Coordinators are asked in the place where they are used; \(caller) was called on a thread \
        that is none, for \(type): call it on the main thread, on an actor or in a handler, or say \
        executeOn: .dispatchQueue(_:) with the queue on which they are used.
        """)
    }
    return central.listener.addListener(
      self, executeOn, isolation, isOnce: false,
      HandlerInterest<E>(.all, maximumAge: 0, isJudged: false),
      HandlerCallback(owned: body))
  }
}

extension EventListenerHandling {
  /// Whether the listener was removed, or its place has found its requester gone, which it does with the first event
  /// afterwards.
  ///
  /// **Threads**: any. Unlike ``EventRegistration/isActive`` it does not look at the requester, which it would retain
  /// for a moment: if its last reference went in that moment, it would end on the calling thread.
  @_spi(Bridge)
  public var hasEnded: Bool { (self as? ListenerRegistration)?.isEnded ?? !isActive }

  /// Queues an event in the place of a listener of ``EventCoordinator/receive(_:from:_:_:for:_:)`` alone, for all
  /// listeners there that want such events.
  ///
  /// - Returns: Whether the place has accepted it: it may be full, or have ended.
  ///
  /// **Threads**: any.
  @_spi(Bridge)
  public func queueInPlace<E: Eventable>(_ event: E, priority: EventPriority) -> Bool {
    dispatch(event, lane: Lane(.queue, priority), through: registration.context.consumer.direct) > 0
  }

  /// Calls a closure in the place of such a listener, unless that has ended, or its requester is gone, which ends it.
  /// The place takes it as any event that is queued with normal priority, but also if it is full. If it has ended, the
  /// closure is released.
  ///
  /// **Threads**: any.
  @_spi(Bridge)
  public func runInPlace(_ body: @escaping @Sendable () -> Void) {
    let registration = registration
    _ = registration.context.run {
      guard !registration.isEnded, let held = registration.holdRequester() else { return }
      body()
      if held.isForOneCall { registration.letGoOfRequester() }
    }
  }

  private var registration: ListenerRegistration {
    guard let registration = self as? ListenerRegistration else {
      refuse(
        """
        queueInPlace() and runInPlace() go to the place of a listener, and \(type(of: self)) is no listener's handle: call \
        them on what EventCoordinator.receive() has returned.
        """, file: #fileID, line: #line)
    }
    return registration
  }
}

private func dispatch<E: CoordinateEvents>(
  _ event: E, to central: EventCentral, _ priority: EventPriority
) -> EventInterception {
  // What keeps the newest event of a type is a receiver that handles none.
  let keepers = central.basis.sticky.event(eventKey(E.self)) == nil ? 0 : 1
  return central.queueEvent(event, priority: priority) > keepers ? .handled : .pass
}
