// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// A child gets its controlling terminal by opening it as the leader of a session, which is so on Linux alone.
#if os(Linux)
  import ChildOnTerminal
  import Foundation
  import Testing

  /// The program itself, on a terminal of its own.
  @Suite(.serialized) struct GameTerminalTests {
    @Test(arguments: [SIGTERM, SIGINT, SIGHUP, SIGQUIT]) func aSignalEndsTheGameAndTheTerminalIsAsBefore(
      signal: Int32
    ) throws {
      let game = try ChildOnTerminal("eventcore-game", ["--seed", "7"])
      try game.read(until: "ENTER")
      #expect(game.modes != game.before)
      kill(game.process, signal)
      try game.read(until: "\u{1b}[?25h\u{1b}[?1049l")
      #expect(try game.exitStatus() == 128 + signal)
      #expect(game.modes == game.before)
    }

    @Test func controlCEndsTheGameAndTheTerminalIsAsBefore() throws {
      let game = try ChildOnTerminal("eventcore-game", ["--seed", "7"])
      try game.read(until: "ENTER")
      game.type("\u{3}")
      try game.read(until: "\u{1b}[?25h\u{1b}[?1049l")
      #expect(try game.exitStatus() == 128 + SIGINT)
      #expect(game.modes == game.before)
    }

    @Test func aClosedTerminalEndsTheGame() throws {
      let game = try ChildOnTerminal("eventcore-game", ["--seed", "7"])
      try game.read(until: "ENTER")
      game.closeTerminal()
      #expect(try game.exitStatus() == 128 + SIGHUP)
    }

    /// Nobody takes what the game writes: it leaves frames out, and is still there for a signal.
    @Test func aTerminalThatIsStuckDoesNotHoldTheGame() throws {
      let game = try ChildOnTerminal("eventcore-game", ["--seed", "7"])
      try game.read(until: "ENTER")
      game.stopOutput()
      game.type("\r")
      kill(game.process, SIGTERM)
      #expect(try game.exitStatus() == 128 + SIGTERM)
      #expect(game.modes == game.before)
    }

    @Test func aGameThatWasStoppedTakesTheTerminalAgainAndDrawsAll() throws {
      let game = try ChildOnTerminal("eventcore-game", ["--seed", "7"])
      try game.read(until: "ENTER")
      let modes = game.modes
      try game.stop()
      #expect(game.modes == game.before)
      kill(game.process, SIGCONT)
      try game.read(until: "\u{1b}[?1049h")
      try game.read(until: "ENTER")
      #expect(game.modes == modes)
      game.type("q")
      #expect(try game.exitStatus() == 0)
      #expect(game.modes == game.before)
    }

    @Test func aTerminalThatIsTooSmallPausesTheGameAndSaysSo() throws {
      let game = try ChildOnTerminal("eventcore-game", ["--seed", "7"])
      try game.read(until: "ENTER")
      game.type("\r")
      try game.read(until: "SCORE")
      game.resize(columns: 60, rows: 20)
      try game.read(until: "The game needs 80 x 24, and this is 60 x 20")
      // Its keys do nothing now, so that nobody plays what cannot be seen.
      game.type("p")
      game.resize(columns: 100, rows: 30)
      try game.read(until: "PAUSE")
      game.type("p")
      try game.read(until: "W A V E")
      game.resize(columns: 60, rows: 20)
      try game.read(until: "The game needs")
      game.type("q")
      #expect(try game.exitStatus() == 0)
    }
  }
#endif
