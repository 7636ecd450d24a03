// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventNode {
  /// Raises an event: it climbs from this node to the root, and then goes down to every node of the
  /// tree, until a handler consumes it.
  ///
  /// - Parameters:
  ///   - event: What happened. Its handlers are those of its exact type (D11).
  ///   - scope: How far it goes; by default everywhere.
  /// - Returns: How many handlers were called, and which node consumed the event, if one did.
  ///
  /// **Order**: first handlers with ``CaptureMode/onCapture``, from the root to this node; then
  /// those with ``CaptureMode/onRaise``, from this node to the root; then those with
  /// ``CaptureMode/onPropagate``, from the root to every node: parents before their children,
  /// siblings in the order in which they joined. Within a node, in the order in which the handlers
  /// were added.
  ///
  /// The event belongs to the moment at which it is raised: what is added, attached or moved
  /// meanwhile hears the next one. Each handler is called once (D4), but not if it was removed
  /// meanwhile (D6), if its node has ended (D9), or if a handler of this same event has detached or
  /// moved its node, or a node above it (but the one that propagates, wherever it is). Of a node
  /// that another thread detaches meanwhile the handlers are called or not, as if it had come
  /// before or after.
  ///
  /// **Threads**: any, also inside a handler. Handlers run on the calling thread, before the
  /// return; an event that a handler raises is handled before the handler goes on.
  ///
  /// **Complexity**: O(nodes), less the subtrees in which nobody listens to the type; no lock and
  /// no allocation on the lock-free core once the thread is warm.
  @inlinable
  @discardableResult
  public final func raise<E: Eventable>(event: E, scope: EventRaiseScope = .tree) -> EventOutcome {
    walkTree(event, from: self, phases: scope.rawValue & EventRaiseScope.tree.rawValue)
  }

  /// Propagates an event to this node and every node below it, until a handler consumes it. Nobody
  /// above hears of it.
  ///
  /// - Parameter event: What happened. Its handlers are those of its exact type (D11), with
  ///   ``CaptureMode/onPropagate``.
  /// - Returns: How many handlers were called, and which node consumed the event, if one did.
  ///
  /// **Order**, **Threads**, **Complexity**: as for ``raise(event:scope:)``.
  @inlinable
  @discardableResult
  public final func propagate<E: Eventable>(event: E) -> EventOutcome {
    walkTree(event, from: self, phases: TreePhases.below | EventRaiseScope.propagating.rawValue)
  }
}
