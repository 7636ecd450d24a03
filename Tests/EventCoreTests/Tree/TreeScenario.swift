// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport

/// What a test or a handler does with the nodes, by their numbers.
enum TreeAction: Sendable {
  case nothing
  case attach(Int, to: Int)
  case detach(Int)
  /// The test releases a node.
  case letGo(Int)
  case add(Int, CaptureMode, id: Int)
  case remove(id: Int)
  case raise(Int, EventRaiseScope)
  /// `propagate(event:)`.
  case propagate(Int)
}

/// All that is done with one random tree.
struct TreeScenario: Sendable {
  private(set) var size = 0
  /// Makes the tree.
  private(set) var making: [TreeAction] = []
  /// What is done then, one step after the other. The tree is looked at after each.
  private(set) var steps: [TreeAction] = []
  /// What handlers do: each call does the next action, and after the last one the first.
  private(set) var actions: [TreeAction] = []
  /// What handlers decide, by their numbers.
  private(set) var decisions: [EventDecision] = []
  /// The number of calls after which handlers raise no more.
  let callLimit = 40

  /// Most trees have up to 12 nodes; every 100th has so many nodes and handlers that a walk takes
  /// them in several chunks of 64, some of them on one node.
  init(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    let isLarge = Int.random(in: 0..<100, using: &random) == 0
    size = Int.random(in: isLarge ? 65...150 : 1...12, using: &random)
    let handlerCount = Int.random(in: isLarge ? 65...500 : 0...15, using: &random)
    let changes = Bool.random(using: &random)
    // In a large tree few calls change something and few handlers end an event, so that most go far.
    let idle = isLarge ? Int.random(in: 50...300, using: &random) : 0
    actions = (0..<Int.random(in: 1...20, using: &random)).map { _ in
      changes ? action(handlerCount, &random) : .nothing
    }
    actions += Array(repeating: .nothing, count: idle)
    decisions = (0..<(isLarge ? 997 : 8)).map { number in
      guard !isLarge || number % 100 == 0 else { return .continue }
      return [.continue, .continue, .continue, .continue, .continue, .stopAfterThisNode, .consume]
        .randomElement(using: &random)!
    }
    // A deep tree, or one of any shape.
    let reach = [isLarge ? 5 : 1, size, size].randomElement(using: &random)!
    for index in 1..<max(size, 1) {
      making.append(
        .attach(index, to: Int.random(in: max(0, index - reach)..<index, using: &random)))
    }
    let crowd = Bool.random(using: &random) ? node(&random) : nil
    for id in 0..<handlerCount {
      let node = crowd.flatMap { Bool.random(using: &random) ? $0 : nil } ?? node(&random)
      making.append(.add(node, mode(isLarge, &random), id: id))
    }
    for _ in 0..<4 {
      steps.append(raise(&random))
      if !changes { steps.append(action(handlerCount, &random)) }
    }
  }

  func decision(_ id: Int, _ mode: CaptureMode) -> EventDecision {
    mode.contains(.consumeEvent) ? .consume : decisions[id % decisions.count]
  }

  private func node(_ random: inout SeededRandom) -> Int {
    Int.random(in: 0..<size, using: &random)
  }

  private func mode(_ isLarge: Bool, _ random: inout SeededRandom) -> CaptureMode {
    let phases: [CaptureMode] = [
      .onRaise, .onPropagate, .onCapture, [.onRaise, .onPropagate],
      [.onCapture, .onRaise, .onPropagate],
    ]
    let mode = phases.randomElement(using: &random)!
    let consumes = Int.random(in: 0..<(isLarge ? 600 : 12), using: &random) == 0
    return consumes ? mode.union(.consumeEvent) : mode
  }

  private func raise(_ random: inout SeededRandom) -> TreeAction {
    let scopes: [EventRaiseScope] = [
      .tree, .tree, .tree, .bubbling, .propagating, .capturing, [.capturing, .bubbling],
      [.capturing, .propagating],
    ]
    guard Int.random(in: 0..<8, using: &random) > 0 else { return .propagate(node(&random)) }
    return .raise(node(&random), scopes.randomElement(using: &random)!)
  }

  private func action(_ handlerCount: Int, _ random: inout SeededRandom) -> TreeAction {
    func handler() -> Int { Int.random(in: 0..<(handlerCount + 10), using: &random) }
    switch Int.random(in: 0..<16, using: &random) {
    case 0, 1, 2: return .attach(node(&random), to: node(&random))
    case 3: return .detach(node(&random))
    case 4: return .letGo(node(&random))
    case 5, 6: return .add(node(&random), mode(false, &random), id: handler())
    case 7, 8, 9: return .remove(id: handler())
    case 10, 11: return raise(&random)
    default: return .nothing
    }
  }
}
