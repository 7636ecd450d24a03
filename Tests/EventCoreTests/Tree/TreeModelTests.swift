// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("Trees against a model")
struct TreeModelTests {
  @Test(
    "D4 D6 D7 D9: 10,000 random trees that change during events behave as the model does",
    arguments: cores)
  func randomTrees(core: EventCentral.Core) {
    let seed = announcedSeed("random trees on \(core)")
    let count = orderStep == 1 ? 10_000 * stressFactor : 300
    for round in 0..<count {
      // Each tree has a seed of its own: given as EVENTCORE_SEED, it makes that tree the first one.
      let seed = seed &+ UInt64(round)
      guard let difference = difference(TreeScenario(seed: seed), core) else { continue }
      Issue.record("tree \(round), EVENTCORE_SEED=\(seed): \(difference)")
      return
    }
  }

  /// Describes the first difference between a core and the model.
  private func difference(_ scenario: TreeScenario, _ core: EventCentral.Core) -> String? {
    let (model, real) = (ModelPlayer(scenario), CorePlayer(scenario, core))
    for action in scenario.making {
      model.perform(action)
      real.perform(action)
    }
    for (number, step) in ([.nothing] + scenario.steps).enumerated() {
      model.perform(step)
      real.perform(step)
      let (expected, found) = (model.takeRecords(), real.takeRecords())
      guard expected != found else { continue }
      let same = zip(expected, found).prefix { $0 == $1 }.count
      return """
        step \(number), \(step), of \(scenario.size) nodes: record \(same) is to be \
        \(expected.dropFirst(same).first.map { "\($0)" } ?? "none") and is \
        \(found.dropFirst(same).first.map { "\($0)" } ?? "none")
        """
    }
    return nil
  }

  @Test("the random trees are of every kind that they should be")
  func scenarios() {
    let calls = (0..<1_000).map { seed in
      let scenario = TreeScenario(seed: UInt64(seed))
      let model = ModelPlayer(scenario)
      for action in scenario.making { model.perform(action) }
      return scenario.steps.map { step -> Int in
        model.perform(step)
        return model.takeRecords().reduce(0) { count, record in
          if case .outcome(let calls, _) = record { max(count, calls) } else { count }
        }
      }.max() ?? 0
    }
    // The calls of one event: none, some, more than a chunk of a walk, several chunks.
    #expect(calls.contains(0))
    #expect(calls.contains { (1...63).contains($0) })
    #expect(calls.contains { (65...128).contains($0) })
    #expect(calls.contains { $0 > 200 })
  }
}
