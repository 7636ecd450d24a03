// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Synchronization
import Testing

@Suite("Trees and many threads")
struct TreeRaceTests {
  /// Rounds of each thread; fewer under the sanitizers.
  private let rounds = (orderStep == 1 ? 2_000 : 300) * stressFactor

  /// Counts calls.
  final class Counter: Sendable {
    let calls = Atomic<Int>(0)
    func note() { calls.wrappingAdd(1, ordering: .relaxed) }
    var count: Int { calls.load(ordering: .relaxed) }
  }

  /// The handlers that one raise has called, in order. Each event has an object of its own.
  final class Calls: @unchecked Sendable {
    // The raising thread alone uses it.
    var numbers: [Int] = []
  }
  struct Roll: Eventable { let calls = Calls() }

  /// Gives each node a handler that notes the node's number, in all phases.
  private func number(_ nodes: [EventNode]) {
    for (number, node) in nodes.enumerated() {
      node.addHandler([.onCapture, .onRaise, .onPropagate]) { (roll: Roll) in
        roll.calls.numbers.append(number)
      }
    }
  }

  @Test(
    "D4: each raise calls the handlers of nodes that stay once, in order, while others come and go",
    arguments: cores)
  func churn(core: EventCentral.Core) {
    let lifetime = Lifetime()
    let wrong = Log<[Int]>()
    do {
      let root = EventNode(core: core)
      let middles = (0..<4).map { _ in EventNode(parent: root) }
      let leaves = middles.map { EventNode(parent: $0) }
      number([root] + zip(middles, leaves).flatMap { [$0, $1] })
      let (rounds, done) = (rounds, Counter())
      let seed = announcedSeed("TreeRaceTests.churn, \(core)")
      onThreads(4) { index in
        if index < 2 {
          for round in 0..<rounds {
            let place = round % 4
            let roll = Roll()
            let outcome = leaves[place].raise(event: roll)
            let route = [0, 2 * place + 1, 2 * place + 2]
            let expected = route + route.reversed() + Array(0...8)
            if roll.calls.numbers != expected || outcome.handlerCount < 15 || outcome.isConsumed {
              wrong.append(roll.calls.numbers)
            }
          }
          done.note()
          return
        }
        var random = SeededRandom(seed: seed &+ UInt64(index))
        var round = 0
        while done.count < 2 {
          round += 1
          // Nodes of this thread's own, below and beside the ones that stay.
          let node = EventNode(parent: leaves.randomElement(using: &random)!)
          let child = EventNode(parent: node)
          child.addHandler { [token = lifetime.token()] (_: Roll) in
            withExtendedLifetime(token) {}
          }
          node.attach(to: middles.randomElement(using: &random)!)
          child.attach(to: root)
          if round % 2 == 0 { child.detach() }
          #expect(node.parent != nil)
        }
      }
    }
    #expect(wrong.entries.isEmpty)
    #expect(lifetime.alive == 0)
  }

  // A walk may see a part of a subtree that another thread moves meanwhile: what it has passed at the
  // old place, or what it comes to at the new one.
  @Test(
    "D4: each raise calls a node that moves to and fro at most once, and those that stay once",
    arguments: cores)
  func movingSubtree(core: EventCentral.Core) {
    let root = EventNode(core: core)
    let places = (0..<3).map { _ in EventNode(parent: root) }
    let moving = EventNode(parent: places[0])
    let below = (0..<20).map { _ in EventNode(parent: moving) }
    number([root] + places + [moving] + below)
    let done = Counter()
    let (wrong, rounds) = (Log<[Int]>(), rounds)
    onThreads(3) { index in
      if index == 0 {
        var round = 0
        while done.count < 2 {
          moving.attach(to: places[round % 3])
          round += 1
        }
        return
      }
      for _ in 0..<rounds {
        let roll = Roll()
        root.raise(event: roll, scope: .propagating)
        let numbers = roll.calls.numbers
        let staying = numbers.filter { $0 <= 3 }
        if staying != [0, 1, 2, 3] || Set(numbers).count != numbers.count { wrong.append(numbers) }
      }
      done.note()
    }
    #expect(wrong.entries.isEmpty)
    let roll = Roll()
    #expect(root.raise(event: roll, scope: .propagating) == EventOutcome(handlerCount: 25))
    #expect(roll.calls.numbers.sorted() == Array(0...24))
  }

  @Test("D6: no call begins after removeAndWait has returned", arguments: cores)
  func nothingAfterRemoval(core: EventCentral.Core) {
    let root = EventNode(core: core)
    let nodes = (0..<3).map { _ in EventNode(parent: root) }
    let isDone = Atomic<Bool>(false)
    let (late, calls) = (Counter(), Counter())
    let rounds = rounds / 4
    onThreads(3) { index in
      if index > 0 {
        while !isDone.load(ordering: .acquiring) { nodes[index].raise(event: Note()) }
        return
      }
      for round in 0..<rounds {
        final class Flag: Sendable {
          let isGone = Atomic<Bool>(false)
        }
        let flag = Flag()
        let handle = nodes[round % 3].addHandler([.onRaise, .onPropagate]) { (_: Note) in
          if flag.isGone.load(ordering: .acquiring) { late.note() }
          calls.note()
          if flag.isGone.load(ordering: .acquiring) { late.note() }
        }
        if round % 2 == 0 { nodes[round % 3].raise(event: Note()) }
        #expect(handle.removeAndWait())
        flag.isGone.store(true, ordering: .releasing)
      }
      isDone.store(true, ordering: .releasing)
    }
    #expect(late.count == 0)
    #expect(calls.count >= rounds / 2)
  }

  // raiser                          remover
  // raise: in the handler, held
  //                                 removeAndWait ... waits
  // let go, the handler returns
  //                                 returns
  @Test("D6: removeAndWait returns when the handler that runs has returned", arguments: cores)
  func removalWaits(core: EventCentral.Core) {
    let node = EventNode(core: core)
    let order = orderOfRemoval(
      { node.addHandler(.onPropagate, $0) },
      raise: { runThread { node.raise(event: Note()) } })
    #expect(order == ["returned", "removed"])
  }

  @Test("D4, D9: handlers may come and go on all threads", arguments: cores)
  func handlersComeAndGo(core: EventCentral.Core) {
    let lifetime = Lifetime()
    do {
      let root = EventNode(core: core)
      let nodes = (0..<8).map { _ in EventNode(parent: root) }
      let counter = Counter()
      root.addHandler(.onRaise) { (_: Note) in counter.note() }
      let rounds = rounds
      onThreads(4) { index in
        for round in 0..<rounds {
          let node = nodes[(index + round) % 8]
          let handle = node.addHandler([.onRaise, .onPropagate]) {
            [token = lifetime.token()] (_: Note) in withExtendedLifetime(token) {}
          }
          node.raise(event: Note())
          switch round % 4 {
          case 0: handle.remove()
          case 1: node.removeHandlers(for: Note.self)
          case 2: node.removeAllHandlers()
          default: handle.removeAndWait()
          }
        }
      }
      #expect(counter.count == 4 * rounds)
      for node in nodes { node.removeAllHandlers() }
      // What a raise may still read is freed by its thread: also by one of an earlier test, that is about to end.
      #expect(lifetime.waitUntilNone())
    }
  }

  @Test("a tree may be looked at while it changes", arguments: cores)
  func looking(core: EventCentral.Core) {
    let root = EventNode(name: "root", core: core)
    let nodes = (0..<6).map { EventNode(parent: root, name: "n\($0)") }
    let isDone = Atomic<Bool>(false)
    let rounds = rounds / 2
    onThreads(3) { index in
      if index == 0 {
        for round in 0..<rounds {
          let node = nodes[round % 6]
          _ = node.tryAttach(to: nodes[(round * 5 + 1) % 6])
          _ = EventNode(parent: node, name: "short")
          if round % 3 == 0 { node.parent = root }
        }
        isDone.store(true, ordering: .releasing)
        return
      }
      while !isDone.load(ordering: .acquiring) {
        for node in nodes {
          _ = node.children.map(\.name)
          _ = node.parent?.name
          _ = (node.path, node.depth, node.root.name, node.diagram())
        }
        root.raise(event: Note())
      }
    }
  }

  @Test("D9: two threads may free the nodes of one chain", arguments: cores)
  func freeingChains(core: EventCentral.Core) {
    final class Slot: Sendable {
      let nodes = Guarded<[EventNode]>([])
    }
    for _ in 0..<rounds / 20 {
      let slots = [Slot(), Slot()]
      let nodes = chain(of: 50, core)
      for (index, node) in nodes.enumerated() {
        slots[index % 2].nodes.withLock { $0.append(node) }
      }
      onThreads(2) { index in
        while let node = slots[index].nodes.withLock({ $0.popLast() }) {
          withExtendedLifetime(node) {}
        }
      }
    }
  }
}
