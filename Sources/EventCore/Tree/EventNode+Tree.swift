// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventNode {
  /// The node above this one; nil for a root. The setter attaches the node, as ``attach(to:)``, or detaches
  /// it.
  ///
  /// **Threads**: any. The result was true at one moment during the call.
  public final var parent: EventNode? {
    get {
      let node = node
      return core.object { $0.parent(of: node) }
    }
    set {
      guard let newValue else { return detach() }
      attach(to: newValue)
    }
  }

  /// Makes this node, with everything below it, the last child of another one, also if it is a child of
  /// that node already.
  ///
  /// Events that were raised before do not visit nodes that are attached or moved meanwhile.
  ///
  /// - Parameter parent: A node that is neither this one nor below it; otherwise this traps, since a tree has
  ///   no cycles. ``tryAttach(to:)`` returns false instead.
  ///
  /// **Threads**: any, also inside a handler.
  ///
  /// **Ownership**: this node retains `parent` instead of its former parent.
  ///
  /// **Complexity**: O(depth of `parent`) for a node with children, O(1) for one without; on the
  /// lock-free core O(depth) for the first handlers of a type in that tree.
  public final func attach(to parent: EventNode) {
    require(
      tryAttach(to: parent),
      """
      A tree of nodes has no cycles, and "\(path)" was to be attached to "\(parent.path)", which is the \
      same node or lies below it: detach that one first, or ask tryAttach(to:).
      """)
  }

  /// Attaches this node to another one, as ``attach(to:)``, unless that would make a cycle.
  ///
  /// - Parameter parent: A node on the same core as this one; otherwise this traps.
  /// - Returns: False if `parent` is this node or below it; then nothing has changed.
  ///
  /// **Threads**, **Complexity**: as for ``attach(to:)``.
  public final func tryAttach(to parent: EventNode) -> Bool {
    require(
      core == parent.core,
      """
      The nodes of a tree are on one core, and "\(path)" is on another than "\(parent.path)": make one \
      of them with the core of the other (EventNode(core:)).
      """)
    // The child's reference to its parent. The core stores the pointer with the node.
    let reference = Unmanaged.passRetained(parent)
    switch core.attach(node, to: parent.node) {
    case .attached(let previous):
      if let previous { letGoOfParent(previous) }
      return true
    case .cycle:
      reference.release()
      return false
    }
  }

  /// Takes this node, with everything below it, out of its tree: it becomes a root, unless it is one already.
  ///
  /// **Threads**: any, also inside a handler.
  ///
  /// **Ownership**: the parent is released.
  public final func detach() {
    if let previous = core.detach(node) {
      letGoOfParent(previous)
    }
  }

  /// The nodes directly below this one, in the order in which they joined.
  ///
  /// **Threads**: any. The result was true at one moment during the call.
  ///
  /// **Complexity**: O(children).
  ///
  /// **Ownership**: the array retains the nodes; their parent does not.
  public final var children: [EventNode] {
    let node = node
    return core.objects { trees, found in
      var child = trees.firstChild(of: node)
      while let one = child {
        found(one)
        child = trees.nextSibling(of: one)
      }
    }
  }

  /// The root of this node's tree: the node itself, if it has no parent.
  ///
  /// **Threads**: any. The result was true at one moment during the call.
  ///
  /// **Complexity**: O(depth).
  public final var root: EventNode {
    let node = node
    // Nil only if this node is the root, and ending: otherwise its children retain the root.
    return core.object { trees in
      var top = node
      while let above = trees.parent(of: top) { top = above }
      return top
    } ?? self
  }

  /// Whether this node is below another one. **Threads**, **Complexity**: as for ``root``.
  public final func isDescendant(of other: EventNode) -> Bool {
    guard core == other.core else { return false }
    var isBelow = false
    core.withTrees { trees in
      var above = trees.parent(of: node)
      while let one = above, one != other.node { above = trees.parent(of: one) }
      isBelow = above != nil
    }
    return isBelow
  }

  /// How many nodes are above this one. **Threads**, **Complexity**: as for ``root``, but it takes no lock on
  /// the lock-free core.
  public final var depth: Int { core.depth(of: node) }

  /// The names of the nodes from the root to this one: `"app/cart/button"`. A node without a name has that of
  /// its class.
  ///
  /// **Threads**, **Complexity**: as for ``root``. Like all members that return nodes or their names, it
  /// locks the trees while it climbs, so that no node ends before it is retained.
  public final var path: String {
    let node = node
    let above = core.objects { trees, found in
      var next = trees.parent(of: node)
      while let one = next {
        found(one)
        next = trees.parent(of: one)
      }
    }
    return (above.reversed().map(\.label) + [label]).joined(separator: "/")
  }
}

extension TreeCore {
  /// Finds a node while the trees are locked, and returns its object; nil if there is none or it is ending.
  static func object(_ find: (any TreeReader) -> UnsafeMutableRawPointer?) -> EventNode? {
    var object: EventNode?
    withTrees { trees in
      object = find(trees).flatMap(trees.context).flatMap(retained)
    }
    return object
  }

  /// Finds nodes likewise, and returns their objects, without those that are ending.
  static func objects(
    _ find: (any TreeReader, (UnsafeMutableRawPointer) -> Void) -> Void
  ) -> [EventNode] {
    var objects: [EventNode] = []
    withTrees { trees in
      find(trees) { node in
        if let object = trees.context(of: node).flatMap(retained) { objects.append(object) }
      }
    }
    return objects
  }

  static func depth(of node: UnsafeMutableRawPointer) -> Int {
    var depth = 0
    withTrees { trees in
      var above = trees.parent(of: node)
      while let one = above {
        depth += 1
        above = trees.parent(of: one)
      }
    }
    return depth
  }
}

/// A reference to the node of a context; nil if it is ending. Inside `withTrees`: a `deinit` waits in
/// `endNode` meanwhile, so that the memory is valid.
func retained(_ context: UnsafeMutableRawPointer) -> EventNode? {
  let object = Unmanaged<EventNode>.fromOpaque(context).takeUnretainedValue()
  // Only a weak reference tells whether an object is ending. It costs the node a side table, so it is made
  // only when a user asks for nodes.
  weak let weakObject = object
  let found = weakObject
  // `object` ends before `found`, so that the caller gets the last reference if all others have gone: a
  // `deinit` in here would wait for the lock that the caller holds.
  withExtendedLifetime(object) {}
  return found
}
