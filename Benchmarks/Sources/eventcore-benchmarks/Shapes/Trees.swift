// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import AllocationCounter
import EventCore
import RawCore

// Events that are raised at the root of a tree, in which each node has one handler.
//
//     main: raise ──► root ──► handler: count and add up ──► first child ──► handler ...
//
// Shapes of the tree: each node has two children, ten, or all are children of the root; and a chain
// of eight. Consumed: the first of 1,000 handlers consumes. Pass: in a chain of 1,000 with handlers
// for another type, only the last node has one for this. Changed and pass: before each raise
// another tree changes, since EventCore takes up what the last raise found as long as nothing has
// changed. Make: a node is made as a child; free: it is released.

/// The candidates of all shapes of trees.
func treeCandidates(_ scale: Scale) -> [Candidate] {
  func candidates(
    _ shape: Shape, _ make: @escaping (any BenchmarkTree.Type, EventCentral.Core) -> any Trial
  ) -> [Candidate] {
    let subjects: [(Subject, any BenchmarkTree.Type, EventCentral.Core)] = [
      (.lockFree, EventNodeTree.self, .lockFree), (.locking, EventNodeTree.self, .locking),
      (.plainSwift, PlainTree.self, .default),
    ]
    return subjects.map { subject, type, core in
      Candidate(shape: shape, subject: subject, payloadBytes: MemoryLayout<Event24>.size) {
        make(type, core)
      }
    }
  }
  func raising(
    _ shape: Shape, nodes: Int, _ parent: @escaping (Int) -> Int, per: Int? = nil,
    consumes: Bool = false, counting: Bool = false, changes: Bool = false
  ) -> [Candidate] {
    candidates(shape) { type, core in
      let deliveries = scale.events(.lockFree) * (nodes > 1_000 ? 2 : 4)
      return TreeTrial(
        type.init(core, nodes: nodes, parent: parent, consumes: consumes), nodes: nodes,
        rounds: max(2, deliveries / max(nodes, 64)), per: per ?? nodes, consumes: consumes,
        counting: counting, changes: changes)
    }
  }
  var all = raising(.treeBinary, nodes: 1_000) { ($0 - 1) / 2 }
  all += raising(.tree10ary, nodes: 1_000) { ($0 - 1) / 10 }
  all += raising(.treeFlat, nodes: 1_000) { _ in 0 }
  all += raising(.treeChanged, nodes: 1_000, { ($0 - 1) / 2 }, changes: true)
  all += raising(.treeChain, nodes: 8) { $0 - 1 }
  all += raising(.treeConsumed, nodes: 1_000, { ($0 - 1) / 2 }, per: 1, consumes: true)
  all += raising(.treeAllocations, nodes: 1_000, { ($0 - 1) / 2 }, per: 1, counting: true)
  all += raising(.treeMillion, nodes: 1_000_000) { ($0 - 1) / 2 }
  // In the same runs, since the bar is the ratio of the two.
  all += raising(.treeMillion, nodes: 1_000) { ($0 - 1) / 2 }
    .filter { $0.subject == .lockFree }.map { $0.named(.plain) }
  all += candidates(.treePass) { type, core in
    PassTrial(type.init(core, passing: 1_000), nodes: 1_000, rounds: scale.events(.lockFree) / 256)
  }
  for (shape, frees) in [(Shape.treeMake, false), (.treeFree, true)] {
    all += candidates(shape) { type, core in
      MakeTrial(type, core, nodes: scale.events(.lockFree) / 8, frees: frees)
    }
  }
  return all + treeChurnCandidates(scale)
}

/// An event type that is never raised.
private struct Unrelated: Eventable {
  let number = 0
}

private protocol BenchmarkTree: AnyObject {
  /// A tree with a handler at every node. `parent`: of each node but the first, by its number.
  init(_ core: EventCentral.Core, nodes: Int, parent: (Int) -> Int, consumes: Bool)
  /// A chain in which only the last node has a handler for what is raised.
  init(_ core: EventCentral.Core, passing: Int)
  var tally: LocalTally { get }
  func raise(_ event: Event24)
  /// Changes another tree.
  func changeElsewhere()
  /// Adds `count` children to the root.
  func make(_ count: Int)
  /// Releases those children.
  func free()
}

private final class EventNodeTree: BenchmarkTree {
  let tally = LocalTally()
  private var nodes: [EventNode]
  private let root: EventNode
  private lazy var elsewhere = (EventNode(core: core), EventNode(core: core))
  private let core: EventCentral.Core

  init(_ core: EventCentral.Core, nodes count: Int, parent: (Int) -> Int, consumes: Bool) {
    self.core = core
    root = EventNode(core: core)
    nodes = [root]
    nodes.reserveCapacity(count)
    for number in 1..<max(count, 1) { nodes.append(EventNode(parent: nodes[parent(number)])) }
    for node in nodes {
      node.addHandler(consumes ? [.onPropagate, .consumeEvent] : .onPropagate) {
        [tally] (event: Event24) in tally.receive(event)
      }
    }
  }

  init(_ core: EventCentral.Core, passing count: Int) {
    self.core = core
    root = EventNode(core: core)
    nodes = [root]
    while nodes.count < count { nodes.append(EventNode(parent: nodes[nodes.count - 1])) }
    for node in nodes { node.addHandler { (_: Unrelated) in } }
    nodes[count - 1].addHandler { [tally] (event: Event24) in tally.receive(event) }
  }

  func raise(_ event: Event24) {
    root.raise(event: event)
  }

  func changeElsewhere() {
    elsewhere.1.attach(to: elsewhere.0)
    elsewhere.1.detach()
  }

  func make(_ count: Int) {
    // Not into the property itself: the check of each access would be a tenth of the figure.
    var made = exchange(&nodes, with: [])
    for _ in 0..<count { made.append(EventNode(parent: root)) }
    nodes = made
  }

  func free() {
    nodes.removeAll(keepingCapacity: true)
  }
}

private final class PlainTree: BenchmarkTree {
  let tally = LocalTally()
  private var nodes: [PlainNode]
  private let root: PlainNode

  init(_ core: EventCentral.Core, nodes count: Int, parent: (Int) -> Int, consumes: Bool) {
    root = PlainNode(parent: nil)
    nodes = [root]
    for number in 1..<max(count, 1) { nodes.append(PlainNode(parent: nodes[parent(number)])) }
    for node in nodes {
      node.addHandler(onRaise: false) { [tally] (event: Event24) in
        tally.receive(event)
        return consumes
      }
    }
  }

  init(_ core: EventCentral.Core, passing count: Int) {
    root = PlainNode(parent: nil)
    nodes = [root]
    while nodes.count < count { nodes.append(PlainNode(parent: nodes[nodes.count - 1])) }
    for node in nodes { node.addHandler(onRaise: false) { (_: Unrelated) in false } }
    nodes[count - 1].addHandler(onRaise: false) { [tally] (event: Event24) in
      tally.receive(event)
      return false
    }
  }

  func raise(_ event: Event24) {
    root.raise(event)
  }

  func changeElsewhere() {}

  func make(_ count: Int) {
    // Not into the property itself, as in `EventNodeTree`.
    var made = exchange(&nodes, with: [])
    for _ in 0..<count { made.append(PlainNode(parent: root)) }
    nodes = made
  }

  func free() {
    // From the end, where a node of the plain tree finds itself at once among its siblings.
    while let node = nodes.popLast() { node.detach() }
  }
}

/// Raises events one after the other.
private final class TreeTrial: Trial {
  private let tree: any BenchmarkTree
  private let nodes: Int
  private let rounds: Int
  private let per: Int
  private let consumes: Bool
  private let counting: Bool
  private let changes: Bool

  init(
    _ tree: any BenchmarkTree, nodes: Int, rounds: Int, per: Int, consumes: Bool, counting: Bool,
    changes: Bool
  ) {
    self.tree = tree
    self.nodes = nodes
    self.rounds = rounds
    self.per = per
    self.consumes = consumes
    self.counting = counting
    self.changes = changes
  }

  func run() -> Double {
    for number in 0..<max(1, rounds / 8) { tree.raise(Event24(number: UInt64(number))) }
    tree.tally.count = 0
    tree.tally.sum = 0
    let window = Window(counting: counting)
    for number in 0..<rounds {
      if changes { tree.changeElsewhere() }
      tree.raise(Event24(number: UInt64(number)))
    }
    let nanoseconds = window.nanoseconds(until: evb_now())
    let blocks = counting ? evb_allocations_disarm().blocks : 0
    let each = consumes ? 1 : nodes
    check(
      tree.tally.count == rounds * each
        && tree.tally.sum == UInt64(each * rounds * (rounds - 1) / 2),
      "The tree's handlers got \(tree.tally.count) events of \(rounds * each).")
    return (counting ? Double(blocks) : nanoseconds) / Double(rounds * per)
  }

  func end() {}
}

private final class PassTrial: Trial {
  private let trial: TreeTrial
  private let nodes: Int

  init(_ tree: any BenchmarkTree, nodes: Int, rounds: Int) {
    trial = TreeTrial(
      tree, nodes: 1, rounds: rounds, per: 1, consumes: true, counting: false,
      changes: true)
    self.nodes = nodes
  }

  func run() -> Double { trial.run() / Double(nodes) }

  func end() {}
}

/// Makes children of one node, and releases them.
private final class MakeTrial: Trial {
  private let tree: any BenchmarkTree
  private let nodes: Int
  private let frees: Bool

  init(_ type: any BenchmarkTree.Type, _ core: EventCentral.Core, nodes: Int, frees: Bool) {
    self.nodes = nodes
    self.frees = frees
    tree = type.init(core, nodes: 1, parent: { _ in 0 }, consumes: false)
  }

  func run() -> Double {
    let start = evb_now()
    tree.make(nodes)
    let middle = evb_now()
    tree.free()
    let end = evb_now()
    return Double(frees ? end - middle : middle - start) / Double(nodes)
  }

  func end() {}
}
