// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("Trees: lifetimes of nodes, handlers and events")
struct TreeLifetimeTests {
  final class Tracked: EventNode, @unchecked Sendable {
    // A constant of a Sendable type.
    let token: Lifetime.Token
    init(_ parent: EventNode?, _ lifetime: Lifetime, _ core: EventCentral.Core) {
      token = lifetime.token()
      super.init(parent: parent, core: core)
    }
  }

  @Test("D9: a node holds its parent, and no child", arguments: cores)
  func parentsAreHeld(core: EventCentral.Core) {
    let lifetime = Lifetime()
    var root: EventNode? = Tracked(nil, lifetime, core)
    var leaf: EventNode? = Tracked(Tracked(root, lifetime, core), lifetime, core)
    #expect(lifetime.alive == 3)
    _ = Tracked(root, lifetime, core)
    #expect(lifetime.alive == 3)
    #expect(root!.children.count == 1)
    root = nil
    #expect(lifetime.alive == 3)
    leaf!.parent = nil
    #expect(lifetime.alive == 1)
    leaf = nil
    #expect(lifetime.alive == 0)
  }

  @Test("D9: a node that moves releases its old parent", arguments: cores)
  func movingLetsGo(core: EventCentral.Core) {
    let lifetime = Lifetime()
    let leaf = Tracked(nil, lifetime, core)
    for _ in 0..<10 {
      leaf.attach(to: Tracked(Tracked(nil, lifetime, core), lifetime, core))
      #expect(lifetime.alive == 3)
    }
    leaf.detach()
    #expect(lifetime.alive == 1)
  }

  @Test("D9: an attach that is refused, since it would make a cycle, retains nothing", arguments: cores)
  func refusedCycle(core: EventCentral.Core) {
    let lifetime = Lifetime()
    do {
      let root = Tracked(nil, lifetime, core)
      let leaf = Tracked(root, lifetime, core)
      #expect(!root.tryAttach(to: leaf))
    }
    #expect(lifetime.alive == 0)
  }

  @Test(
    "D9: a handler's closure is freed when it is removed, alone or with others, or its node ends",
    arguments: cores)
  func closuresEnd(core: EventCentral.Core) {
    let lifetime = Lifetime()
    var node: EventNode? = EventNode(core: core)
    func add() -> EventNodeHandle {
      node!.addHandler { [token = lifetime.token()] (_: Note) in withExtendedLifetime(token) {} }
    }
    let handle = add()
    #expect(lifetime.alive == 1)
    #expect(handle.remove())
    #expect(lifetime.alive == 0)
    _ = add()
    #expect(node!.removeHandlers(for: Note.self, with: .onRaise) == 0)
    #expect(node!.removeHandlers(for: Note.self, with: .onPropagate) == 1)
    #expect(lifetime.alive == 0)
    let kept = (add(), add())
    #expect(node!.removeAllHandlers() == 2)
    #expect(lifetime.alive == 0)
    #expect(!kept.0.isActive && !kept.1.remove())
    let last = add()
    #expect(last.isActive)
    node = nil
    #expect(lifetime.alive == 0)
    #expect(!last.isActive)
    #expect(!last.remove())
    #expect(!last.removeAndWait())
  }

  @Test(
    "D6: a handler that removes itself is freed when the raise is over, at the latest",
    arguments: cores)
  func removedInsideItself(core: EventCentral.Core) {
    let (lifetime, log) = (Lifetime(), Log<Int>())
    let node = EventNode(core: core)
    let handles = Log<EventNodeHandle>()
    handles.append(
      node.addHandler(.onRaise) { [token = lifetime.token()] (_: Note) in
        handles.entries[0].remove()
        // The closure is still alive, since it is running.
        log.append(lifetime.alive)
        withExtendedLifetime(token) {}
      })
    node.raise(event: Note())
    #expect(log.entries == [1])
    #expect(lifetime.alive == 0)
  }

  @Test("D9: an event is not kept after its raise", arguments: cores)
  func eventsEnd(core: EventCentral.Core) {
    let (lifetime, log) = (Lifetime(), Log<Int>())
    let root = EventNode(core: core)
    let nodes = (0..<100).map { _ in EventNode(parent: root) }
    for node in nodes {
      node.addHandler { (event: Carrying) in log.append(lifetime.alive) }
      node.addHandler(for: Carrying.self) { context in
        withExtendedLifetime(context.event) { .continue }
      }
    }
    root.raise(event: Carrying(token: lifetime.token()))
    #expect(log.entries == Array(repeating: 1, count: 100))
    #expect(lifetime.alive == 0)
  }

  @Test(
    "D9: a handler of an owner ends with the owner, and consumes nothing then", arguments: cores)
  func owners(core: EventCentral.Core) {
    let (lifetime, log) = (Lifetime(), Log<Int>())
    let root = EventNode(core: core)
    let node = EventNode(parent: root)
    var requester: Requester? = Requester(lifetime.token(), log)
    let handle = node.addHandler(
      [.onRaise, .consumeEvent], owner: requester!, Requester.onPing)
    root.addHandler(.onRaise) { (event: Ping) in log.append(-event.number) }
    #expect(node.raise(event: Ping(number: 1)).isConsumed)
    requester = nil
    #expect(lifetime.alive == 0)
    // The root's handler alone was called.
    #expect(node.raise(event: Ping(number: 2)) == EventOutcome(handlerCount: 1))
    #expect(!handle.isActive)
    #expect(log.entries == [1, -2])
  }

  @Test("D9: a handler whose owner is gone is not counted, nor after a stop", arguments: cores)
  func ownersGoneAreNotCounted(core: EventCentral.Core) {
    let (lifetime, log) = (Lifetime(), Log<Int>())
    for isAfterStop in [false, true] {
      let node = EventNode(core: core)
      func stop() {
        node.addHandler(.onRaise, for: Ping.self) { _ in .stopAfterThisNode }
      }
      if isAfterStop { stop() }
      let handle = node.addHandler(
        .onRaise, owner: Requester(lifetime.token(), log), Requester.onPing)
      if !isAfterStop { stop() }
      #expect(lifetime.alive == 0)
      let outcome = node.raise(event: Ping(number: 1))
      #expect(outcome == EventOutcome(handlerCount: 1, consumer: node.id))
      #expect(!handle.isActive)
    }
    #expect(log.entries.isEmpty)
  }

  @Test("D9: the last reference to a node may go in its own handler", arguments: cores)
  func endingOneself(core: EventCentral.Core) {
    let (lifetime, log) = (Lifetime(), Log<Int>())
    let root = EventNode(core: core)
    let box = Box<EventNode>(Tracked(root, lifetime, core))
    box.value!.addHandler { (_: Note) in
      log.append(1)
      box.value = nil
      log.append(lifetime.alive)
    }
    box.value!.addHandler { (_: Note) in log.append(2) }
    root.raise(event: Note())
    #expect(log.entries == [1, 0])
    #expect(root.children.isEmpty)
  }

  @Test("D7: what a closure holds may use the tree in its deinit", arguments: cores)
  func endingUsesTheTree(core: EventCentral.Core) {
    final class Raiser: Sendable {
      let node: EventNode
      init(_ node: EventNode) { self.node = node }
      deinit {
        node.removeHandlers(for: Other.self)
        node.raise(event: Other())
        EventNode(parent: node).detach()
      }
    }
    let log = Log<String>()
    let root = EventNode(core: core)
    root.addHandler { (_: Other) in log.append("removed") }
    let node = EventNode(parent: root)
    node.addHandler { [raiser = Raiser(root)] (_: Note) in withExtendedLifetime(raiser) {} }
    node.addHandler { [unowned node] (_: Note) in
      node.removeAllHandlers()
      log.append("done")
    }
    root.raise(event: Note())
    #expect(log.entries == ["done"])
  }

  @Test("D9: nodes may end inside the deinit of other nodes", arguments: cores)
  func nestedEnds(core: EventCentral.Core) {
    final class Holder: EventNode, @unchecked Sendable {
      // Written before anybody else knows the node.
      var held: [EventNode] = []
    }
    let lifetime = Lifetime()
    var node: EventNode = Tracked(nil, lifetime, core)
    for _ in 0..<50 {
      let holder = Holder(parent: Tracked(node, lifetime, core))
      holder.held = (0..<3).map { _ in Tracked(Tracked(nil, lifetime, core), lifetime, core) }
      node = holder
    }
    #expect(lifetime.alive == 1 + 50 * 7)
    node = EventNode(core: core)
    #expect(lifetime.alive == 0)
  }
}
