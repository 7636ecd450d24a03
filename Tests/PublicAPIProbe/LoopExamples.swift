// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of the article on loops and of the pump, compiled as a user would.

import EventCore
import Synchronization
import Testing

@Suite("The examples of the article on loops")
struct LoopExamples {
  struct Hit: Eventable {
    var damage = 1
  }

  final class Score: Sendable {
    private let sum = Mutex(0)
    var damage: Int { sum.withLock { $0 } }

    func add(_ damage: Int) { sum.withLock { $0 += damage } }
  }

  final class Game {
    private var frames = 0
    private(set) var damage = 0
    private(set) var late = 0
    var isRunning: Bool { frames < 3 }

    func apply(_ hit: Hit) { damage += hit.damage }

    func draw(late: Int) {
      frames += 1
      self.late += late
    }
  }

  @Test func frames() async {
    let (world, game) = (EventCentral(), Game())

    let pump = EventPump(on: world)
    pump.addEventCallback { (hit: Hit) in game.apply(hit) }

    for damage in 1...3 { Hit(damage: damage).queue(on: world) }
    while game.isRunning {
      let report = pump.run(until: .now + .milliseconds(2), limit: 10_000)
      game.draw(late: report.waiting)
    }

    let (score, node) = (Score(), EventNode())
    Hit.addListener(nil, executeOn: .pump(pump), on: world) { hit in score.add(hit.damage) }
    node.addHandler(executeOn: .pump(pump), of: world) { (hit: Hit) in score.add(hit.damage) }
    let place = pump.place
    let registered = Task {
      Hit.addListener(nil, executeOn: .pump(place), on: world) { hit in score.add(hit.damage) }
    }
    _ = await registered.value
    Hit(damage: 10).queue(on: world)
    node.raise(event: Hit(damage: 100))
    pump.run()
    #expect(score.damage == 120)

    #expect(game.damage == 16)
  }
}
