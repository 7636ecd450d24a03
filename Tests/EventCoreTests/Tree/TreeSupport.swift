// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

struct Note: Eventable { var text = "" }
struct Other: Eventable {}

/// A weak reference that can be stored in collections.
struct WeakObject<Object: AnyObject> {
  weak var object: Object?
  init(_ object: Object?) { self.object = object }
}

/// A tree to raise in, whose nodes log every call as "name phase":
///
///     root ─┬─ a ─┬─ a1 ── a1x
///           │     └─ a2
///           └─ b ─── b1
final class LoggedTree: Sendable {
  let log = Log<String>()
  let nodes: [String: EventNode]

  static let names = ["root", "a", "a1", "a1x", "a2", "b", "b1"]
  private static let parents = [
    "a": "root", "a1": "a", "a1x": "a1", "a2": "a", "b": "root", "b1": "b",
  ]

  /// - Parameter modes: The mode of each node's handler; by default `all`.
  init(
    _ core: EventCentral.Core, _ modes: [String: CaptureMode] = [:],
    all: CaptureMode? = [.onRaise, .onPropagate]
  ) {
    var nodes: [String: EventNode] = [:]
    for name in Self.names {
      let node = EventNode(
        parent: Self.parents[name].map { nodes[$0]! }, name: name, core: core)
      nodes[name] = node
    }
    self.nodes = nodes
    for name in Self.names {
      if let mode = modes[name] ?? all { listen(name, mode) }
    }
  }

  subscript(name: String) -> EventNode { nodes[name]! }

  /// Adds a handler for each phase of a mode, which logs its call.
  @discardableResult
  func listen(
    _ name: String, _ mode: CaptureMode, _ suffix: String = "",
    _ body: @escaping @Sendable () -> Void = {}
  ) -> [EventNodeHandle] {
    let consume = mode.intersection(.consumeEvent)
    let phases: [(CaptureMode, String)] = [
      (.onCapture, "capture"), (.onRaise, "raise"), (.onPropagate, "propagate"),
    ]
    let log = log
    return phases.filter { mode.contains($0.0) }.map { phase, word in
      nodes[name]!.addHandler(phase.union(consume)) { (_: Note) in
        log.append("\(name) \(word)\(suffix)")
        body()
      }
    }
  }

  /// Raises at a node and returns what was logged.
  @discardableResult
  func raise(_ name: String, scope: EventRaiseScope = .tree) -> [String] {
    nodes[name]!.raise(event: Note(), scope: scope)
    return log.take()
  }
}

/// "root raise", "a raise" ... from "root a".
func raised(_ names: String) -> [String] { names.split(separator: " ").map { "\($0) raise" } }
func propagated(_ names: String) -> [String] {
  names.split(separator: " ").map { "\($0) propagate" }
}
func captured(_ names: String) -> [String] { names.split(separator: " ").map { "\($0) capture" } }

/// Removes a handler and waits for it, while a call that `raise` has led to holds it. Returns the order in
/// which the call and the removal ended.
func orderOfRemoval(
  _ add: (_ handler: @escaping @Sendable (Note) -> Void) -> EventNodeHandle, raise: () -> Void
) -> [String] {
  let (entered, leave, removed, log) = (Gate(), Gate(), Gate(), Log<String>())
  let handle = add { _ in
    entered.open()
    leave.pass()
    log.append("returned")
  }
  raise()
  entered.pass()
  runThread {
    #expect(handle.removeAndWait())
    log.append("removed")
    removed.open()
  }
  // The handler is removed already, although the removal still waits.
  #expect(waitUntil { !handle.isActive })
  leave.open()
  removed.pass()
  return log.entries
}
