// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventNode {
  /// Dispatches every event of a type that passes this node to a central.
  ///
  /// - Parameters:
  ///   - type: The exact type of event.
  ///   - central: Where the events are dispatched. It is retained until the handle ends the bridge or the
  ///     node ends.
  ///   - mode: In which phases the event is dispatched. With ``CaptureMode/consumeEvent`` it goes no further
  ///     in the tree.
  ///   - method: Whether the event is queued or stacked.
  ///   - priority: Which of the five lanes the event joins.
  /// - Returns: A handle that ends the bridge.
  ///
  /// **Threads**: the thread that raises also dispatches, and waits for nobody (D5). Do not raise the same
  /// type from the same central in this tree as well
  /// (``raiseEvents(of:from:executeOn:scope:isolation:)``): each event would circulate for ever. What a bridge has
  /// raised here for another machine does not go out again.
  @inlinable
  @discardableResult
  public final func dispatchEvents<E: Eventable>(
    of type: E.Type, to central: EventCentral = .shared, _ mode: CaptureMode = .onPropagate,
    by method: EventDispatchMethod = .queue, priority: EventPriority = .normal
  ) -> EventNodeHandle {
    addHandler(mode, for: E.self) { context in
      let lane = Lane(method, priority)
      if context.hasArrived {
        central.dispatchArrived(context.event, lane: lane)
      } else {
        dispatch(context.event, lane: lane, through: central.router)
      }
      return .continue
    }
  }

  /// Raises at this node every event of a type that is dispatched on a central.
  ///
  /// - Parameters:
  ///   - type: The exact type of event.
  ///   - central: Where the events are dispatched.
  ///   - executeOn: Where the events are raised, and so where the handlers of the tree run: by default in the
  ///     context of this call.
  ///   - scope: How far the events go.
  ///   - isolation: Leave it out. On an actor, `.requesterThread` is that actor.
  /// - Returns: A handle that ends the bridge. The node is not retained: the bridge ends with it (D9).
  ///
  /// **Threads**: any, also inside a handler. The events are raised one at a time, as new ones: what came from another
  /// machine goes out if a bridge has mounted this tree, and in circles if another machine does the same.
  ///
  /// **Order**: that of a listener in the same place (D1 to D3).
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

  /// Raises an event that came from another machine, which its handlers can tell (``EventNodeContext/isInward``). For
  /// packages that write `@_spi(Bridge) import EventCore`; others do not see it.
  ///
  /// - Parameters:
  ///   - event: What happened there.
  ///   - scope: How far it went there.
  ///
  /// **Threads**, **Order**, **Complexity**: as for ``raise(event:scope:)``.
  @_spi(Bridge)
  public final func raiseInward<E: Eventable>(event: E, scope: EventRaiseScope = .tree) {
    _ = walkTree(event, from: self, phases: scope.rawValue & EventRaiseScope.tree.rawValue | TreePhases.inward)
  }

  /// The nodes below this one down to another one, with that as the last; nil if it is neither this node nor below it.
  /// For bridges, as above.
  ///
  /// **Threads**: any. The result was true at one moment during the call. **Complexity**: O(depth). **Ownership**: the
  /// result retains the nodes.
  @_spi(Bridge)
  public final func nodes(downTo node: EventNode) -> [EventNode]? {
    guard node !== self else { return [] }
    guard core == node.core else { return nil }
    var isBelow = false
    let (top, bottom) = (self.node, node.node)
    let between = core.objects { trees, found in
      var next = trees.parent(of: bottom)
      while let one = next, one != top {
        found(one)
        next = trees.parent(of: one)
      }
      isBelow = next != nil
    }
    // The caller has the last one, which may be ending.
    return isBelow ? between.reversed() + [node] : nil
  }
}
