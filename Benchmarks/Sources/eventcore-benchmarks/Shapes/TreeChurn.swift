// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import RawCore
import Synchronization

// Four threads raise in a binary tree of 1,000 nodes, while a fifth attaches and detaches a subtree
// with a handler. The figure is the time until all have raised, over the handlers that were called.
//
//     4 x  raise ──► root ──► ... 1,000 handlers
//     1 x  attach ──► the next of the nodes ──► detach ──► ...

func treeChurnCandidates(_ scale: Scale) -> [Candidate] {
  // A run takes a tenth of a second or more, which is many turns of the system's scheduler: it has five
  // threads for what may be two processors. Runs of 8 ms were decided by who was preempted when.
  let rounds = scale.events(.lockFree) / 1_024
  let subjects: [(Subject, changes: Bool, rounds: Int, () -> any ChurnTree)] = [
    (.lockFree, true, rounds * 16, { EventNodeChurn(.lockFree) }),
    (.quiet, false, rounds * 16, { EventNodeChurn(.lockFree) }),
    (.locking, true, rounds * 2, { EventNodeChurn(.locking) }),
    (.plainSwift, true, rounds, { PlainChurn() }),
  ]
  return subjects.map { subject, changes, rounds, make in
    Candidate(shape: .treeChurn, subject: subject, payloadBytes: MemoryLayout<Event24>.size) {
      TreeChurnTrial(make(), changes: changes, rounds: rounds)
    }
  }
}

private let nodeCount = 1_000

private protocol ChurnTree: AnyObject, Sendable {
  /// Raises an event, whose weight is the address of a count that each handler raises. Any thread.
  func raise(_ event: Event24)
  /// Attaches the subtree to a node, and detaches it. One thread, while others raise.
  func move(to number: Int)
}

private final class EventNodeChurn: ChurnTree {
  private let nodes: [EventNode]
  private let moving: EventNode

  init(_ core: EventCentral.Core) {
    var nodes = [EventNode(core: core)]
    for number in 1..<nodeCount { nodes.append(EventNode(parent: nodes[(number - 1) / 2])) }
    moving = EventNode(parent: EventNode(core: core))
    for node in nodes + [moving] { node.addHandler { (event: Event24) in churned(event) } }
    self.nodes = nodes
  }

  func raise(_ event: Event24) {
    nodes[0].raise(event: event)
  }

  func move(to number: Int) {
    let top = moving.root
    top.attach(to: nodes[number])
    top.detach()
  }
}

/// The plain tree, made fit for threads as one does: by one lock, held throughout a raise. A mutex of the system's, since
/// Swift's hands itself over at each unlock on Linux.
private final class PlainChurn: ChurnTree, @unchecked Sendable {
  // The lock guards all of it.
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private var nodes = [PlainNode(parent: nil)]
  private let top = PlainNode(parent: nil)
  private let moving: PlainNode

  init() {
    pthread_mutex_init(mutex, nil)
    moving = PlainNode(parent: top)
    for number in 1..<nodeCount { nodes.append(PlainNode(parent: nodes[(number - 1) / 2])) }
    for node in nodes + [moving] {
      node.addHandler(onRaise: false) { (event: Event24) in
        churned(event)
        return false
      }
    }
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  private func locked<Result>(_ body: () -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return body()
  }

  func raise(_ event: Event24) {
    locked { nodes[0].raise(event) }
  }

  func move(to number: Int) {
    locked { top.attach(to: nodes[number]) }
    locked { top.detach() }
  }
}

private final class TreeChurnTrial: Trial {
  private let tree: any ChurnTree
  private let changes: Bool
  private let rounds: Int

  init(_ tree: any ChurnTree, changes: Bool, rounds: Int) {
    self.tree = tree
    self.changes = changes
    self.rounds = rounds
  }

  func run() -> Double {
    let state = ChurnState()
    state.finish.expect(4)
    let changed = DispatchSemaphore(value: 0)
    if changes {
      startThread { [tree] in
        var number = 0
        while !state.isDone.load(ordering: .relaxed) {
          tree.move(to: number)
          number = (number + 7) % nodeCount
        }
        changed.signal()
      }
    }
    let start = evb_now()
    for _ in 0..<4 {
      startThread { [tree, rounds] in
        let count = UnsafeMutablePointer<Int>.allocate(capacity: 1)
        count.initialize(to: 0)
        defer { count.deallocate() }
        // All four count with one counter, so that they raise until the end, whichever of them gets more
        // of the processors.
        while true {
          guard state.raised.wrappingAdd(1, ordering: .relaxed).oldValue < 4 * rounds else { break }
          tree.raise(Event24(number: UInt64(UInt(bitPattern: count))))
        }
        state.delivered.wrappingAdd(count.pointee, ordering: .relaxed)
        state.finish.arrive()
      }
    }
    let end = state.finish.wait()
    state.isDone.store(true, ordering: .relaxed)
    if changes { changed.wait() }
    let delivered = state.delivered.load(ordering: .relaxed)
    let least = 4 * rounds * nodeCount
    check(
      delivered >= least && delivered <= least + 4 * rounds,
      "\(delivered) handlers were called, of \(least) that stayed where they were.")
    return Double(end - start) / Double(delivered)
  }

  func end() {}
}

private final class ChurnState: Sendable {
  let isDone = Atomic<Bool>(false)
  let raised = Atomic<Int>(0)
  let delivered = Atomic<Int>(0)
  let finish = Finish()
}

/// Handlers run on the thread that raises, whose count it is. Without an address nothing is counted, and the run fails.
private func churned(_ event: Event24) {
  UnsafeMutablePointer<Int>(bitPattern: UInt(event.weight))?.pointee += 1
}
