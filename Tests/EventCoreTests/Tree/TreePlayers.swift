// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport

/// What happened in a tree.
enum TreeRecord: Equatable {
  case call(id: Int, phase: UInt8)
  /// A raise has returned; the consumer is told by its number.
  case outcome(count: Int, consumer: Int?)
  /// A node that the test holds: the numbers from the root to it, and those of its children.
  case node(path: [Int], children: [Int])
}

/// Does what a scenario says, and records what happens. The subclasses have the nodes.
class TreePlayer: @unchecked Sendable {
  // One thread uses it.
  let scenario: TreeScenario
  private(set) var records: [TreeRecord] = []
  private var callCount = 0
  private var isOver: Bool { callCount >= scenario.callLimit }

  init(_ scenario: TreeScenario) { self.scenario = scenario }

  final func record(_ record: TreeRecord) { records.append(record) }

  /// What each handler does.
  final func called(_ id: Int, _ mode: CaptureMode, in phase: UInt8) -> EventDecision {
    callCount += 1
    record(.call(id: id, phase: phase))
    let action = scenario.actions[callCount % scenario.actions.count]
    switch action {
    case .raise, .propagate: if !isOver { perform(action) }
    default: perform(action)
    }
    return scenario.decision(id, mode)
  }

  /// Returns the records of one step of the scenario.
  final func takeRecords() -> [TreeRecord] {
    recordNodes()
    callCount = 0
    defer { records = [] }
    return records
  }

  /// Does nothing for a node that the test has released, for a handler to add that was added before, and
  /// for a handler to remove that was not.
  func perform(_ action: TreeAction) {}
  func recordNodes() {}
}

final class ModelPlayer: TreePlayer, @unchecked Sendable {
  private var nodes: [ModelNode?]
  /// The nodes to which the handlers were added.
  private var handlers: [Int: WeakObject<ModelNode>] = [:]

  override init(_ scenario: TreeScenario) {
    nodes = (0..<scenario.size).map(ModelNode.init)
    super.init(scenario)
  }

  override func perform(_ action: TreeAction) {
    switch action {
    case .nothing: break
    case .attach(let child, let parent):
      guard let child = nodes[child], let parent = nodes[parent] else { return }
      if !parent.route.contains(where: { $0 === child }) { child.attach(to: parent) }
    case .detach(let index): nodes[index]?.attach(to: nil)
    case .letGo(let index): nodes[index] = nil
    case .add(let index, let mode, let id):
      guard let node = nodes[index], handlers[id] == nil else { return }
      handlers[id] = WeakObject(node)
      node.handlers.append(ModelHandler(id, mode))
    case .remove(let id): handlers[id]?.object?.handlers.removeAll { $0.id == id }
    case .raise(let index, let scope): raise(index, scope)
    case .propagate(let index): raise(index, .propagating, below: true)
    }
  }

  private func raise(_ index: Int, _ scope: EventRaiseScope, below: Bool = false) {
    guard let node = nodes[index] else { return }
    // A raise holds the node at which it is called.
    let outcome = withExtendedLifetime(node) {
      node.raise(scope, below: below) { called($0.id, $0.mode, in: UInt8($0.phase.rawValue)) }
    }
    record(.outcome(count: outcome.count, consumer: outcome.consumer))
  }

  override func recordNodes() {
    for node in nodes.compactMap({ $0 }) {
      record(
        .node(path: node.route.reversed().map(\.number), children: node.children.map(\.number)))
    }
  }
}

/// Plays a scenario with the nodes of a core.
final class CorePlayer: TreePlayer, @unchecked Sendable {
  private var nodes: [EventNode?]
  private let numbers: [ObjectIdentifier: Int]
  private var handles: [Int: EventNodeHandle] = [:]

  init(_ scenario: TreeScenario, _ core: EventCentral.Core) {
    let nodes = (0..<scenario.size).map { EventNode(name: "\($0)", core: core) }
    numbers = Dictionary(uniqueKeysWithValues: nodes.enumerated().map { ($1.id, $0) })
    self.nodes = nodes
    super.init(scenario)
  }

  override func perform(_ action: TreeAction) {
    switch action {
    case .nothing: break
    case .attach(let child, let parent):
      guard let child = nodes[child], let parent = nodes[parent] else { return }
      _ = child.tryAttach(to: parent)
    case .detach(let index): nodes[index]?.detach()
    case .letGo(let index): nodes[index] = nil
    case .add(let index, let mode, let id):
      guard let node = nodes[index], handles[id] == nil else { return }
      handles[id] = node.addHandler(mode, for: Note.self) { [unowned self] context in
        called(id, mode, in: context.phase.rawValue)
      }
    case .remove(let id): handles[id]?.remove()
    case .raise(let index, let scope): raise(index) { $0.raise(event: Note(), scope: scope) }
    case .propagate(let index): raise(index) { $0.propagate(event: Note()) }
    }
  }

  private func raise(_ index: Int, _ body: (EventNode) -> EventOutcome) {
    guard let node = nodes[index] else { return }
    let outcome = withExtendedLifetime(node) { body(node) }
    // A consumer that is none of the nodes is recorded as -1.
    record(
      .outcome(count: outcome.handlerCount, consumer: outcome.consumer.map { numbers[$0] ?? -1 }))
  }

  override func recordNodes() {
    for node in nodes.compactMap({ $0 }) {
      let path = node.path.split(separator: "/").map { Int($0)! }
      record(.node(path: path, children: node.children.map { numbers[$0.id]! }))
    }
  }
}
