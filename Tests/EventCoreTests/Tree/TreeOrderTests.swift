// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("Trees: the eight principles of EventsTree, and the order of handlers")
struct TreeOrderTests {
  @Test("1: all changes are equal, any value can be an event", arguments: cores)
  func anyValueIsAnEvent(core: EventCentral.Core) {
    enum Change: Eventable { case some(String, Int) }
    struct Large: Eventable { let words: (Int, Int, Int, Int, Int, Int, Int, Int, Int) }
    struct Empty: Eventable {}
    final class Shared: Eventable { let number = 3 }
    /// How an event of each kind goes through a tree with a handler for it at every node.
    func way<E: Eventable>(of event: E, _ expected: String) -> (way: [String], outcome: EventOutcome) {
      let tree = LoggedTree(core, all: nil)
      for name in LoggedTree.names {
        tree[name].addHandler([.onCapture, .onRaise, .onPropagate], for: E.self) {
          [log = tree.log] context in
          #expect("\(context.event)".hasSuffix(expected))
          log.append("\(name) \(context.phase)")
          return .continue
        }
      }
      let outcome = tree["a1x"].raise(event: event)
      return (tree.log.take(), outcome)
    }
    let ways = [
      way(of: Note(text: "x"), "Note(text: \"x\")"),
      way(of: Change.some("x", 1), "some(\"x\", 1)"),
      way(of: Large(words: (1, 2, 3, 4, 5, 6, 7, 8, 9)), "(words: (1, 2, 3, 4, 5, 6, 7, 8, 9))"),
      way(of: Empty(), "Empty()"),
      way(of: Shared(), "Shared"),
    ]
    #expect(ways[0].way.count == 4 + 4 + 7)
    for other in ways {
      #expect(other.way == ways[0].way)
      #expect(other.outcome == ways[0].outcome)
    }
  }

  //         root            A module at each place: all are of one class, which does not know its place.
  //        ┌─┴─┐
  //      inner outer
  @Test("2: a node need not know where it is: the same module works anywhere", arguments: cores)
  func nodesAreIndependent(core: EventCentral.Core) {
    let log = Log<String>()
    final class Module: EventNode, @unchecked Sendable {
      func start(_ log: Log<String>) {
        addHandler(.onRaise) { [unowned self] (event: Note) in
          log.append("module under \(parent?.name ?? "nobody") \(event.text)")
        }
      }
    }
    let root = EventNode(name: "root", core: core)
    let inner = EventNode(parent: root, name: "inner")
    let outer = EventNode(parent: root, name: "outer")
    for (name, node) in [("root", root), ("inner", inner), ("outer", outer)] {
      node.addHandler(.onRaise) { (event: Note) in log.append("\(name) \(event.text)") }
    }
    let expected = [
      ("nobody", []), ("root", ["root"]), ("inner", ["inner", "root"]),
      ("outer", ["outer", "root"]),
    ]
    for (parent, (name, above)) in zip([nil, root, inner, outer], expected) {
      let module = Module(parent: parent, core: core)
      module.start(log)
      module.raise(event: Note(text: "new"))
      #expect(log.take() == ["module under \(name) new"] + above.map { "\($0) new" })
    }
    // A module that moves works at its new place.
    let module = Module(parent: inner, core: core)
    module.start(log)
    module.attach(to: outer)
    module.raise(event: Note(text: "moved"))
    #expect(log.take() == ["module under outer moved", "outer moved", "root moved"])
    module.detach()
    module.raise(event: Note(text: "alone"))
    #expect(log.take() == ["module under nobody alone"])
  }

  @Test(
    "3: one parent, any number of children, in the order in which they joined", arguments: cores)
  func parentAndChildren(core: EventCentral.Core) {
    let root = EventNode(parent: nil, core: core)
    #expect(root.parent == nil)
    #expect(root.children.isEmpty)
    let children = (0..<100).map { _ in EventNode(parent: root) }
    #expect(children.allSatisfy { $0.parent === root })
    #expect(root.children.map(\.id) == children.map(\.id))
    #expect(children[0].children.isEmpty)
  }

  @Test(
    "3: the root has no parent, leaves have no children, all others have both", arguments: cores)
  func rootInnerNodesAndLeaves(core: EventCentral.Core) {
    let tree = LoggedTree(core, all: nil)
    let leaves = ["a1x", "a2", "b1"]
    for name in LoggedTree.names {
      #expect((tree[name].parent == nil) == (name == "root"), "\(name)")
      #expect(tree[name].children.isEmpty == leaves.contains(name), "\(name)")
      // The node's parent has it as a child, and no other node has.
      let owners = LoggedTree.names.filter { owner in
        tree[owner].children.contains { $0 === tree[name] }
      }
      #expect(owners == (tree[name].parent.map { [$0.name!] } ?? []), "\(name)")
      #expect(tree[name].root === tree["root"], "\(name)")
    }
    #expect(tree["root"].children.map(\.name) == ["a", "b"])
    #expect(tree["a"].children.map(\.name) == ["a1", "a2"])
  }

  @Test("3: a node that gets another parent has lost the one before", arguments: cores)
  func onlyOneParent(core: EventCentral.Core) {
    let tree = LoggedTree(core)
    tree["a1"].attach(to: tree["b"])
    #expect(tree["a1"].parent === tree["b"])
    #expect(tree["a"].children.map(\.name) == ["a2"])
    #expect(tree["b"].children.map(\.name) == ["b1", "a1"])
    // An event goes up one way from it, and comes down to it once.
    #expect(
      tree.raise("a1x") == raised("a1x a1 b root") + propagated("root a a2 b b1 a1 a1x"))
    // A node that is attached to its parent again is there once, as the last child.
    tree["b1"].attach(to: tree["b"])
    #expect(tree["b"].children.map(\.name) == ["a1", "b1"])
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
    #expect(tree.raise("a2", scope: [.propagating, .bubbling]) == raise + propagate)
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
    class Base: Eventable, @unchecked Sendable {}
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

  @Test("D7: an event raised in a handler is handled before the handler goes on", arguments: cores)
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

  @Test("D7: a thousand events may be raised one inside the other", arguments: cores)
  func deeplyNestedRaise(core: EventCentral.Core) {
    struct Countdown: Eventable { let number: Int }
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
