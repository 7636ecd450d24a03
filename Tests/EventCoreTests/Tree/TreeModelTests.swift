// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

/// The same as the model, with nodes. One thread.
private final class RealTree: @unchecked Sendable {
  // One thread.
  let script: TreeScript
  var nodes: [EventNode?] = []
  var handles: [Int: EventNodeHandle] = [:]
  var calls = 0
  var log: [Int] = []

  init(_ script: TreeScript) { self.script = script }

  func perform(_ action: TreeAction) {
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
        calls += 1
        log.append(id * 16 + Int(context.phase.rawValue))
        perform(script.actions[calls % script.actions.count])
        return script.decision(id, mode)
      }
    case .remove(let id): handles[id]?.remove()
    case .raise(let index, let scope):
      guard calls < script.callLimit, let node = nodes[index] else { return }
      node.raise(event: Note(), scope: scope)
    }
  }
}

@Suite("Trees against a model")
struct TreeModelTests {
  private static let phases: [CaptureMode] = [
    .onRaise, .onPropagate, .onCapture, [.onRaise, .onPropagate],
    [.onCapture, .onRaise, .onPropagate],
  ]
  private static let scopes: [EventRaiseScope] = [
    .tree, .tree, .tree, .bubbling, .propagating, [.capturing, .bubbling],
  ]

  @Test("10,000 random trees that change while events travel", arguments: cores)
  func randomTrees(core: EventCentral.Core) {
    var random = SeededRandom()
    let count = orderStep == 1 ? 10_000 * stressFactor : 300
    for round in 0..<count {
      let seed = random.next()
      guard compare(seed, core) else {
        Issue.record("tree \(round) of seed \(random.seed): compare(\(seed))")
        return
      }
    }
  }

  /// Whether a random tree does what the model does.
  private func compare(_ seed: UInt64, _ core: EventCentral.Core) -> Bool {
    var random = SeededRandom(seed: seed)
    let size = Int.random(in: 1...12, using: &random)
    let changes = Bool.random(using: &random)
    let script = TreeScript(
      actions: (0..<Int.random(in: 1...20, using: &random)).map { _ in
        changes ? action(size, &random) : .nothing
      },
      decisions: (0..<8).map { _ in
        [.continue, .continue, .continue, .continue, .continue, .stopAfterThisNode, .consume]
          .randomElement(using: &random)!
      }, callLimit: 40)
    let (model, real) = (ModelTree(script), RealTree(script))
    for _ in 0..<size {
      model.nodes.append(.init())
      real.nodes.append(EventNode(core: core))
    }
    func both(_ action: TreeAction) {
      model.perform(action)
      real.perform(action)
    }
    for index in 1..<max(size, 1) {
      both(.attach(index, to: Int.random(in: 0..<index, using: &random)))
    }
    for id in 0..<Int.random(in: 0...15, using: &random) {
      both(.add(Int.random(in: 0..<size, using: &random), mode(&random), id: id))
    }
    for _ in 0..<4 {
      both(
        .raise(
          Int.random(in: 0..<size, using: &random), Self.scopes.randomElement(using: &random)!))
      if !changes { both(action(size, &random)) }
      guard model.log == real.log, model.calls == real.calls else {
        print("the model has \(model.log), the tree \(real.log)")
        return false
      }
    }
    return zip(model.nodes, real.nodes).allSatisfy { node, object in
      guard let object else { return !node.isHeld }
      let children = object.children
      return children.count == node.children.count
    }
  }

  private func mode(_ random: inout SeededRandom) -> CaptureMode {
    let phases = Self.phases.randomElement(using: &random)!
    return Int.random(in: 0..<12, using: &random) == 0 ? phases.union(.consumeEvent) : phases
  }

  private func action(_ size: Int, _ random: inout SeededRandom) -> TreeAction {
    func node() -> Int { Int.random(in: 0..<size, using: &random) }
    func handler() -> Int { Int.random(in: 0..<24, using: &random) }
    switch Int.random(in: 0..<16, using: &random) {
    case 0, 1, 2: return .attach(node(), to: node())
    case 3: return .detach(node())
    case 4: return .letGo(node())
    case 5, 6: return .add(node(), mode(&random), id: handler())
    case 7, 8, 9: return .remove(id: handler())
    case 10, 11: return .raise(node(), Self.scopes.randomElement(using: &random)!)
    default: return .nothing
    }
  }
}
