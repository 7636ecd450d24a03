// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("Trees: where nodes are, and how a tree is written down")
struct TreeShapeTests {
  @Test("a node may be attached, moved and detached", arguments: cores)
  func moving(core: EventCentral.Core) {
    let nodes = (0..<4).map { EventNode(name: "\($0)", core: core) }
    nodes[1].parent = nodes[0]
    nodes[2].attach(to: nodes[0])
    nodes[3].attach(to: nodes[1])
    #expect(nodes[0].children.map(\.name) == ["1", "2"])
    #expect(nodes[3].root === nodes[0])
    #expect(nodes[3].path == "0/1/3")
    #expect(nodes[3].depth == 2)
    #expect(nodes[3].isDescendant(of: nodes[0]))
    #expect(!nodes[3].isDescendant(of: nodes[2]))
    #expect(!nodes[3].isDescendant(of: nodes[3]))
    nodes[1].parent = nodes[2]
    #expect(nodes[3].path == "0/2/1/3")
    nodes[2].parent = nil
    #expect(nodes[2].parent == nil)
    #expect(nodes[0].children.isEmpty)
    #expect(nodes[3].root === nodes[2])
    nodes[2].detach()
    #expect(nodes[3].description == "2/1/3")
  }

  @Test("a subclass says what it is printed as, and paths and diagrams keep its name", arguments: cores)
  func ownDescription(core: EventCentral.Core) {
    final class Cart: EventNode, @unchecked Sendable {
      // It adds no state.
      override var description: String { "a cart in \(super.description)" }
    }
    let cart: EventNode = Cart(parent: EventNode(name: "app", core: core))
    let button = EventNode(parent: cart, name: "button")
    #expect("\(cart)" == "a cart in app/Cart")
    #expect((cart as any CustomStringConvertible).description == "a cart in app/Cart")
    #expect("\(button)" == "app/Cart/button")
    #expect(cart.diagram() == "app\n└─ Cart  ◀ here\n   └─ button\n")
  }

  @Test("attached again to the same parent, a node becomes its last child", arguments: cores)
  func sameParent(core: EventCentral.Core) {
    let root = EventNode(core: core)
    let nodes = (0..<3).map { EventNode(parent: root, name: "\($0)") }
    nodes[0].attach(to: root)
    #expect(root.children.map(\.name) == ["1", "2", "0"])
    nodes[0].attach(to: root)
    #expect(root.children.map(\.name) == ["1", "2", "0"])
    #expect(nodes[0].parent === root)
  }

  @Test("an attach to the node itself or to anything below it is refused", arguments: cores)
  func cycles(core: EventCentral.Core) {
    let nodes = chain(of: 5, core)
    for below in 0..<5 {
      #expect(!nodes[0].tryAttach(to: nodes[below]))
      #expect(!nodes[2].tryAttach(to: nodes[below]) || below < 2)
      nodes[2].parent = nodes[1]
    }
    #expect(nodes[4].path == Array(repeating: "EventNode", count: 5).joined(separator: "/"))
  }

  @Test("a child is on its parent's core, and a node keeps its identity", arguments: cores)
  func identity(core: EventCentral.Core) {
    let root = EventNode(core: core)
    let child = EventNode(parent: root)
    #expect(child.parent === root)
    let id = child.id
    #expect(id != root.id)
    let other = EventNode(name: "other", core: core)
    child.attach(to: other)
    #expect(child.id == id && other.children.map(\.id) == [id])
    child.detach()
    #expect(child.id == id)
    child.addHandler([.onRaise, .consumeEvent]) { (_: Note) in }
    #expect(child.raise(event: Note()).consumer == id)
    #expect(EventNode().name == nil)
  }

  @Test(
    "a chain of 1,000,000 nodes raises, propagates, is written down and freed", arguments: cores)
  func longChain(core: EventCentral.Core) {
    let count = deepChain
    let lifetime = Lifetime()
    do {
      var leaf = EventNode(core: core)
      let root = leaf
      for _ in 1..<count { leaf = EventNode(parent: leaf) }
      let log = Log<String>()
      for (name, node) in [("root", root), ("leaf", leaf)] {
        node.addHandler([.onCapture, .onRaise, .onPropagate], for: Note.self) {
          [token = lifetime.token()] context in
          log.append("\(name) \(context.phase) \(context.depth)")
          return withExtendedLifetime(token) { .continue }
        }
      }
      leaf.raise(event: Note())
      #expect(
        log.entries == [
          "root capture 0", "leaf capture \(count - 1)", "leaf raise \(count - 1)", "root raise 0",
          "root propagate 0", "leaf propagate \(count - 1)",
        ])
      let lines = leaf.diagram().split(separator: "\n")
      #expect(lines.count == count)
      #expect(lines[0] == "EventNode  [Note: onCapture, onRaise, onPropagate]")
      #expect(lines[count - 1].hasSuffix("◀ here"))
    }
    #expect(lifetime.alive == 0)
  }

  @Test("D9: nodes of a long chain that own other nodes end one after the other, and those at once", arguments: cores)
  func chainOfOwners(core: EventCentral.Core) {
    final class Screen: EventNode {
      var helper: EventNode?
      var ends: (() -> Void)?
      deinit {
        helper = nil
        ends?()
      }
    }
    var leaf: EventNode? = EventNode(core: core)
    for number in 0..<100_000 {
      let top = number % 10_000 == 0 ? EventNode(core: core) : nil
      // The only reference to its parent, if it has one.
      let helper = top.map { EventNode(parent: $0) } ?? EventNode(core: core)
      let screen = Screen(parent: leaf)
      if number % 2 == 0 {
        screen.helper = helper
      } else {
        screen.addHandler { (_: Note) in withExtendedLifetime(helper) {} }
      }
      if top != nil { screen.ends = { [weak top] in #expect(top == nil) } }
      leaf = screen
    }
    leaf = nil
  }

  @Test("D4: a flat tree and a chain of many nodes call each handler once", arguments: cores)
  func manyHandlers(core: EventCentral.Core) {
    for isFlat in [true, false] {
      let root = EventNode(core: core)
      var nodes = [root]
      // Around the sizes of the chunks in which a walk collects handlers.
      for count in [1, 3, 4, 5, 63, 64, 65, 127, 128, 129, 300, 1_000, 5_000] {
        while nodes.count < count { nodes.append(EventNode(parent: isFlat ? root : nodes.last!)) }
        let log = Log<Int>()
        let handles = nodes.enumerated().map { index, node in
          node.addHandler([.onRaise, .onPropagate]) { (_: Note) in log.append(index) }
        }
        nodes.last!.raise(event: Note())
        let up = isFlat ? (count == 1 ? [0] : [count - 1, 0]) : (0..<count).reversed()
        #expect(log.entries == up + (0..<count))
        for handle in handles { handle.remove() }
      }
    }
  }

  @Test("a tree is drawn as text, for Graphviz, and for Mermaid", arguments: cores)
  func diagrams(core: EventCentral.Core) {
    struct Tagged<T>: Eventable {}
    let root = EventNode(name: "app", core: core)
    final class Cart: EventNode, @unchecked Sendable {}
    let cart = Cart(parent: root)
    let button = EventNode(parent: cart, name: "\"buy\"")
    let badge = EventNode(parent: root, name: "badge")
    root.addHandler { (_: Note) in }
    button.addHandler([.onRaise, .consumeEvent]) { (_: Note) in }
    button.addHandler(.onCapture) { (_: Tagged<Int>) in }
    badge.addHandler(executeOn: .listenerThread, of: EventCentral()) { (_: Note) in }
    #expect(
      cart.diagram() == """
        app  [Note: onPropagate]
        ├─ Cart  ◀ here
        │  └─ "buy"  [Note: onRaise, consumeEvent; Tagged<Int>: onCapture]
        └─ badge  [Note: onPropagate @ listenerThread]

        """)
    #expect(
      cart.graphvizDiagram() == #"""
        digraph EventTree {
          node [shape=box];
          n0 [label="app\nNote: onPropagate"];
          n1 [label="Cart", style=bold, xlabel="here"];
          n0 -> n1;
          n2 [label="\"buy\"\nNote: onRaise, consumeEvent\nTagged<Int>: onCapture"];
          n1 -> n2;
          n3 [label="badge\nNote: onPropagate @ listenerThread"];
          n0 -> n3;
        }

        """#)
    #expect(
      cart.mermaidDiagram() == """
        graph TD
          classDef here stroke-width:4px
          n0["app<br/>Note#58; onPropagate"]
          n1["Cart"]:::here
          n0 --> n1
          n2["#34;buy#34;<br/>Note#58; onRaise#44; consumeEvent<br/>Tagged#60;Int#62;#58; onCapture"]
          n1 --> n2
          n3["badge<br/>Note#58; onPropagate #64; listenerThread"]
          n0 --> n3

        """)
    #expect(EventNode(core: core).diagram() == "EventNode  ◀ here\n")
  }

  @Test("signs of markup in names are drawn as they are, also below an accent", arguments: cores)
  func signs(core: EventCentral.Core) {
    let node = EventNode(name: "a\"\u{301}<\u{301}b", core: core)
    #expect(node.graphvizDiagram().contains("[label=\"a\\\"\u{301}<\u{301}b\", "))
    #expect(node.mermaidDiagram().contains("[\"a#34;\u{301}#60;\u{301}b\"]"))
    #expect(EventNode(name: "R&amp;D", core: core).graphvizDiagram().contains("[label=\"R&amp;amp;D\", "))
  }

  @Test("a name breaks no line of a text, and one of which nothing is left is a box for Mermaid", arguments: cores)
  func controls(core: EventCentral.Core) {
    let root = EventNode(name: "cart\nline 2", core: core)
    let child = EventNode(parent: root, name: "b\u{1B}[2Jx")
    #expect(child.diagram() == "cart line 2\n└─ b[2Jx  ◀ here\n")
    for name in ["", "\u{1B}"] {
      #expect(EventNode(name: name, core: core).mermaidDiagram().contains("  n0[\" \"]:::here\n"))
    }
  }
}
