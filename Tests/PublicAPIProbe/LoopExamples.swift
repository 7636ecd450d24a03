// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of the article on loops and of the pump, compiled as a user would.

import EventCore
import Testing

@Suite("The examples of the article on loops")
struct LoopExamples {
  struct Hit: Eventable {
    var damage = 1
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

  @Test func frames() {
    let (world, game) = (EventCentral(), Game())

    let pump = EventPump(on: world)
    pump.addEventCallback { (hit: Hit) in game.apply(hit) }

    for damage in 1...3 { Hit(damage: damage).queue(on: world) }
    while game.isRunning {
      let report = pump.run(until: .now + .milliseconds(2), limit: 10_000)
      game.draw(late: report.waiting)
    }

    #expect(game.damage + 3 * game.late >= 6)
    pump.run()
    #expect(game.damage == 6)
  }
}
