// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A node of a tree through which events travel: raised at any node, an event climbs to the root
/// and is then propagated to every node of the tree.
///
/// ```swift
/// let app = EventNode(parent: nil)
/// let cart = EventNode(parent: app)
/// let badge = EventNode(parent: app)
///
/// badge.addHandler { (event: ItemAdded) in print("\(event.count) in the cart") }
/// cart.raise(event: ItemAdded(count: 1))
/// ```
///
/// A node holds its parent strongly and its children not at all: a tree lives as long as somebody
/// holds its leaves. Subclass it for the nodes of a module, or hold one.
///
/// **Threads**: any, for every member, also inside a handler. Raising takes no lock on the
/// lock-free core and waits for nobody; changing trees, and asking for nodes, takes one lock for all
/// of them.
///
/// **Identity**: ``id`` is that of the object. It is the same as long as the node lives, wherever
/// it is attached, and may be another's afterwards.
open class EventNode: @unchecked Sendable, Identifiable {
  // All stored properties are constant; what changes is in the core's node, which says who touches
  // what. A subclass guards its own state.

  /// A type, of which there are no counts: neither a node nor a raise pays for any.
  @usableFromInline final let core: any TreeCore.Type
  /// Written by the initialiser alone, before anybody else has the object: no raise pays for a
  /// check.
  @usableFromInline @exclusivity(unchecked) final private(set) var node: UnsafeMutableRawPointer
  /// What paths and dumps call it; nil is the name of its class.
  public final let name: String?

  /// Makes a node, as the last child of another.
  ///
  /// - Parameter parent: Nil makes the root of a new tree.
  public init(parent: EventNode?) {
    core = parent?.core ?? EventCentral.Core.default.parts.trees
    name = nil
    node = EventNode.notMade
    make(under: parent)
  }

  /// Makes a node with a name, as the last child of another.
  ///
  /// - Parameters:
  ///   - parent: Nil makes the root of a new tree.
  ///   - name: What paths and dumps call it; nil is the name of its class.
  ///   - core: Which implementation; nil is that of the parent, or the default for a root. All
  ///     nodes of a tree are on one.
  public init(
    parent: EventNode? = nil, name: String? = nil, core: EventCentral.Core? = nil
  ) {
    self.core = core?.parts.trees ?? parent?.core ?? EventCentral.Core.default.parts.trees
    self.name = name
    node = EventNode.notMade
    make(under: parent)
  }

  deinit {
    // Nobody else has a reference, so that no other call runs or follows; a walk that still has
    // this node's handlers finds them ended.
    if let parent = core.endNode(node) {
      letGoOfParent(parent)
    }
  }

  /// Before `make`, which the initialiser ends with.
  private static var notMade: UnsafeMutableRawPointer {
    UnsafeMutableRawPointer(bitPattern: 1).unsafelyUnwrapped
  }

  private func make(under parent: EventNode?) {
    node = core.makeNode(Unmanaged.passUnretained(self).toOpaque())
    if let parent {
      attach(to: parent)
    }
  }

  /// What paths and dumps call it.
  final var label: String { name ?? "\(type(of: self))" }
}

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

extension EventNode: CustomStringConvertible {
  /// Its ``path``.
  public var description: String { path }
}

extension EventNode: ActiveByItself {}

/// What a parent that ends leaves to the loop in `letGoOfParent` that runs below it on the stack.
private final class PendingParent {
  var node: EventNode?
  /// That of the innermost such loop of the thread.
  static let current = ThreadLocal<PendingParent>()
}

/// Ends the reference that a child had of its parent, which may end by it. With no lock held.
///
/// The nodes of a chain, each of which holds the next, end one after the other, and not one inside the
/// other, which would need a stack as deep as the chain: a parent that ends calls this in its `deinit`
/// for its own parent, and leaves that one to the loop. One can be left, which is what a chain needs;
/// whatever else ends inside a user's `deinit` has a loop of its own.
func letGoOfParent(_ context: UnsafeMutableRawPointer) {
  var parent: EventNode? = Unmanaged<EventNode>.fromOpaque(context).takeRetainedValue()
  guard isKnownUniquelyReferenced(&parent) else { return }
  if let outer = PendingParent.current.value, outer.node == nil {
    outer.node = parent
    return
  }
  let pending = PendingParent()
  PendingParent.current.with(pending) {
    while parent != nil {
      parent = nil
      // What its `deinit` left, if it ended.
      parent = pending.node.take()
    }
  }
}
