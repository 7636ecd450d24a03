// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// From a tree to a central and back.

extension EventNode {
  /// Dispatches every event of a type that comes by this node to a central, whose receivers handle
  /// it where they are.
  ///
  /// - Parameters:
  ///   - type: The exact type of event.
  ///   - central: Where its receivers are registered. It is retained until the handle removes this,
  ///     or the node ends.
  ///   - mode: In which phases the event is dispatched. With ``CaptureMode/consumeEvent`` it goes
  ///     no further in the tree.
  ///   - method: Whether it is queued or stacked.
  ///   - priority: Which of the five lanes it joins.
  /// - Returns: A handle that ends it.
  ///
  /// **Threads**: the thread that raises dispatches, and waits for nobody (D5). Do not also raise
  /// the same type from the same central at this tree
  /// (``raiseEvents(of:from:executeOn:scope:isolation:)``): each event would come round for ever.
  @inlinable
  @discardableResult
  public final func dispatchEvents<E: Eventable>(
    of type: E.Type, to central: EventCentral = .shared, _ mode: CaptureMode = .onPropagate,
    by method: EventDispatchMethod = .queue, priority: EventPriority = .normal
  ) -> EventNodeHandle {
    addHandler(mode) { (event: E) in
      dispatch(event, lane: Lane(method, priority), through: central.router)
    }
  }

  /// Raises every event of a type that is dispatched to a central at this node, for as long as the
  /// node lives.
  ///
  /// - Parameters:
  ///   - type: The exact type of event.
  ///   - central: Where the events are dispatched.
  ///   - executeOn: Where they are raised, and so where the tree's handlers run: by default in the
  ///     context that asks for it.
  ///   - scope: How far they go.
  ///   - isolation: Leave it out. On an actor, `.requesterThread` is that actor.
  /// - Returns: A handle that ends it. The node is not retained: it ends with the node (D9).
  ///
  /// **Threads**: any, also inside a handler. The events are raised one at a time.
  ///
  /// **Order**: by priority and method, as for a listener in the same place (D1 to D3).
  @discardableResult
  public final func raiseEvents<E: Eventable>(
    of type: E.Type, from central: EventCentral = .shared,
    executeOn: ExecuteEventOn = .requesterThread, scope: EventRaiseScope = .tree,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    central.listener.addListener(
      self, executeOn, isolation, isOnce: false,
      HandlerInterest<E>(.all, maximumAge: 0, isJudged: false),
      HandlerCallback(owned: { (node: EventNode, event) in node.raise(event: event, scope: scope) }))
  }
}
