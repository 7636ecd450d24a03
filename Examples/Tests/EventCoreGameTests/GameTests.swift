// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Testing

@testable import EventCoreGame

/// A game without a terminal, on either core.
@Suite struct GameTests {
  static let cores = EventCentral.Core.available

  /// A game that is being played, and its first screen.
  func play(_ core: EventCentral.Core, seed: UInt64 = 7) throws -> (Game, PlayScreen) {
    let game = Game(core: core)
    game.begin(seed: seed)
    press(.start, in: game)
    game.step()
    return (game, try #require(game.app.screens.first as? PlayScreen))
  }

  func press(_ key: Key, in game: Game) {
    Input(key: key).queue(priority: .high, on: game.world)
  }

  func step(_ game: Game, times: Int) {
    for _ in 0..<times { game.step() }
  }

  @Test(arguments: cores) func theSameSeedGivesTheSameGame(core: EventCentral.Core) {
    func frames(seed: UInt64, core: EventCentral.Core) -> [String] {
      let game = Game(core: core)
      game.begin(seed: seed)
      game.keys = .bot
      return (0..<2000).compactMap { step in
        game.step()
        return step % 100 == 99 ? game.frame : nil
      }
    }
    let frames = [frames(seed: 3, core: core), frames(seed: 3, core: .locking), frames(seed: 4, core: core)]
    #expect(frames[0] == frames[1])
    #expect(frames[0] != frames[2])
  }

  @Test(arguments: cores) func aPauseStopsTheStepsOfTheFieldAndItsTimers(core: EventCentral.Core) throws {
    let (game, screen) = try play(core)
    press(.pause, in: game)
    // Longer than the timer of the first wave.
    step(game, times: 200)
    #expect(game.app.screens.count == 2)
    #expect(screen.field.time == 1)
    #expect(screen.field.raiders.isEmpty)
    press(.pause, in: game)
    step(game, times: 100)
    #expect(game.app.screens.count == 1)
    #expect(screen.field.time == 101)
    #expect(screen.field.raiders.count == 7)
  }

  @Test(arguments: cores) func aSuspendedGameIsNotResumedByTheNextSuspension(core: EventCentral.Core) throws {
    let (game, screen) = try play(core)
    for _ in 0..<3 {
      press(.suspend, in: game)
      game.step()
    }
    #expect(screen.field.time == 1)
    press(.pause, in: game)
    game.step()
    #expect(screen.field.time == 2)
  }

  @Test(arguments: cores) func keysAreHandledBeforeTheStepForWhichTheyCame(core: EventCentral.Core) throws {
    let (game, screen) = try play(core)
    let before = screen.field.ship.box.at.x
    press(.left, in: game)
    press(.right, in: game)
    game.step()
    // In their order (D2), and before the tick, which was queued with a lower priority (D1).
    #expect(screen.field.ship.box.at.x > before)
  }

  @Test(arguments: cores) func theEndOvertakesTheKeysThatWait(core: EventCentral.Core) throws {
    let (game, screen) = try play(core)
    press(.left, in: game)
    game.end(signal: 15)
    game.step()
    #expect(game.ending == 15)
    #expect(screen.field.ship.course == 0)
    #expect(screen.field.time == 1)
  }

  @Test(arguments: cores) func ofTwoHitsInOneStepTheAlarmShieldsTheShipFromTheSecond(core: EventCentral.Core) throws {
    let (game, screen) = try play(core)
    let ship = screen.field.ship
    for _ in 0..<2 { Hit(target: ship.shield.node, damage: 1).queue(on: game.world) }
    game.step()
    // The alarm was stacked while the second hit waited, and overtook it (D1).
    #expect(ship.hull == 2)
    #expect(ship.shield.isUp)
    step(game, times: 121)
    #expect(!ship.shield.isUp)
    Hit(target: ship.shield.node, damage: 1).queue(on: game.world)
    game.step()
    #expect(ship.hull == 1)
  }

  @Test(arguments: cores) func onlyTheSquadronThatLosesItsLeaderDives(core: EventCentral.Core) throws {
    let (game, screen) = try play(core)
    let field = screen.field
    step(game, times: 100)
    destroyAll(in: field, game)
    step(game, times: 125)
    #expect(field.wave == 2)
    try #require(field.raiders.count == 14)
    let leader = try #require(field.raiders.first { $0.isLeader })
    Hit(target: leader.node, damage: leader.hull).queue(on: game.world)
    let (itsRaiders, theOthers) = (field.raiders[1..<7], field.raiders[7...])
    step(game, times: 24 * 6 + 2)
    #expect(itsRaiders.allSatisfy { $0.isDiving })
    #expect(theOthers.allSatisfy { !$0.isDiving })
  }

  @Test(arguments: cores) func aLostShipLeadsToTheScoreAndFromThereToANewGame(core: EventCentral.Core) throws {
    let (game, screen) = try play(core)
    step(game, times: 100)
    destroyAll(in: screen.field, game)
    game.step()
    #expect(screen.field.score == 6 * 50 + 150)
    Hit(target: screen.field.ship.shield.node, damage: 3).queue(on: game.world)
    step(game, times: 119)
    #expect(game.app.screens.first === screen)
    step(game, times: 3)
    #expect(game.app.best == 450)
    #expect(game.canvas.lines.contains { $0.contains("score 450") })
    press(.start, in: game)
    game.step()
    let next = try #require(game.app.screens.first as? PlayScreen)
    #expect(next !== screen)
    #expect(next.field.score == 0)
  }

  func destroyAll(in field: Field, _ game: Game) {
    for raider in field.raiders { Hit(target: raider.node, damage: raider.hull).queue(on: game.world) }
    game.step()
  }
}
