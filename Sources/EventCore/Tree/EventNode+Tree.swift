// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// Where a node is in its tree.

extension EventNode {
  /// The node above this one; nil for a root. Setting it attaches the node there, as
  /// ``attach(to:)``, or detaches it.
  ///
  /// **Threads**: any. What it was at one moment during the call.
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

  /// Moves this node, with everything below it, under another one, as its last child. Under the
  /// same parent as before it becomes the last one.
  ///
  /// An event that is on its way passes over what has been attached or moved since it was raised.
  ///
  /// - Parameter parent: Neither this node nor one below it: a tree has no cycles, and the attempt
  ///   traps. ``tryAttach(to:)`` answers instead.
  ///
  /// **Threads**: any, also inside a handler.
  ///
  /// **Ownership**: this node holds `parent` instead of the one that it had.
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

  /// Moves this node under another one, as ``attach(to:)``, unless that would make a cycle.
  ///
  /// - Parameter parent: On the same core as this node: a tree has one, and the attempt traps.
  /// - Returns: False if `parent` is this node or lies below it; then nothing has changed.
  ///
  /// **Threads**, **Complexity**: as for ``attach(to:)``.
  public final func tryAttach(to parent: EventNode) -> Bool {
    require(
      core == parent.core,
      """
      The nodes of a tree are on one core, and "\(path)" is on another than "\(parent.path)": make one \
      of them with the core of the other (EventNode(core:)).
      """)
    // The reference that a child has of its parent. The core keeps it as the parent of the node.
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

  /// Takes this node, with everything below it, out of its tree: it becomes a root. Nothing happens
  /// to one that is.
  ///
  /// **Threads**: any, also inside a handler.
  ///
  /// **Ownership**: the parent is let go of.
  public final func detach() {
    if let previous = core.detach(node) {
      letGoOfParent(previous)
    }
  }

  /// The nodes right below this one, in the order in which they joined.
  ///
  /// **Threads**: any. What they were at one moment during the call.
  ///
  /// **Complexity**: O(children).
  ///
  /// **Ownership**: the array holds them, the node does not.
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

  /// The node at the top of this one's tree: itself, if it has no parent.
  ///
  /// **Threads**: any. What it was at one moment during the call, as for the three below.
  ///
  /// **Complexity**: O(depth), as for the three below.
  public final var root: EventNode {
    let node = node
    // The top of a node's tree is held by its children, or is the node itself, which may be ending.
    return core.object { trees in
      var top = node
      while let above = trees.parent(of: top) { top = above }
      return top
    } ?? self
  }

  /// Whether this node is below another one.
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

  /// How many nodes are above this one.
  ///
  /// **Threads**: any. Takes no lock on the lock-free core.
  public final var depth: Int { core.depth(of: node) }

  /// The names of the nodes from the root to this one: `"app/cart/button"`. A node without a name
  /// goes by that of its class.
  ///
  /// **Threads**: any. As ``root`` and whatever else hands out nodes or asks them it takes the lock of
  /// those who change trees for the climb: whoever moves a node lets go of its parent, and a node that
  /// is to be asked must not end before.
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
  /// The object of a node that is found while the trees do not change; nil if it is none, or
  /// ending.
  static func object(_ find: (any TreeReader) -> UnsafeMutableRawPointer?) -> EventNode? {
    var object: EventNode?
    withTrees { trees in
      object = find(trees).flatMap(trees.context).flatMap(retained)
    }
    return object
  }

  /// The objects of the nodes that are found, but for those that are ending.
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

/// A reference to the node of a context, unless it is ending. Inside `withTrees`: its `deinit` has
/// not got past `endNode` then, so that the memory is there.
func retained(_ context: UnsafeMutableRawPointer) -> EventNode? {
  let object = Unmanaged<EventNode>.fromOpaque(context).takeUnretainedValue()
  // A weak reference is what Swift has for "unless it is ending". It costs a node its first
  // allocation beside itself, which is why nobody asks before a user does.
  weak let weakObject = object
  let found = weakObject
  // Held until here: if everybody else lets go meanwhile, `found` is the last reference, and not
  // one that ends here, where `deinit` would wait for the lock that the caller has.
  withExtendedLifetime(object) {}
  return found
}
