// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// From the top of the coordinators on, to a central or into a tree; and from a central to a
// coordinator.

extension EventCoordinator {
  /// Queues on a central what reaches the top and nobody stopped; it is handled if somebody
  /// receives its type there.
  ///
  /// - Parameters:
  ///   - central: Where it is dispatched.
  ///   - priority: Which queue it joins.
  ///
  /// It sets ``unhandledEvents``.
  ///
  /// **Threads**: the receivers handle it where they are; the emission does not wait for them.
  ///
  /// **Ownership**: the central is retained.
  public final func dispatchUnhandled(
    to central: EventCentral = .shared, priority: EventPriority = .normal
  ) {
    unhandledEvents = { event in
      central.queueEvent(event, priority: priority) > 0 ? .handled : .pass
    }
  }

  /// Raises at a node what reaches the top and nobody stopped; it is handled if a handler of the
  /// tree consumes it.
  ///
  /// - Parameters:
  ///   - node: Where it is raised.
  ///   - scope: How far it goes in the tree.
  ///
  /// It sets ``unhandledEvents``.
  ///
  /// **Threads**: the tree's handlers run before the emission returns, on its thread, but for those
  /// that were added with `executeOn:`. One that emits the event into these coordinators again has
  /// it come round for ever.
  ///
  /// **Ownership**: the node is retained.
  public final func raiseUnhandled(at node: EventNode, scope: EventRaiseScope = .tree) {
    unhandledEvents = { event in
      node.raise(event: event, scope: scope).isConsumed ? .handled : .pass
    }
  }

  /// Emits every event of a type that is dispatched to a central, by whatever thread, for as long
  /// as the coordinator lives: this coordinator is asked first, then those above it.
  ///
  /// ```swift
  /// app.emitEvents(of: AppEvents.Session.self, from: network)
  /// ```
  ///
  /// - Parameters:
  ///   - type: The exact type of event (D11).
  ///   - central: Where the events are dispatched.
  ///   - executeOn: The place where the coordinators are used, which is where they are asked. By
  ///     default that of the caller, which has to be one: the main thread, an actor, or a handler
  ///     of an event thread or of a dispatch queue. In a task, and on any other thread, it traps.
  ///   - isolation: Leave it out. On an actor, `.requesterThread` is that actor.
  /// - Returns: A handle that ends it.
  ///
  /// **Threads**: that of the coordinators. The dispatch does not wait for them.
  ///
  /// **Ownership**: the coordinator is not retained; it ends with the coordinator (D9).
  ///
  /// **Order**: by priority and method, as for a listener in the same place (D1 to D3).
  @discardableResult
  public final func emitEvents<E: CoordinateEvents>(
    of type: E.Type, from central: EventCentral = .shared,
    executeOn: ExecuteEventOn = .requesterThread,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    if case .requesterThread = executeOn {
      require(
        isolation != nil || ExecutionContexts.isCallerInPlace,
        """
        Coordinators are asked in the place where they are used; emitEvents(of:from:) was called on a thread that \
        is none, for \(type): call it on the main thread, on an actor or in a handler, or say \
        executeOn: .dispatchQueue(_:) with the queue on which they are used.
        """)
    }
    return central.listener.addListener(
      self, executeOn, isolation, isOnce: false,
      HandlerInterest<E>(.all, maximumAge: 0, isJudged: false),
      HandlerCallback(owned: { (coordinator: EventCoordinator, event) in
        coordinator.emitEvent(event, includingEmitter: true)
      }))
  }
}
