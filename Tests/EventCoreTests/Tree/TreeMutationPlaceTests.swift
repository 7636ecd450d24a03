// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

/// Every change at every place: a handler of each node, in each phase in which it is called,
/// changes the tree once.
///
///     root ─┬─ a ── a1 ── a1x        raised at a1
///           └─ b
@Suite("Trees that a handler changes at each place of the way")
struct TreeMutationPlaceTests {
  enum Change: CaseIterable, CustomTestStringConvertible {
    /// A new node below the handler's.
    case attach
    case detach
    /// Under the parent that it has, as the last.
    case move
    /// The handler removes itself.
    case remove
    /// Everybody lets go of the parent: the test, and its children.
    case freeParent

    var testDescription: String { "\(self)" }
  }

  /// What a change at a node makes of the event on its way and of the next one.
  struct Row {
    let (node, change): (String, Change)
    /// Whose handlers are not called any more by the event that is on its way.
    let silent: String
    /// Who is called by the next one.
    let next: [String]

    init(_ node: String, _ change: Change, silent: String = "", _ next: [String]) {
      (self.node, self.change, self.silent, self.next) = (node, change, silent, next)
    }
  }

  static let full =
    captured("root a a1") + raised("a1 a root") + propagated("root a a1 a1x b")

  /// Capturing down and raising up by one way, and propagating.
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

    // It is detached already.
    Row("root", .detach, full),
    Row("a", .detach, silent: "a a1 a1x", all("a a1", "a a1 a1x")),
    Row("a1", .detach, silent: "a1 a1x", all("a1", "a1 a1x")),
    Row("a1x", .detach, silent: "a1x", all("root a a1", "root a a1 b")),
    Row("b", .detach, silent: "b", all("root a a1", "root a a1 a1x")),

    // It has no parent.
    Row("root", .move, full),
    Row("a", .move, silent: "a a1 a1x", all("root a a1", "root b a a1 a1x")),
    Row("a1", .move, silent: "a1 a1x", full),
    Row("a1x", .move, silent: "a1x", full),
    Row("b", .move, silent: "b", full),

    // Less the call itself.
    Row("root", .remove, full),
    Row("a", .remove, full),
    Row("a1", .remove, full),
    Row("a1x", .remove, full),
    Row("b", .remove, full),

    // It has none.
    Row("root", .freeParent, full),
    Row("a", .freeParent, silent: "root a a1 a1x b", all("a a1", "a a1 a1x")),
    Row("a1", .freeParent, silent: "a a1 a1x", all("a1", "a1 a1x")),
    // Whoever raises holds the node at which it does: a1 ends after the event.
    Row("a1x", .freeParent, silent: "a1x", []),
    Row("b", .freeParent, silent: "root a a1 a1x b", all("a a1", "a a1 a1x")),
  ]

  /// The tree, as long as the test holds it.
  final class Nodes: @unchecked Sendable {
    // One thread.
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
        handles[call] = node.addHandler(CaptureMode(rawValue: phase.rawValue)) { [log] (_: Note) in
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
        // The raise itself holds the node at which it is.
        #expect((parent.object != nil) == (name == "a1x"))
      }
    }
  }

  @Test("D4 D6 D7 D9: this event and the next one, exactly", arguments: cores, Change.allCases)
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
