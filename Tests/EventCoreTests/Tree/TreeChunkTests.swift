// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

/// A raise collects its handlers a chunk at a time, so that an event that is consumed early has not gone
/// through the whole tree. What handlers change applies to all that the walk has not come to.
@Suite("Trees: a raise through far more nodes than it collects at once")
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

  /// A value that is made after the handlers that use it.
  private final class Later<Value: Sendable>: Sendable {
    private let value = Guarded<Value?>(nil)
    func set(_ new: Value) { value.withLock { $0 = new } }
    var now: Value { value.withLock { $0! } }
  }

  @Test("D9: a raise at its beginning holds no handler that is far away", arguments: cores)
  func holdsNothingFar(core: EventCentral.Core) {
    let root = EventNode(core: core)
    let nodes = (0..<1000).map { _ in EventNode(parent: root) }
    let far = Later<EventNodeHandle>()
    let (lifetime, log) = (Lifetime(), Log<Bool>())
    nodes[0].addHandler([.onPropagate, .consumeEvent]) { (_: Note) in
      far.now.remove()
      // The closure is freed with the removal, since no walk has come to it.
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

  @Test("a far node that a handler detaches is passed over; the others are not", arguments: cores)
  func detachesFar(core: EventCentral.Core) {
    let nodes = Later<[EventNode]>()
    let tree = Wide(core) { index in
      if index == 3 { for far in [100, 250, 499] { nodes.now[far].detach() } }
    }
    nodes.set(tree.nodes)
    // Ends the cycle of the nodes and their handlers.
    defer { nodes.set([]) }
    tree.root.raise(event: Note())
    #expect(tree.log.take() == (0..<Self.count).filter { ![100, 250, 499].contains($0) })
  }

  @Test(
    "a far node that a handler moves gets the next event, at its new place", arguments: cores)
  func movesFar(core: EventCentral.Core) {
    let nodes = Later<[EventNode]>()
    let tree = Wide(core) { index in
      if index == 3, nodes.now[300].parent !== nodes.now[0] {
        nodes.now[300].attach(to: nodes.now[0])
      }
    }
    nodes.set(tree.nodes)
    // Ends the cycle of the nodes and their handlers.
    defer { nodes.set([]) }
    tree.root.raise(event: Note())
    #expect(tree.log.take() == (0..<Self.count).filter { $0 != 300 })
    tree.root.raise(event: Note())
    #expect(tree.log.take() == [0, 300] + (1..<Self.count).filter { $0 != 300 })
  }

  @Test(
    "D6: a far handler that a handler removes is not called; one that it adds gets the next event",
    arguments: cores)
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
    // Ends the cycle of the nodes and their handlers.
    defer { nodes.set([]) }
    handles.set(tree.handles)
    tree.root.raise(event: Note())
    #expect(tree.log.take() == (0..<Self.count).filter { $0 != 400 })
    #expect(added.entries.isEmpty)
    tree.root.raise(event: Note())
    #expect(added.entries == [450])
  }

  @Test("with a change at every step each node that stays is called once, in order", arguments: cores)
  func changesAtEveryStep(core: EventCentral.Core) {
    let nodes = Later<[EventNode]>()
    let tree = Wide(core) { index in
      if index % 2 == 0 { nodes.now[index + 1].detach() }
    }
    nodes.set(tree.nodes)
    // Ends the cycle of the nodes and their handlers.
    defer { nodes.set([]) }
    tree.root.raise(event: Note())
    #expect(tree.log.take() == Array(stride(from: 0, to: Self.count, by: 2)))
  }

  @Test("D7: a handler may raise an event and detach far nodes before and after it", arguments: cores)
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
    // Ends the cycle of the nodes and their handlers.
    defer { nodes.set([]) }
    tree.root.raise(event: Note())
    let inner = (0..<Self.count).filter { $0 != 350 }
    let outer = (201..<Self.count).filter { $0 != 350 && $0 != 351 }
    #expect(tree.log.take() == Array(0...200) + inner + outer)
  }
}
