// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

/// In the tree of `LoggedTree` one handler changes something.
@Suite("Trees that handlers change while an event travels")
struct TreeMutationTests {
  /// Raises twice at a1x. A handler that stands before all others of one node and phase makes a change
  /// in the first raise. Returns the calls of both.
  private func raise(
    _ core: EventCentral.Core, at name: String, in phase: CaptureMode,
    _ change: @escaping @Sendable (LoggedTree) -> Void
  ) -> (now: [String], next: [String]) {
    let tree = LoggedTree(core, all: nil)
    let changes = Log<Void>()
    tree[name].addHandler(phase) { [unowned tree] (_: Note) in
      guard changes.entries.isEmpty else { return }
      changes.append(())
      change(tree)
    }
    for name in LoggedTree.names { tree.listen(name, [.onRaise, .onPropagate]) }
    return (tree.raise("a1x"), tree.raise("a1x"))
  }

  private let everything = raised("a1x a1 a root") + propagated("root a a1 a1x a2 b b1")

  @Test("D7: a node that is attached during an event hears the next one", arguments: cores)
  func attaching(core: EventCentral.Core) {
    for (name, phase) in [
      ("a1x", CaptureMode.onRaise), ("root", .onRaise), ("root", .onPropagate),
      ("b1", .onPropagate),
    ] {
      let kept = Log<EventNode>()
      let (now, next) = raise(core, at: name, in: phase) { tree in
        let node = EventNode(parent: tree["a"], name: "new", core: core)
        let log = tree.log
        node.addHandler { (_: Note) in log.append("new propagate") }
        kept.append(node)
      }
      #expect(now == everything)
      #expect(
        next == raised("a1x a1 a root") + propagated("root a a1 a1x a2") + ["new propagate"]
          + propagated("b b1"))
      // Ends a cycle: a handler holds this log, the log the new node, and the node those above it.
      _ = kept.take()
    }
  }

  @Test(
    "D7: after a node is detached on the way up the event goes on without its subtree",
    arguments: cores)
  func detachingOnTheWayUp(core: EventCentral.Core) {
    let (now, next) = raise(core, at: "a1x", in: .onRaise) { $0["a"].detach() }
    #expect(now == raised("root") + propagated("root b b1"))
    #expect(next == raised("a1x a1 a") + propagated("a a1 a1x a2"))
  }

  @Test("D7: a node that detaches itself ends its own handlers, not its parent's", arguments: cores)
  func detachingOneself(core: EventCentral.Core) {
    let (now, _) = raise(core, at: "a1x", in: .onRaise) { $0["a1x"].detach() }
    #expect(now == raised("a1 a root") + propagated("root a a1 a2 b b1"))
  }

  @Test("D7: a node may be detached on the way down, before and after its turn", arguments: cores)
  func detachingOnTheWayDown(core: EventCentral.Core) {
    let up = raised("a1x a1 a root")
    let (ahead, _) = raise(core, at: "root", in: .onPropagate) { $0["a1"].detach() }
    #expect(ahead == up + propagated("root a a2 b b1"))
    let (inside, _) = raise(core, at: "a1", in: .onPropagate) { $0["a"].detach() }
    #expect(inside == up + propagated("root a b b1"))
    let (behind, next) = raise(core, at: "b", in: .onPropagate) { $0["a"].detach() }
    #expect(behind == everything)
    #expect(next == raised("a1x a1 a") + propagated("a a1 a1x a2"))
  }

  @Test(
    "D7: a node that is moved ahead or back is passed over, and hears the next", arguments: cores)
  func moving(core: EventCentral.Core) {
    let up = raised("a1x a1 a root")
    let (ahead, next) = raise(core, at: "a", in: .onPropagate) { $0["a1"].attach(to: $0["b"]) }
    #expect(ahead == up + propagated("root a a2 b b1"))
    #expect(next == raised("a1x a1 b root") + propagated("root a a2 b b1 a1 a1x"))
    let (back, _) = raise(core, at: "a", in: .onPropagate) { $0["b"].attach(to: $0["a2"]) }
    #expect(back == up + propagated("root a a1 a1x a2"))
    let (same, _) = raise(core, at: "root", in: .onPropagate) {
      $0["a"].detach()
      $0["a"].attach(to: $0["root"])
    }
    #expect(same == up + propagated("root b b1"))
  }

  @Test("D7: if the root gets a parent during an event, the next one goes there", arguments: cores)
  func rootIsAttached(core: EventCentral.Core) {
    let above = EventNode(name: "above", core: core)
    let (now, next) = raise(core, at: "a1", in: .onRaise) { tree in
      let log = tree.log
      above.addHandler(.onRaise) { (_: Note) in log.append("above raise") }
      tree["root"].attach(to: above)
    }
    #expect(now == everything)
    #expect(next == raised("a1x a1 a root above") + propagated("root a a1 a1x a2 b b1"))
  }

  @Test("D6: handlers that are removed during an event are not called", arguments: cores)
  func removing(core: EventCentral.Core) {
    let up = raised("a1x a1 a root")
    let (one, _) = raise(core, at: "a1x", in: .onRaise) {
      #expect($0["a"].removeHandlers(for: Note.self, with: .onRaise) == 1)
    }
    #expect(one == raised("a1x a1 root") + propagated("root a a1 a1x a2 b b1"))
    let (type, _) = raise(core, at: "a", in: .onPropagate) {
      #expect($0["b"].removeHandlers(for: Note.self) == 2)
      #expect($0["b1"].removeHandlers(for: Other.self) == 0)
    }
    #expect(type == up + propagated("root a a1 a1x a2 b1"))
    let (all, _) = raise(core, at: "root", in: .onPropagate) { tree in
      for name in LoggedTree.names { tree[name].removeAllHandlers() }
    }
    #expect(all == up)
  }

  @Test("D6: the first, a middle and the last handler may remove themselves", arguments: cores)
  func removingOneself(core: EventCentral.Core) {
    for place in 0..<3 {
      let (node, log) = (EventNode(core: core), Log<Int>())
      let handles = Log<EventNodeHandle>()
      for number in 0..<3 {
        handles.append(
          node.addHandler { (_: Note) in
            log.append(number)
            if number == place { #expect(handles.entries[number].remove()) }
          })
      }
      node.raise(event: Note())
      node.raise(event: Note())
      #expect(log.entries == [0, 1, 2] + [0, 1, 2].filter { $0 != place })
      #expect(!handles.entries[place].isActive)
      #expect(!handles.entries[place].remove())
    }
  }

  @Test("D4: handlers that are added during an event hear the next one", arguments: cores)
  func adding(core: EventCentral.Core) {
    let (now, next) = raise(core, at: "a1", in: .onRaise) { tree in
      tree.listen("a1", [.onRaise, .onPropagate], " new")
      tree.listen("b", .onPropagate, " new")
    }
    #expect(now == everything)
    #expect(
      next == raised("a1x a1") + ["a1 raise new"] + raised("a root")
        + propagated("root a a1") + ["a1 propagate new"] + propagated("a1x a2 b") + [
          "b propagate new"
        ]
        + propagated("b1"))
  }

  @Test("D9: nodes may end during an event, before and after their turn", arguments: cores)
  func ending(core: EventCentral.Core) {
    for place in 0..<5 {
      let (log, lifetime) = (Log<Int>(), Lifetime())
      let root = EventNode(core: core)
      let leaves = Leaves()
      for number in 0..<5 {
        let leaf = EventNode(parent: root)
        leaves.nodes.append(leaf)
        leaf.addHandler { [token = lifetime.token()] (_: Note) in
          log.append(number)
          if number == place { leaves.nodes.removeAll() }
          withExtendedLifetime(token) {}
        }
      }
      root.raise(event: Note())
      #expect(log.entries == Array(0...place))
      #expect(lifetime.alive == 0)
      #expect(root.children.isEmpty)
    }
  }

  @Test("D9: a handler of a child may release the parent", arguments: cores)
  func endingTheParent(core: EventCentral.Core) {
    let log = Log<String>()
    let leaves = Leaves()
    weak var parent: EventNode?
    let child = EventNode(core: core)
    do {
      let node = EventNode(name: "parent", core: core)
      node.addHandler([.onRaise, .onPropagate], for: Note.self) { context in
        log.append("parent \(context.phase)")
        return .continue
      }
      child.parent = node
      leaves.nodes = [node]
      parent = node
    }
    child.addHandler(.onRaise) { [unowned child] (_: Note) in
      log.append("child")
      leaves.nodes = []
      // The child holds its parent until it is detached, as the first call does.
      #expect((child.parent == nil) == (log.entries.count > 2))
      child.detach()
      log.append("end")
    }
    child.addHandler([.onRaise, .onPropagate]) { (_: Note) in log.append("no more") }
    child.raise(event: Note())
    #expect(log.entries == ["child", "end"])
    #expect(parent == nil)
    child.raise(event: Note())
    #expect(log.take().suffix(4) == ["child", "end", "no more", "no more"])
  }

  final class Leaves: @unchecked Sendable {
    // One thread uses it.
    var nodes: [EventNode] = []
  }
}
