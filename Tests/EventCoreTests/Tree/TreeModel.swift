// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

// A model of what a raise promises, as plain as possible. `TreeModelTests` compares the cores with it.

/// A node holds its handlers and its link, and the link holds the parent. All other references are weak,
/// and so nil once their object has left the tree or has ended.
final class ModelNode {
  let number: Int
  var handlers: [ModelHandler] = []
  private var link: ModelLink?
  private var links: [WeakObject<ModelLink>] = []
  init(_ number: Int) { self.number = number }

  var children: [ModelNode] { links.compactMap { $0.object?.child } }
  var route: [ModelNode] { [self] + (link?.parent.route ?? []) }
  var subtree: [ModelNode] { [self] + children.flatMap(\.subtree) }

  func attach(to parent: ModelNode?) {
    link = parent.map { ModelLink(child: self, parent: $0) }
    if let link { parent?.links.append(WeakObject(link)) }
  }

  /// Calls the handlers that an event which is raised now reaches. Returns how many they were, and the
  /// number of the node that consumed the event.
  func raise(
    _ scope: EventRaiseScope, below: Bool, _ call: (ModelCall) -> EventDecision
  ) -> (count: Int, consumer: Int?) {
    var count = 0
    var last: ModelCall?
    for next in plan(scope, below ? self : route.last!) {
      if let last, last.phase != next.phase || last.node != next.node { break }
      guard next.needed.allSatisfy({ $0.object != nil }) else { continue }
      count += 1
      switch call(next) {
      case .continue: continue
      case .stopAfterThisNode: last = next
      case .consume: return (count, next.node)
      }
    }
    return (count, last?.node)
  }

  private func plan(_ scope: EventRaiseScope, _ top: ModelNode) -> [ModelCall] {
    let ways: [(EventRaiseScope, CaptureMode, [ModelNode])] = [
      (.capturing, .onCapture, route.reversed()), (.bubbling, .onRaise, route),
      (.propagating, .onPropagate, top.subtree),
    ]
    return ways.filter { scope.contains($0.0) }.flatMap { _, phase, nodes in
      nodes.flatMap { node in
        let above = node.route.prefix { $0 !== top }.map { WeakObject<AnyObject>($0.link) }
        return node.handlers.filter { $0.mode.contains(phase) }.map { handler in
          ModelCall(
            id: handler.id, mode: handler.mode, phase: phase, node: node.number,
            needed: above + [WeakObject<AnyObject>(handler)])
        }
      }
    }
  }
}

/// A handler that is to be called, by numbers, and the objects that have to be alive for its call: the
/// handler, and every link of its node up to where the event began to go down.
struct ModelCall {
  let id: Int
  let (mode, phase): (CaptureMode, CaptureMode)
  let node: Int
  let needed: [WeakObject<AnyObject>]
}

final class ModelHandler {
  let (id, mode): (Int, CaptureMode)
  init(_ id: Int, _ mode: CaptureMode) { (self.id, self.mode) = (id, mode) }
}

final class ModelLink {
  // Unowned, since the child holds the link.
  unowned let child: ModelNode
  let parent: ModelNode
  init(child: ModelNode, parent: ModelNode) { (self.child, self.parent) = (child, parent) }
}
