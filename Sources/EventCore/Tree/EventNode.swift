// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A node of a tree through which events travel: an event that is raised at a node climbs to the root, and is
/// then propagated to every node of the tree.
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
/// A node retains its parent, but not its children: a tree lives as long as somebody retains its leaves.
/// Subclass it, or use nodes as properties of your objects.
///
/// **Threads**: any, for every member, also inside a handler. Raising takes no lock on the lock-free core,
/// and waits for nobody; changing trees and asking for nodes take one lock for all trees.
///
/// **Identity**: ``id`` is that of the object. It stays the same as long as the node lives; afterwards
/// another node may get it.
open class EventNode: @unchecked Sendable, Identifiable, CustomStringConvertible {
  // All stored properties are constant; what changes is in the core's node. A subclass guards its own state.

  /// A type, not an object: so neither a node nor a raise has to count references to it.
  @usableFromInline final let core: any TreeCore.Type
  /// Written by the initialiser only, before anybody else has the object, so that no raise needs a check for
  /// exclusive access.
  @usableFromInline @exclusivity(unchecked) final private(set) var node: UnsafeMutableRawPointer
  /// The node's name in paths and diagrams; nil stands for the name of its class.
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
  ///   - name: The node's name in paths and diagrams; nil stands for the name of its class.
  ///   - core: The implementation, which all nodes of a tree share; nil takes that of the parent, or the
  ///     default for a root.
  public init(
    parent: EventNode? = nil, name: String? = nil, core: EventCentral.Core? = nil
  ) {
    self.core = core?.parts.trees ?? parent?.core ?? EventCentral.Core.default.parts.trees
    self.name = name
    node = EventNode.notMade
    make(under: parent)
  }

  deinit {
    // Nobody else has a reference, so no other call with this node runs or follows. A walk that has collected
    // handlers of this node finds that they have ended.
    if let parent = core.endNode(node) {
      letGoOfParent(parent, of: ObjectIdentifier(self))
    }
  }

  /// The value of `node` until the initialiser calls `make`.
  private static var notMade: UnsafeMutableRawPointer {
    UnsafeMutableRawPointer(bitPattern: 1).unsafelyUnwrapped
  }

  private func make(under parent: EventNode?) {
    node = core.makeNode(Unmanaged.passUnretained(self).toOpaque())
    if let parent {
      attach(to: parent)
    }
  }

  /// The node's name in paths and diagrams.
  final var label: String { name ?? "\(type(of: self))" }

  /// What the node is printed as: its ``path``, unless a subclass overrides it. Paths and diagrams have ``name`` and do
  /// not ask for it. **Threads**: any; an override runs on the thread that prints.
  open var description: String { path }
}

extension EventNode {
  /// Raises an event: it climbs from this node to the root, and then goes down to every node of the tree,
  /// until a handler consumes it.
  ///
  /// - Parameters:
  ///   - event: What happened. It is handled by handlers for its exact type (D11).
  ///   - scope: Which phases the event has; by default all of them.
  /// - Returns: How many handlers were called, and which node consumed the event, if one did.
  ///
  /// **Order**: first handlers with ``CaptureMode/onCapture``, from the root to this node; then
  /// those with ``CaptureMode/onRaise``, from this node to the root; then those with
  /// ``CaptureMode/onPropagate``, from the root to every node: parents before their children,
  /// siblings in the order in which they joined. Within a node, in the order in which the handlers
  /// were added.
  ///
  /// The event visits the tree as it was when it was raised: handlers and nodes that are added, attached or
  /// moved meanwhile get later events only. Each handler is called once in each of its phases (D4). It is not
  /// called if it was removed meanwhile (D6), if its node has ended (D9), or if a handler of this same event
  /// has detached or moved its node or a node above that (except for the node that propagates). If another
  /// thread detaches a node meanwhile, the node's handlers are called or not.
  ///
  /// **Threads**: any, also inside a handler. Handlers run on the calling thread, before this returns; an
  /// event that a handler raises is handled before the handler goes on.
  ///
  /// **Complexity**: O(nodes). The lock-free core leaves subtrees out that have no handler for the type, and takes no lock
  /// and allocates nothing once the thread is warm. The locking core looks at all nodes, and meanwhile has trees locked.
  @inlinable
  @discardableResult
  public final func raise<E: Eventable>(event: E, scope: EventRaiseScope = .tree) -> EventOutcome {
    walkTree(event, from: self, phases: scope.rawValue & EventRaiseScope.tree.rawValue)
  }

  /// Propagates an event to this node and every node below it, until a handler consumes it.
  ///
  /// - Parameter event: What happened. It is handled by handlers for its exact type (D11) with
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

extension EventNode: ActiveByItself {}

/// A parent that `letGoOfParent` has to release next.
private final class PendingParent {
  var node: EventNode?
  /// The node that the loop is ending, whose `deinit` alone leaves its parent here.
  var ending: ObjectIdentifier?
  /// That of the innermost loop of `letGoOfParent` on this thread.
  static let current = ThreadLocal<PendingParent>()
}

/// Releases a child's reference to its parent, which may end the parent. With no lock held.
///
/// Each node of a long chain retains the next one. If each released its parent inside its own `deinit`, the
/// stack would be as deep as the chain. So a parent that ends here, and calls this function in its `deinit`
/// for its own parent, leaves that one to the loop below. Other nodes that end meanwhile, by a user's `deinit` or with a
/// handler's closure, get loops of their own.
///
/// - Parameter child: The node in whose `deinit` this is called; nil elsewhere.
func letGoOfParent(_ context: UnsafeMutableRawPointer, of child: ObjectIdentifier? = nil) {
  var parent: EventNode? = Unmanaged<EventNode>.fromOpaque(context).takeRetainedValue()
  guard isKnownUniquelyReferenced(&parent) else { return }
  if let child, let outer = PendingParent.current.value, outer.ending == child {
    outer.node = parent
    return
  }
  let pending = PendingParent()
  PendingParent.current.with(pending) {
    while let next = parent.map({ ObjectIdentifier($0) }) {
      pending.ending = next
      parent = nil
      // The parent that its `deinit` left, if it ended.
      parent = pending.node.take()
    }
  }
}
