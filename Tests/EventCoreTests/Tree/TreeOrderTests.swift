// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("Trees: the eight principles of EventsTree, and the order")
struct TreeOrderTests {
  @Test("1: all changes are equal, any value can be an event", arguments: cores)
  func anyValueIsAnEvent(core: EventCentral.Core) {
    enum Change: Event { case some(String, Int) }
    struct Large: Event { let words: (Int, Int, Int, Int, Int, Int, Int, Int, Int) }
    let node = EventNode(core: core)
    let log = Log<String>()
    node.addHandler { (event: Change) in log.append("\(event)") }
    node.addHandler { (event: Large) in log.append("\(event.words.8)") }
    node.raise(event: Change.some("x", 1))
    node.raise(event: Large(words: (1, 2, 3, 4, 5, 6, 7, 8, 9)))
    #expect(log.entries == ["some(\"x\", 1)", "9"])
  }

  @Test("2: a node need not know where it is: the same module works anywhere", arguments: cores)
  func nodesAreIndependent(core: EventCentral.Core) {
    let log = Log<String>()
    final class Module: EventNode, @unchecked Sendable {
      func start(_ log: Log<String>) {
        addHandler(.onRaise) { (event: Note) in log.append("module \(event.text)") }
      }
    }
    let root = EventNode(core: core)
    let inner = EventNode(parent: root)
    for parent in [nil, root, inner] {
      let module = Module(parent: parent, core: core)
      module.start(log)
      module.raise(event: Note(text: parent?.name ?? "-"))
    }
    #expect(log.entries == ["module -", "module -", "module -"])
  }

  @Test("3: one parent, any number of children, in the order in which they joined", arguments: cores)
  func parentAndChildren(core: EventCentral.Core) {
    let root = EventNode(parent: nil, core: core)
    #expect(root.parent == nil)
    #expect(root.children.isEmpty)
    let children = (0..<100).map { _ in EventNode(parent: root) }
    #expect(children.allSatisfy { $0.parent === root })
    #expect(root.children.map(\.id) == children.map(\.id))
    #expect(children[0].children.isEmpty)
  }

  @Test("4: an event can be sent from every node", arguments: cores)
  func everyNodeRaises(core: EventCentral.Core) {
    let tree = LoggedTree(core)
    for name in LoggedTree.names {
      #expect(tree[name].raise(event: Note()).handlerCount == 7 + tree[name].depth + 1)
    }
  }

  @Test("5: a raised event is delivered to all nodes", arguments: cores)
  func allNodesHear(core: EventCentral.Core) {
    let tree = LoggedTree(core, all: .onPropagate)
    for name in LoggedTree.names {
      #expect(Set(tree.raise(name)) == Set(LoggedTree.names.map { "\($0) propagate" }))
    }
  }

  @Test("6: up to the root, then down: parents first, siblings as they joined", arguments: cores)
  func upThenDown(core: EventCentral.Core) {
    let tree = LoggedTree(core)
    let down = propagated("root a a1 a1x a2 b b1")
    #expect(tree.raise("a1x") == raised("a1x a1 a root") + down)
    #expect(tree.raise("b") == raised("b root") + down)
    #expect(tree.raise("root") == raised("root") + down)
  }

  @Test("7: any number of handlers, on raising or on propagating, in their order", arguments: cores)
  func manyHandlers(core: EventCentral.Core) {
    let tree = LoggedTree(core, all: nil)
    for number in 0..<50 {
      tree.listen("a", number % 2 == 0 ? .onRaise : .onPropagate, " \(number)")
    }
    tree.listen("a", [.onRaise, .onPropagate], " both")
    let evens = stride(from: 0, to: 50, by: 2).map { "a raise \($0)" }
    let odds = stride(from: 1, to: 50, by: 2).map { "a propagate \($0)" }
    #expect(tree.raise("a2") == evens + ["a raise both"] + odds + ["a propagate both"])
    #expect(tree.raise("b") == odds + ["a propagate both"])
  }

  @Test("8: consumed on raising, an event is handled nowhere else", arguments: cores)
  func consumedOnRaising(core: EventCentral.Core) {
    let tree = LoggedTree(core, ["a": [.onRaise, .onPropagate, .consumeEvent]])
    #expect(tree.raise("a1x") == raised("a1x a1 a"))
    #expect(tree.raise("b1") == raised("b1 b root") + propagated("root a"))
  }

  @Test("one handler for both phases is called in each", arguments: cores)
  func bothPhases(core: EventCentral.Core) {
    let node = EventNode(core: core)
    let log = Log<EventPhase>()
    node.addHandler([.onRaise, .onPropagate, .onCapture], for: Note.self) { context in
      log.append(context.phase)
      return .continue
    }
    #expect(node.raise(event: Note()) == EventOutcome(handlerCount: 3))
    #expect(log.entries == [.capture, .raise, .propagate])
  }

  @Test("the capture phase comes first, from the root to the node", arguments: cores)
  func captureComesFirst(core: EventCentral.Core) {
    let tree = LoggedTree(core, all: [.onCapture, .onRaise])
    tree.listen("a", .onCapture, " 2")
    #expect(
      tree.raise("a1x")
        == ["root capture", "a capture", "a capture 2", "a1 capture", "a1x capture"]
        + raised("a1x a1 a root"))
  }

  @Test("scopes: each phase alone, and any two", arguments: cores)
  func scopes(core: EventCentral.Core) {
    let tree = LoggedTree(core, all: [.onCapture, .onRaise, .onPropagate])
    let (capture, raise) = (captured("root a a2"), raised("a2 a root"))
    let propagate = propagated("root a a1 a1x a2 b b1")
    #expect(tree.raise("a2", scope: .capturing) == capture)
    #expect(tree.raise("a2", scope: .bubbling) == raise)
    #expect(tree.raise("a2", scope: .propagating) == propagate)
    #expect(tree.raise("a2", scope: [.propagating, .capturing]) == capture + propagate)
    #expect(tree.raise("a2", scope: [.bubbling, .capturing]) == capture + raise)
    #expect(tree.raise("a2") == capture + raise + propagate)
    #expect(tree.raise("a2", scope: []).isEmpty)
  }

  @Test("propagate(event:) reaches the node and what is below it", arguments: cores)
  func propagatingBelow(core: EventCentral.Core) {
    let tree = LoggedTree(core)
    tree["a"].propagate(event: Note())
    #expect(tree.log.take() == propagated("a a1 a1x a2"))
    #expect(tree["b1"].propagate(event: Note()) == EventOutcome(handlerCount: 1))
    #expect(tree.log.take() == propagated("b1"))
  }

  @Test("D11: delivery is by the exact type", arguments: cores)
  func exactType(core: EventCentral.Core) {
    class Base: Event, @unchecked Sendable {}
    final class Derived: Base, @unchecked Sendable {}
    let tree = LoggedTree(core)
    let log = Log<String>()
    tree["a"].addHandler { (_: Base) in log.append("base") }
    tree["a"].addHandler { (_: Derived) in log.append("derived") }
    #expect(tree["b"].raise(event: Other()) == EventOutcome())
    tree["b"].raise(event: Derived())
    tree["b"].raise(event: Base())
    #expect(log.entries == ["derived", "base"])
    #expect(tree.log.entries.isEmpty)
  }

  @Test("an event raised in a handler is handled before the handler goes on", arguments: cores)
  func nestedRaise(core: EventCentral.Core) {
    let root = EventNode(core: core)
    let child = EventNode(parent: root)
    let log = Log<String>()
    child.addHandler { [unowned child] (event: Note) in
      log.append("child \(event.text)")
      if event.text == "1" {
        child.raise(event: Note(text: "2"))
        log.append("back")
      }
    }
    root.addHandler { (event: Note) in log.append("root \(event.text)") }
    root.raise(event: Note(text: "1"))
    #expect(log.entries == ["root 1", "child 1", "root 2", "child 2", "back"])
  }

  @Test("a thousand events raised one inside the other", arguments: cores)
  func deeplyNestedRaise(core: EventCentral.Core) {
    struct Countdown: Event { let number: Int }
    let nodes = chain(of: 5, core)
    let log = Log<Int>()
    nodes[4].addHandler { [unowned node = nodes[2]] (event: Countdown) in
      log.append(event.number)
      if event.number > 0 { node.raise(event: Countdown(number: event.number - 1)) }
    }
    nodes[0].raise(event: Countdown(number: 1000))
    #expect(log.entries == (0...1000).reversed())
  }
}

/// A chain of nodes, the root first.
func chain(of count: Int, _ core: EventCentral.Core) -> [EventNode] {
  var nodes = [EventNode(core: core)]
  while nodes.count < count { nodes.append(EventNode(parent: nodes.last)) }
  return nodes
}
