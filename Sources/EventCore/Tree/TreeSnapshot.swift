// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A tree at one moment, copied so that it can be drawn with no lock held: its nodes, parents before their
/// children.
struct TreeSnapshot {
  struct Handler {
    let type: Any.Type
    let mode: CaptureMode
    let place: EventListenerContext?

    /// "ItemAdded: onRaise, consumeEvent @ listenerThread".
    var description: String {
      let modes = mode.names.joined(separator: ", ")
      return place.map { "\(type): \(modes) @ \($0.shortName)" } ?? "\(type): \(modes)"
    }
  }

  struct Node {
    let depth: Int
    /// The index of the parent; nil for the root.
    let parent: Int?
    let isLastChild: Bool
    let isHere: Bool
    let name: String?
    let type: Any.Type
    let handlers: [Handler]

    var label: String { name ?? "\(type)" }
  }

  private(set) var nodes: [Node] = []
  /// Retains the nodes without children until the trees are unlocked, since their last references may go
  /// meanwhile.
  private var held: [EventNode] = []

  /// Copies the whole tree of a node.
  init(around here: EventNode) {
    var snapshot = TreeSnapshot()
    here.core.withTrees { trees in
      var root = here.node
      while let above = trees.parent(of: root) { root = above }
      var node = root
      var path: [Int] = []
      while true {
        snapshot.add(node, trees, path, here: node == here.node ? here : nil)
        if let child = trees.firstChild(of: node) {
          path.append(snapshot.nodes.count - 1)
          node = child
          continue
        }
        while node != root {
          if let sibling = trees.nextSibling(of: node) {
            node = sibling
            break
          }
          // Not nil: `node` is below `root`.
          node = trees.parent(of: node).unsafelyUnwrapped
          path.removeLast()
        }
        if node == root { break }
      }
    }
    nodes = snapshot.nodes
  }

  private init() {}

  private mutating func add(
    _ node: UnsafeMutableRawPointer, _ trees: any TreeReader, _ path: [Int], here: EventNode?
  ) {
    guard let context = trees.context(of: node) else { return }
    var name: String?
    var type: Any.Type = EventNode.self
    if trees.firstChild(of: node) == nil {
      // `here` cannot be retained if it is ending, but its caller keeps it.
      guard let object = here ?? retained(context) else { return }
      held.append(object)
      (name, type) = (object.name, Swift.type(of: object))
    } else {
      // Its children retain it, and cannot be detached while the trees are locked.
      Unmanaged<EventNode>.fromOpaque(context)._withUnsafeGuaranteedRef { object in
        (name, type) = (object.name, Swift.type(of: object))
      }
    }
    var handlers: [Handler] = []
    var next = trees.firstRegistration(of: node)
    while let registration = next {
      // The registration retains the handler as long as it is in the list.
      Unmanaged<TreeHandler>.fromOpaque(treeObject(of: registration))._withUnsafeGuaranteedRef { handler in
        handlers.append(
          Handler(
            type: handler.eventType,
            mode: CaptureMode(rawValue: Int(treeModes(of: registration) & ~TreeModes.choice)),
            place: handler.delivery?.place))
      }
      next = trees.nextRegistration(after: registration)
    }
    nodes.append(
      Node(
        depth: path.count, parent: path.last, isLastChild: trees.nextSibling(of: node) == nil,
        isHere: here != nil, name: name, type: type, handlers: handlers))
  }
}

extension EventListenerContext {
  /// The name of the case, with the label of a queue.
  var shortName: String {
    if case .dispatchQueue(let queue) = self { return "queue \(queue.label)" }
    return "\(self)"
  }
}
