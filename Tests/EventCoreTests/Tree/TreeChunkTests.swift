// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

/// A raise finds its handlers some at a time, so that one that is consumed early has not gone
/// through the whole tree; the changes of its handlers meet what it has not come to.
@Suite("Trees: a raise through far more nodes than it finds at once")
struct TreeChunkTests {
  private static let count = 500

  /// A root with `count` children, "0" and so on, whose handlers log their number.
  private struct Wide {
    let root: EventNode
    let nodes: [EventNode]
    let handles: [EventNodeHandle]
    let log = Log<Int>()

    init(_ core: EventCentral.Core, _ body: @escaping @Sendable (Int) -> Void) {
      let (log, root) = (log, EventNode(name: "root", core: core))
      nodes = (0..<count).map { EventNode(parent: root, name: "\($0)") }
      handles = nodes.enumerated().map { index, node in
        node.addHandler { (_: Note) in
          log.append(index)
          body(index)
        }
      }
      self.root = root
    }
  }

  /// A place for what is made after the handlers that use it.
  private final class Later<Value: Sendable>: Sendable {
    private let value = Guarded<Value?>(nil)
    func set(_ new: Value) { value.withLock { $0 = new } }
    var now: Value { value.withLock { $0! } }
  }

  @Test("a raise that is at its beginning holds nothing of what is far from it", arguments: cores)
  func holdsNothingFar(core: EventCentral.Core) {
    let root = EventNode(core: core)
    let nodes = (0..<1000).map { _ in EventNode(parent: root) }
    let far = Later<EventNodeHandle>()
    let (lifetime, log) = (Lifetime(), Log<Bool>())
    nodes[0].addHandler([.onPropagate, .consumeEvent]) { (_: Note) in
      far.now.remove()
      // Its closure ended with the removal: no walk had come to it.
      log.append(lifetime.alive == 0)
    }
    for node in nodes[1..<999] { node.addHandler { (_: Note) in log.append(false) } }
    far.set(
      { token in
        nodes[999].addHandler { (_: Note) in withExtendedLifetime(token) {} }
      }(lifetime.token()))
    root.raise(event: Note())
    #expect(log.entries == [true])
  }

  @Test("detached from a handler, a far node is passed over; the others are not", arguments: cores)
  func detachesFar(core: EventCentral.Core) {
    let nodes = Later<[EventNode]>()
    let tree = Wide(core) { index in
      if index == 3 { for far in [100, 250, 499] { nodes.now[far].detach() } }
    }
    nodes.set(tree.nodes)
    // The handlers have them, and they the handlers.
    defer { nodes.set([]) }
    tree.root.raise(event: Note())
    #expect(tree.log.take() == (0..<Self.count).filter { ![100, 250, 499].contains($0) })
  }

  @Test(
    "moved from a handler, a far node is for the next event, in its new place", arguments: cores)
  func movesFar(core: EventCentral.Core) {
    let nodes = Later<[EventNode]>()
    let tree = Wide(core) { index in
      if index == 3, nodes.now[300].parent !== nodes.now[0] {
        nodes.now[300].attach(to: nodes.now[0])
      }
    }
    nodes.set(tree.nodes)
    // The handlers have them, and they the handlers.
    defer { nodes.set([]) }
    tree.root.raise(event: Note())
    #expect(tree.log.take() == (0..<Self.count).filter { $0 != 300 })
    tree.root.raise(event: Note())
    #expect(tree.log.take() == [0, 300] + (1..<Self.count).filter { $0 != 300 })
  }

  @Test(
    "removed from a handler, a far handler is not called; what is added waits", arguments: cores)
  func removesAndAddsFar(core: EventCentral.Core) {
    let (nodes, handles) = (Later<[EventNode]>(), Later<[EventNodeHandle]>())
    let added = Log<Int>()
    let tree = Wide(core) { index in
      if index == 3 {
        handles.now[400].remove()
        nodes.now[450].addHandler { (_: Note) in added.append(450) }
      }
    }
    nodes.set(tree.nodes)
    // The handlers have them, and they the handlers.
    defer { nodes.set([]) }
    handles.set(tree.handles)
    tree.root.raise(event: Note())
    #expect(tree.log.take() == (0..<Self.count).filter { $0 != 400 })
    #expect(added.entries.isEmpty)
    tree.root.raise(event: Note())
    #expect(added.entries == [450])
  }

  @Test("changes at every step: each node that stays is called once, in order", arguments: cores)
  func changesAtEveryStep(core: EventCentral.Core) {
    let nodes = Later<[EventNode]>()
    let tree = Wide(core) { index in
      if index % 2 == 0 { nodes.now[index + 1].detach() }
    }
    nodes.set(tree.nodes)
    // The handlers have them, and they the handlers.
    defer { nodes.set([]) }
    tree.root.raise(event: Note())
    #expect(tree.log.take() == Array(stride(from: 0, to: Self.count, by: 2)))
  }

  @Test("an event inside an event, far apart, while nodes go", arguments: cores)
  func nested(core: EventCentral.Core) {
    let (nodes, nested) = (Later<[EventNode]>(), Log<Int>())
    let tree = Wide(core) { index in
      guard index == 200, nested.entries.isEmpty else { return }
      nested.append(index)
      nodes.now[350].detach()
      nodes.now[0].parent!.raise(event: Note())
      nodes.now[351].detach()
    }
    nodes.set(tree.nodes)
    // The handlers have them, and they the handlers.
    defer { nodes.set([]) }
    tree.root.raise(event: Note())
    let inner = (0..<Self.count).filter { $0 != 350 }
    let outer = (201..<Self.count).filter { $0 != 350 && $0 != 351 }
    #expect(tree.log.take() == Array(0...200) + inner + outer)
  }
}
