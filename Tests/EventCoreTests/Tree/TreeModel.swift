// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport

// What a raise promises, in the simplest way to say it: the handlers are listed when it begins, and each is
// looked at once more before its call. `TreeModelTests` compares it with the cores.

/// What a handler does in one of its calls.
enum TreeAction {
  case nothing
  case attach(Int, to: Int)
  case detach(Int)
  /// The test lets go of a node.
  case letGo(Int)
  case add(Int, CaptureMode, id: Int)
  case remove(id: Int)
  case raise(Int, EventRaiseScope)
}

final class ModelTree {
  final class Node {
    // `nodes` holds them all.
    weak var parent: Node?
    var children: [Node] = []
    var stamp = 0
    var handlers: [Handler] = []
    var isHeld = true
    var raises = 0
    var hasEnded = false
  }
  final class Handler {
    let (id, mode, stamp): (Int, CaptureMode, Int)
    unowned let node: Node
    var isRemoved = false
    init(_ id: Int, _ mode: CaptureMode, _ node: Node, _ stamp: Int) {
      (self.id, self.mode, self.node, self.stamp) = (id, mode, node, stamp)
    }
  }
  let script: TreeScript
  var nodes: [Node] = []
  var handlers: [Int: Handler] = [:]
  var clock = 0
  var calls = 0
  var log: [Int] = []

  init(_ script: TreeScript) { self.script = script }

  func raise(_ index: Int, _ scope: EventRaiseScope) -> Int {
    let (source, start) = (nodes[index], clock)
    let route = Array(sequence(first: source, next: \.parent))
    let root = route.last!
    var plan: [(Handler, CaptureMode)] = []
    func list(_ nodes: [Node], _ phase: CaptureMode, _ part: EventRaiseScope) {
      guard scope.contains(part) else { return }
      plan += nodes.flatMap(\.handlers).filter { $0.mode.contains(phase) }.map { ($0, phase) }
    }
    list(route.reversed(), .onCapture, .capturing)
    list(route, .onRaise, .bubbling)
    list(preorder(root), .onPropagate, .propagating)
    source.raises += 1
    var count = 0
    var last: (node: Node, phase: CaptureMode)?
    for (handler, phase) in plan {
      if let last, last.node !== handler.node || last.phase != phase { break }
      guard !handler.isRemoved, reaches(handler.node, root, start) else { continue }
      count += 1
      calls += 1
      log.append(handler.id * 16 + Int(phase.rawValue))
      perform(script.actions[calls % script.actions.count])
      switch script.decision(handler.id, handler.mode) {
      case .continue: continue
      case .stopAfterThisNode: last = (handler.node, phase)
      case .consume: return finish(source, count)
      }
    }
    return finish(source, count)
  }

  private func finish(_ source: Node, _ count: Int) -> Int {
    source.raises -= 1
    endIfUnheld(source)
    return count
  }

  private func preorder(_ node: Node) -> [Node] { [node] + node.children.flatMap(preorder) }

  private func reaches(_ node: Node, _ root: Node, _ start: Int) -> Bool {
    guard node !== root else { return !root.hasEnded }
    guard let parent = node.parent, node.stamp <= start else { return false }
    return reaches(parent, root, start)
  }

  func perform(_ action: TreeAction) {
    switch action {
    case .nothing: break
    case .attach(let child, let parent):
      guard let (child, parent) = held(child, parent) else { return }
      guard !sequence(first: parent, next: \.parent).contains(where: { $0 === child }) else { return }
      let former = unlink(child)
      clock += 1
      (child.parent, child.stamp) = (parent, clock)
      parent.children.append(child)
      former.map(endIfUnheld)
    case .detach(let index):
      guard let (node, _) = held(index, index) else { return }
      unlink(node).map(endIfUnheld)
    case .letGo(let index):
      nodes[index].isHeld = false
      endIfUnheld(nodes[index])
    case .add(let index, let mode, let id):
      guard let (node, _) = held(index, index), handlers[id] == nil else { return }
      clock += 1
      let handler = Handler(id, mode, node, clock)
      handlers[id] = handler
      node.handlers.append(handler)
    case .remove(let id): handlers[id].map(remove)
    case .raise(let index, let scope):
      guard calls < script.callLimit, let _ = held(index, index) else { return }
      _ = raise(index, scope)
    }
  }

  private func held(_ one: Int, _ other: Int) -> (Node, Node)? {
    nodes[one].isHeld && nodes[other].isHeld ? (nodes[one], nodes[other]) : nil
  }

  private func remove(_ handler: Handler) {
    handler.isRemoved = true
    handler.node.handlers.removeAll { $0 === handler }
  }

  private func unlink(_ node: Node) -> Node? {
    defer { node.parent = nil }
    node.parent?.children.removeAll { $0 === node }
    return node.parent
  }

  private func endIfUnheld(_ node: Node) {
    guard !node.isHeld, node.raises == 0, node.children.isEmpty, !node.hasEnded else { return }
    node.hasEnded = true
    node.handlers.forEach(remove)
    unlink(node).map(endIfUnheld)
  }
}

/// What the test's handlers do, the same for the model and for the cores.
struct TreeScript: Sendable {
  /// The n-th call of all does the n-th of these, and so on from the beginning.
  let actions: [TreeAction]
  /// Which handlers decide: by their number.
  let decisions: [EventDecision]
  let callLimit: Int

  func decision(_ id: Int, _ mode: CaptureMode) -> EventDecision {
    mode.contains(.consumeEvent) ? .consume : decisions[id % decisions.count]
  }
}

extension TreeAction: Sendable {}
