// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

/// Every change at every place: a handler of each node, in each phase in which it is called, changes the
/// tree once.
///
///     root ─┬─ a ── a1 ── a1x        raised at a1
///           └─ b
@Suite("Trees that a handler changes at each place of the way")
struct TreeMutationPlaceTests {
  enum Change: CaseIterable, CustomTestStringConvertible {
    /// A new node is attached below the handler's node.
    case attach
    case detach
    /// The node becomes the last child of the parent that it has.
    case move
    /// The handler removes itself.
    case remove
    /// The test and all children release the parent.
    case freeParent

    var testDescription: String { "\(self)" }
  }

  /// The effect of a change at a node on the event on its way and on the next one.
  struct Row {
    let (node, change): (String, Change)
    /// The nodes whose handlers the event on its way does not call any more.
    let silent: String
    /// The calls of the next event.
    let next: [String]

    init(_ node: String, _ change: Change, silent: String = "", _ next: [String]) {
      (self.node, self.change, self.silent, self.next) = (node, change, silent, next)
    }
  }

  static let full =
    captured("root a a1") + raised("a1 a root") + propagated("root a a1 a1x b")

  /// The calls of an event that is captured and raised along a way and propagated through a tree.
  static func all(_ way: String, _ tree: String) -> [String] {
    let up = way.split(separator: " ").reversed().joined(separator: " ")
    return captured(way) + raised(up) + propagated(tree)
  }

  static let rows = [
    Row("root", .attach, full + ["new propagate"]),
    Row("a", .attach, all("root a a1", "root a a1 a1x new b")),
    Row("a1", .attach, all("root a a1", "root a a1 a1x new b")),
    Row("a1x", .attach, all("root a a1", "root a a1 a1x new b")),
    Row("b", .attach, full + ["new propagate"]),

    // The root has no parent from which it could be detached.
    Row("root", .detach, full),
    Row("a", .detach, silent: "a a1 a1x", all("a a1", "a a1 a1x")),
    Row("a1", .detach, silent: "a1 a1x", all("a1", "a1 a1x")),
    Row("a1x", .detach, silent: "a1x", all("root a a1", "root a a1 b")),
    Row("b", .detach, silent: "b", all("root a a1", "root a a1 a1x")),

    // The root has no parent below which it could move.
    Row("root", .move, full),
    Row("a", .move, silent: "a a1 a1x", all("root a a1", "root b a a1 a1x")),
    Row("a1", .move, silent: "a1 a1x", full),
    Row("a1x", .move, silent: "a1x", full),
    Row("b", .move, silent: "b", full),

    // Without the call of the removed handler, which the test leaves out.
    Row("root", .remove, full),
    Row("a", .remove, full),
    Row("a1", .remove, full),
    Row("a1x", .remove, full),
    Row("b", .remove, full),

    // The root has no parent to free.
    Row("root", .freeParent, full),
    Row("a", .freeParent, silent: "root a a1 a1x b", all("a a1", "a a1 a1x")),
    Row("a1", .freeParent, silent: "a a1 a1x", all("a1", "a1 a1x")),
    // A raise holds the node at which it was called, so that a1 ends after the event.
    Row("a1x", .freeParent, silent: "a1x", []),
    Row("b", .freeParent, silent: "root a a1 a1x b", all("a a1", "a a1 a1x")),
  ]

  /// The nodes that the test holds.
  final class Nodes: @unchecked Sendable {
    // One thread uses it.
    var held: [String: EventNode] = [:]
    let log = Log<String>()
    var handles: [String: EventNodeHandle] = [:]

    init(_ core: EventCentral.Core) {
      for (name, parent) in [
        ("root", ""), ("a", "root"), ("a1", "a"), ("a1x", "a1"), ("b", "root"),
      ] {
        held[name] = EventNode(parent: held[parent], name: name, core: core)
      }
    }

    func listen(_ node: EventNode, _ body: @escaping @Sendable (_ call: String) -> Void = { _ in })
    {
      for phase in EventPhase.allCases {
        let call = "\(node.name!) \(phase)"
        handles[call] = node.addHandler(CaptureMode(rawValue: Int(phase.rawValue))) { [log] (_: Note) in
          log.append(call)
          body(call)
        }
      }
    }

    func raise() -> [String] {
      guard let source = held["a1"] else { return [] }
      withExtendedLifetime(source) { _ = source.raise(event: Note()) }
      return log.take()
    }

    func make(_ change: Change, at name: String, in call: String) {
      switch change {
      case .attach:
        held["new"] = EventNode(parent: held[name], name: "new")
        listen(held["new"]!)
      case .detach: held[name]!.detach()
      case .move: if let parent = held[name]!.parent { held[name]!.attach(to: parent) }
      case .remove: #expect(handles[call]!.remove())
      case .freeParent:
        guard let parent = held[name]!.parent.map(WeakObject.init) else { return }
        held[parent.object!.name!] = nil
        for child in parent.object?.children ?? [] { child.detach() }
        // A raise holds the node at which it was called.
        #expect((parent.object != nil) == (name == "a1x"))
      }
    }
  }

  @Test(
    "D4 D6 D7 D9: a change has its exact effect on this event and on the next one", arguments: cores,
    Change.allCases)
  func everyPlace(core: EventCentral.Core, change: Change) {
    var places = 0
    for row in Self.rows where row.change == change {
      for (index, call) in Self.full.enumerated() where call.hasPrefix("\(row.node) ") {
        places += 1
        let (nodes, changes) = (Nodes(core), Log<Void>())
        for name in ["root", "a", "a1", "a1x", "b"] {
          nodes.listen(nodes.held[name]!) { [unowned nodes] found in
            guard found == call, changes.entries.isEmpty else { return }
            changes.append(())
            nodes.make(change, at: row.node, in: call)
          }
        }
        let silent = row.silent.split(separator: " ")
        let after = Self.full[(index + 1)...].filter { other in
          !silent.contains { other.hasPrefix("\($0) ") }
        }
        #expect(nodes.raise() == Self.full[...index] + after, "\(change) in \(call)")
        let next = change == .remove ? row.next.filter { $0 != call } : row.next
        #expect(nodes.raise() == next, "after \(change) in \(call)")
      }
    }
    #expect(places == Self.full.count)
  }
}
