// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import ArgumentParser
import EventCore
import EventCoreRecording
import FileOptions
import Foundation
import TerminalScreen

/// The command line and the loop.
@main
struct Play: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "eventcore-game", abstract: "A shooter in the terminal, on one thread and one EventPump.")

  @Option(help: "Where the random numbers begin; the same seed and the same keys give the same game.")
  var seed: UInt64 = .random(in: 0..<1_000_000)
  @Option(help: ArgumentHelp("Write the keys to a file.", valueName: "file"))
  var record: String?
  @Option(help: ArgumentHelp("Replay a file that was recorded.", valueName: "file"))
  var replay: String?
  @Option(help: ArgumentHelp("Write a trace of the game to a file, for ui.perfetto.dev.", valueName: "file"))
  var trace: String?
  @Flag(help: "Let the computer play.")
  var bot = false
  @Flag(help: "Play without a terminal, as fast as possible, and print the last frame.")
  var headless = false
  @Option(parsing: .unconditional, help: "End after so many steps; a second has \(Game.stepsPerSecond).")
  var steps: Int?

  func validate() throws {
    if bot, replay != nil { throw ValidationError("--bot and --replay exclude each other: both press the keys.") }
    // Before the recorder replaces its file.
    let files: KeyValuePairs = ["--replay": replay, "--record": record, "--trace": trace]
    if let refusal = refusal(ofFiles: files) { throw ValidationError(refusal) }
    if let steps, steps < 0 { throw ValidationError("--steps is \(steps): it must be 0 or more.") }
    if !headless, isatty(STDIN_FILENO) * isatty(STDOUT_FILENO) == 0 { throw ValidationError("This is no terminal: add --headless.") }
    if headless, replay == nil, !bot || steps == nil {
      throw ValidationError("Without a terminal nobody presses keys: add --replay FILE, or --bot and --steps NUMBER.")
    }
  }

  func run() throws {
    let game = Game()
    let types: [any RecordableEvent.Type] = [Beginning.self, Input.self, Ending.self]
    // One that was cut, since its game ended badly, can be looked at to its end.
    let recording = try replay.map { try EventRecording(contentsOf: URL(filePath: $0), of: types, accepting: [.damaged]) }
    let recorder = try record.map {
      try EventRecorder(on: game.pump, of: types, to: URL(filePath: $0), as: .jsonLines)
    }
    if let recording {
      game.keys = .recording(recording.player(on: game.world))
    } else {
      game.keys = bot ? .bot : nil
      game.begin(seed: seed)
    }
    let tracing = trace.map { _ in game.world.startTracing() }
    if headless {
      while game.ending == nil { step(game) }
      print(game.frame, terminator: "")
    } else {
      Signals.block()
      guard let terminal = Terminal() else { throw ValidationError("This is no terminal: add --headless.") }
      play(game, on: terminal)
      terminal.restore(saying: "best score: \(game.app.best)\n")
    }
    _ = try recorder?.finish()
    if let trace { try tracing?.finish(writingTo: trace) }
    if let fault = game.fault ?? recording?.damage { FileHandle.standardError.write(Data("replay: \(fault)\n".utf8)) }
    // A damaged recording may name any number; a status has 8 bits.
    if let signal = game.ending, signal != 0 { throw ExitCode(128 + min(max(signal, 0), 127)) }
  }

  private func step(_ game: Game) {
    if game.steps == steps { game.end() }
    game.step()
  }

  /// The loop: keys come in, the steps that are due are done, a frame goes out. It sleeps in one place, in `read`.
  private func play(_ game: Game, on terminal: Terminal) {
    // A machine that is too slow gets a slower game, and not one that jumps.
    var clock = FixedStep(every: Game.step, atMost: 4)
    var frame = ContinuousClock.now
    var page = Page(terminal)
    while game.ending == nil {
      switch terminal.read(until: frame + clock.length * (1 - clock.interpolation)) {
      case .ending(let signal):
        game.end(signal: signal)
      case .bytes(let bytes):
        let pressed = bytes.compactMap { Keys.table[$0] }
        if game.keys == nil, page.fits {
          for key in pressed { Input(key: key).queue(priority: .high, on: game.world) }
        } else if pressed.contains(.quit) {
          // Nobody can play, so this key is for the program.
          game.end()
        }
      }
      // A key like all others, so that a recording has it.
      if page.measure(), !page.fits, game.keys == nil { Input(key: .suspend).queue(priority: .high, on: game.world) }
      frame = .now
      for _ in clock.steps(until: frame) where game.ending == nil { step(game) }
      page.show(game.canvas)
    }
  }
}
