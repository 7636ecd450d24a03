// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// From the top of the coordinators on, to a central or into a tree.

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

  /// Raises at a node what reaches the top and nobody stopped; it is handled if a handler of the tree
  /// consumes it.
  ///
  /// - Parameters:
  ///   - node: Where it is raised.
  ///   - scope: How far it goes in the tree.
  ///
  /// It sets ``unhandledEvents``.
  ///
  /// **Threads**: the tree's handlers run before the emission returns, on its thread, but for those that
  /// were added with `executeOn:`. One that emits the event into these coordinators again has it come round
  /// for ever.
  ///
  /// **Ownership**: the node is retained.
  public final func raiseUnhandled(at node: EventNode, scope: EventRaiseScope = .tree) {
    unhandledEvents = { event in
      node.raise(event: event, scope: scope).isConsumed ? .handled : .pass
    }
  }
}
