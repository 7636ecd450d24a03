// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("Trees: handlers that are removed by type and mode")
struct TreeRemovalTests {
  /// Every mode with a phase.
  static let modes = (0..<16).map { CaptureMode(rawValue: $0) }.filter {
    !$0.isDisjoint(with: [.onCapture, .onRaise, .onPropagate])
  }

  final class Owner: Sendable {
    func onNote(_ event: Note) {}
  }

  /// Adds a handler of each form for a mode.
  func addAll(
    _ mode: CaptureMode, to node: EventNode, _ owner: Owner, _ central: EventCentral
  ) -> [EventNodeHandle] {
    [
      node.addHandler(mode) { (_: Note) in },
      node.addHandler(mode, for: Note.self) { _ in .continue },
      node.addHandler(mode, owner: owner, Owner.onNote),
      node.addHandler(mode, executeOn: .listenerThread, of: central) { (_: Note) in },
    ]
  }

  @Test(
    "D6: removeHandlers(for:with:) removes each handler that has a phase of the mode",
    arguments: cores)
  func sharedPhase(core: EventCentral.Core) {
    #expect(Self.modes.count == 14)
    let (owner, central) = (Owner(), EventCentral(core: core))
    for removed in Self.modes {
      let (parent, node) = (EventNode(core: core), EventNode(core: core))
      node.attach(to: parent)
      let handles = Self.modes.map { ($0, addAll($0, to: node, owner, central)) }
      let others = [
        node.addHandler(removed) { (_: Other) in },
        parent.addHandler(removed) { (_: Note) in },
      ]
      let phases = removed.subtracting(.consumeEvent)
      let left = Self.modes.filter { $0.isDisjoint(with: phases) }
      #expect(node.removeHandlers(for: Note.self, with: removed) == 4 * (14 - left.count))
      for (mode, handles) in handles {
        #expect(
          handles.map(\.isActive) == handles.map { _ in left.contains(mode) },
          "\(removed), \(mode)")
      }
      #expect(others.map(\.isActive) == [true, true])
      #expect(node.removeHandlers(for: Note.self, with: removed) == 0)
      #expect(node.removeHandlers(for: Note.self) == 4 * left.count)
      #expect(node.removeAllHandlers() == 1)
    }
  }

  @Test("D9: the handler of an owner that has ended is not active", arguments: cores)
  func endedOwner(core: EventCentral.Core) {
    final class Model { func onNote(_ event: Note) {} }
    let node = EventNode(core: core)
    var (owner, model): (Owner?, Model?) = (Owner(), Model())
    let handles = [
      node.addHandler(owner: owner!, Owner.onNote), node.addHandler(owner: model!, Model.onNote),
      node.addHandler { (_: Note) in },
    ]
    #expect(handles.map(\.isActive) == [true, true, true])
    (owner, model) = (nil, nil)
    #expect(handles.map(\.isActive) == [false, false, true])
    node.propagate(event: Note())
    #expect(handles.map(\.isActive) == [false, false, true])
  }

  @Test("D6: the handlers that are left are called as before, in their order", arguments: cores)
  func callsAfterwards(core: EventCentral.Core) {
    for removed in Self.modes where !removed.contains(.consumeEvent) {
      let (node, log) = (EventNode(core: core), Log<String>())
      let modes = Self.modes.filter { !$0.contains(.consumeEvent) }
      for (number, mode) in modes.enumerated() {
        if number % 2 == 0 {
          node.addHandler(mode) { (_: Note) in log.append("\(mode)") }
        } else {
          node.addHandler(mode, for: Note.self) { _ in
            log.append("\(mode)")
            return .continue
          }
        }
      }
      let left = modes.filter { $0.isDisjoint(with: removed) }
      #expect(node.removeHandlers(for: Note.self, with: removed) == modes.count - left.count)
      node.raise(event: Note())
      #expect(
        log.entries
          == [CaptureMode.onCapture, .onRaise, .onPropagate].flatMap { phase in
            left.filter { $0.contains(phase) }.map { "\($0)" }
          })
    }
  }
}
