// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// What the article on tests asks a worker, compiled as a user would.

import EventCoreTesting
import Testing

@Suite("The examples of the article on tests: questions")
struct TestingExamples {
  struct Hit: Eventable {
    var player: String
    var points: Int
  }
  struct PointsQuery: Eventable { var player: String }

  @Test func theScorekeeperAnswers() async throws {
    let world = EventCentral(deterministic: 1)
    let scorekeeper = EventWorker(on: world, state: [String: Int]()) { on in
      on(Hit.self) { points, hit in points[hit.player, default: 0] += hit.points }
      on.answer(PointsQuery.self) { points, query in points[query.player, default: 0] }
    }
    Hit(player: "Ann", points: 10).queue(on: world)
    let points: Int = try await world.answer(to: PointsQuery(player: "Ann"), within: .seconds(1))
    #expect(points == 10)
    #expect(await scorekeeper.thread.drain())
  }
}
