// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("Trees: consuming, deciding, and a handler's context")
struct TreeConsumingTests {
  @Test("an event that is consumed at any place of its way is handled nowhere after it", arguments: cores)
  func everyPlace(core: EventCentral.Core) {
    let full = LoggedTree(core, all: [.onCapture, .onRaise, .onPropagate]).raise("a1x")
    #expect(full.count == 4 + 4 + 7)
    for place in full.indices {
      let words = full[place].split(separator: " ").map(String.init)
      let tree = LoggedTree(core, all: nil)
      for name in LoggedTree.names {
        for (phase, word) in [
          (CaptureMode.onCapture, "capture"), (.onRaise, "raise"), (.onPropagate, "propagate"),
        ] {
          tree.listen(name, [name, word] == words ? phase.union(.consumeEvent) : phase)
        }
      }
      let outcome = tree["a1x"].raise(event: Note())
      #expect(tree.log.take() == Array(full[...place]))
      #expect(outcome == EventOutcome(handlerCount: place + 1, consumer: tree[words[0]].id))
      #expect(outcome.isConsumed)
    }
  }

  @Test("consuming stops the other handlers of the node, too", arguments: cores)
  func otherHandlersOfTheNode(core: EventCentral.Core) {
    let tree = LoggedTree(core, all: nil)
    tree.listen("a", .onRaise, " 1")
    tree.listen("a", [.onRaise, .consumeEvent], " 2")
    tree.listen("a", .onRaise, " 3")
    #expect(tree.raise("a") == ["a raise 1", "a raise 2"])
  }

  @Test("a handler may decide to go on, to stop after its node, or to consume", arguments: cores)
  func choices(core: EventCentral.Core) {
    for decision in [EventDecision.continue, .stopAfterThisNode, .consume] {
      let tree = LoggedTree(core, all: nil)
      let log = tree.log
      tree.listen("a", [.onRaise, .onPropagate], " 1")
      tree["a"].addHandler(.onRaise, for: Note.self) { _ in
        log.append("choice")
        return decision
      }
      tree.listen("a", [.onRaise, .onPropagate], " 2")
      tree.listen("root", [.onRaise, .onPropagate])
      let outcome = tree["a"].raise(event: Note())
      let begin = ["a raise 1", "choice"]
      switch decision {
      case .continue:
        #expect(
          log.entries
            == begin + [
              "a raise 2", "root raise", "root propagate", "a propagate 1", "a propagate 2",
            ])
        #expect(!outcome.isConsumed)
      case .stopAfterThisNode:
        #expect(log.entries == begin + ["a raise 2"])
        #expect(outcome == EventOutcome(handlerCount: 3, consumer: tree["a"].id))
      case .consume:
        #expect(log.entries == begin)
        #expect(outcome == EventOutcome(handlerCount: 2, consumer: tree["a"].id))
      }
    }
  }

  /// A walk collects some 64 handlers at a time, so that those of one node may lie in two chunks.
  @Test(
    "stopping after a node calls all its other handlers, wherever a chunk of the walk ends",
    arguments: cores, [0, 1, 62, 63, 64, 65, 130])
  func stopAfterLongNode(core: EventCentral.Core, before: Int) {
    for (stops, consumes, changes) in [
      ([0], nil, false), ([0, 99], nil, false), ([99], nil, false), ([0, 64], nil, true),
      ([0], 70, false), ([0], 70, true),
    ] as [([Int], Int?, Bool)] {
      let root = EventNode(core: core)
      let node = EventNode(parent: root)
      let child = EventNode(parent: node)
      let elsewhere = (EventNode(core: core), EventNode(core: core))
      let log = Log<String>()
      // A change of a tree makes the walk collect the rest anew, in several chunks.
      @Sendable func change() {
        guard changes else { return }
        elsewhere.1.attach(to: elsewhere.0)
        elsewhere.1.detach()
      }
      for number in 0..<before {
        root.addHandler { (_: Note) in
          log.append("root \(number)")
          change()
        }
      }
      for number in 0..<100 {
        node.addHandler(.onPropagate, for: Note.self) { _ in
          log.append("\(number)")
          change()
          if number == consumes { return .consume }
          return stops.contains(number) ? .stopAfterThisNode : .continue
        }
      }
      child.addHandler { (_: Note) in log.append("child") }
      // Twice, since the second raise uses what the first one has found.
      for _ in 1...2 {
        let outcome = root.raise(event: Note())
        let called = (consumes ?? 99) + 1
        #expect(
          log.take() == (0..<before).map { "root \($0)" } + (0..<called).map { "\($0)" })
        #expect(outcome == EventOutcome(handlerCount: before + called, consumer: node.id))
      }
    }
  }

  @Test("stopping after the root's raise handlers stops its propagation, too", arguments: cores)
  func stopAtTheRoot(core: EventCentral.Core) {
    let tree = LoggedTree(core, all: nil)
    tree["root"].addHandler(.onRaise, for: Note.self) { _ in .stopAfterThisNode }
    tree.listen("root", [.onRaise, .onPropagate])
    #expect(tree.raise("root") == ["root raise"])
  }

  @Test("with .consumeEvent the handler's decision makes no difference", arguments: cores)
  func consumingChoice(core: EventCentral.Core) {
    let tree = LoggedTree(core, all: .onPropagate)
    tree["a"].addHandler([.onPropagate, .consumeEvent], for: Note.self) { _ in .continue }
    #expect(tree.raise("b") == propagated("root a"))
  }

  @Test("a handler's context tells where the event is", arguments: cores)
  func context(core: EventCentral.Core) {
    let tree = LoggedTree(core, all: nil)
    let log = tree.log
    for name in LoggedTree.names {
      tree[name].addHandler([.onCapture, .onRaise, .onPropagate], for: Note.self) { context in
        log.append(
          """
          \(context.phase) \(context.event.text) at \(context.node!.name!) from \
          \(context.previous?.name ?? "-"), raised at \(context.source.name!), \
          \(context.depth) \(context.path)
          """)
        return .continue
      }
    }
    tree["a1"].raise(event: Note(text: "x"))
    func line(_ phase: String, _ name: String, from: String, _ path: String) -> String {
      let depth = path.filter { $0 == "/" }.count
      return "\(phase) x at \(name) from \(from), raised at a1, \(depth) \(path)"
    }
    #expect(
      log.entries == [
        line("capture", "root", from: "-", "root"),
        line("capture", "a", from: "root", "root/a"),
        line("capture", "a1", from: "a", "root/a/a1"),
        line("raise", "a1", from: "-", "root/a/a1"),
        line("raise", "a", from: "a1", "root/a"),
        line("raise", "root", from: "a", "root"),
        line("propagate", "root", from: "-", "root"),
        line("propagate", "a", from: "root", "root/a"),
        line("propagate", "a1", from: "a", "root/a/a1"),
        line("propagate", "a1x", from: "a1", "root/a/a1/a1x"),
        line("propagate", "a2", from: "a", "root/a/a2"),
        line("propagate", "b", from: "root", "root/b"),
        line("propagate", "b1", from: "b", "root/b/b1"),
      ])
  }

  @Test("an event that nobody handles is not consumed", arguments: cores)
  func nobody(core: EventCentral.Core) {
    let tree = LoggedTree(core, all: nil)
    #expect(tree["a"].raise(event: Note()) == EventOutcome(handlerCount: 0, consumer: nil))
    #expect(tree["a"].propagate(event: Note()) == EventOutcome())
  }
}
