// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("Trees: bridges to a central and back")
struct TreeBridgeTests {
  /// root ─┬─ a ── a1
  ///       └─ b           whose handlers log "name phase" for each ping
  struct Tree: Sendable {
    let log = Log<String>()
    let root, a, a1, b: EventNode

    init(_ core: EventCentral.Core) {
      root = EventNode(name: "root", core: core)
      (a, b) = (EventNode(parent: root, name: "a"), EventNode(parent: root, name: "b"))
      a1 = EventNode(parent: a, name: "a1")
      for node in [root, a, a1, b] {
        let name = node.name!
        node.addHandler([.onCapture, .onRaise, .onPropagate], for: Ping.self) { [log] context in
          log.append("\(name) \(context.phase)")
          return .continue
        }
      }
    }
  }

  @Test(
    "an event of a central goes as far as the scope says, by default everywhere", arguments: cores)
  func scopes(core: EventCentral.Core) {
    let parts = [
      (EventRaiseScope.capturing, captured("root a")), (.bubbling, raised("a root")),
      (.propagating, propagated("root a a1 b")),
    ]
    for bits in 1..<8 {
      let chosen = parts.indices.filter { bits & 1 << $0 != 0 }.map { parts[$0] }
      let scope = EventRaiseScope(chosen.map(\.0))
      let (central, tree) = (EventCentral(core: core), Tree(core))
      let handle = tree.a.raiseEvents(
        of: Ping.self, from: central, executeOn: .listenerThread, scope: scope)
      Ping().queue(on: central)
      let expected = chosen.flatMap(\.1)
      #expect(tree.log.entries(atLeast: expected.count) == expected)
      // No further handler is called after them.
      #expect(handle.removeAndWait())
      #expect(tree.log.take() == expected)
      if scope == .tree {
        tree.a.raiseEvents(of: Ping.self, from: central, executeOn: .listenerThread)
        Ping().queue(on: central)
        #expect(tree.log.entries(atLeast: expected.count) == expected)
      }
    }
  }

  actor Home {
    func listen(_ node: EventNode, _ central: EventCentral, _ log: Log<Int>) -> String {
      node.addHandler(.onRaise) { (event: Ping) in
        self.preconditionIsolated()
        log.append(event.number)
      }
      return "\(node.raiseEvents(of: Ping.self, from: central).executesOn)"
    }
  }

  @Test(
    "by default events are raised where the bridge was made: an actor, the MainActor, a thread",
    arguments: cores)
  func requesterThread(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let nodes = (0..<5).map { _ in EventNode(core: core) }
    let (onMain, onActor, onThread, elsewhere) = (Log<Int>(), Log<Int>(), Log<UInt>(), Log<Int>())

    nodes[0].addHandler(.onRaise) { (event: Ping) in
      MainActor.preconditionIsolated()
      onMain.append(event.number)
    }
    let main = await MainActor.run { nodes[0].raiseEvents(of: Ping.self, from: central).executesOn }
    #expect("\(main)" == "mainQueue")

    let home = Home()
    #expect(await home.listen(nodes[1], central, onActor) == "actor")

    // In a handler of an event thread.
    let thread = EventThread(on: central)
    let (own, places) = (Log<UInt>(), Log<String>())
    nodes[2].addHandler(.onRaise) { (_: Ping) in onThread.append(currentThread()) }
    thread.addEventCallback { (_: Pong) in
      own.append(currentThread())
      places.append(
        "\(nodes[2].raiseEvents(of: Ping.self, from: central, isolation: nil).executesOn)")
    }
    thread.queueEvent(Pong())
    await offThePool {
      #expect(places.entries(atLeast: 1) == ["eventThread"])
      // On a thread that is none of these, the bridge runs on the listener thread.
      nodes[3].addHandler(.onRaise) { (event: Ping) in elsewhere.append(event.number) }
      let handle = nodes[3].raiseEvents(of: Ping.self, from: central, isolation: nil)
      #expect("\(handle.executesOn)" == "listenerThread")
      for number in 0..<20 { #expect(Ping(number: number).queue(on: central) == 4) }
      #expect(onMain.entries(atLeast: 20) == Array(0..<20))
      #expect(onActor.entries(atLeast: 20) == Array(0..<20))
      #expect(elsewhere.entries(atLeast: 20) == Array(0..<20))
      #expect(onThread.entries(atLeast: 20) == Array(repeating: own.entries[0], count: 20))
    }
    withExtendedLifetime(home) {}
  }

  @Test(
    "with .consumeEvent a dispatched event goes no further in the tree, received or not",
    arguments: cores)
  func consuming(core: EventCentral.Core) {
    for isReceived in [true, false] {
      for (phase, expected) in [
        (CaptureMode.onCapture, captured("root a")),
        (.onRaise, captured("root a a1") + raised("a1 a")),
        (.onPropagate, captured("root a a1") + raised("a1 a root") + propagated("root a")),
      ] {
        let (central, tree, received) = (EventCentral(core: core), Tree(core), Log<Int>())
        let thread = EventThread(on: central)
        if isReceived { thread.addEventCallback { (event: Ping) in received.append(event.number) } }
        let handle = tree.a.dispatchEvents(of: Ping.self, to: central, phase.union(.consumeEvent))
        let never = tree.a.addHandler(phase) { (_: Ping) in
          Issue.record("called after the event was consumed")
        }
        let outcome = tree.a1.raise(event: Ping(number: 7))
        #expect(tree.log.take() == expected)
        #expect(outcome == EventOutcome(handlerCount: expected.count + 1, consumer: tree.a.id))
        if isReceived { #expect(received.entries(atLeast: 1) == [7]) }
        // Without .consumeEvent the event goes on.
        #expect(handle.remove())
        #expect(never.remove())
        tree.a.dispatchEvents(of: Ping.self, to: central, phase)
        #expect(tree.a1.raise(event: Ping(number: 8)) == EventOutcome(handlerCount: 11))
        if isReceived { #expect(received.entries(atLeast: 2) == [7, 8]) }
      }
    }
  }
}
