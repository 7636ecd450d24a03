// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreRecording
import TerminalScreen

/// The game without a terminal: a central, one pump, and the coordinators. It makes no thread.
final class Game {
  static let stepsPerSecond = 60
  static let step = Duration.nanoseconds(1_000_000_000 / stepsPerSecond)
  let world: EventCentral
  let pump: EventPump
  let app: App
  private(set) var steps = 0
  /// The signal that has ended the game, or 0; nil as long as it goes on.
  private(set) var ending: Int32?
  /// Who presses the keys instead of a person, and why a replay could not go on.
  var keys: Keys?, fault: EventRecordingError?
  /// The central's clock shows how much has been simulated. So the times in a recording are those of steps.
  private let clock = ManualClock()

  init(core: EventCentral.Core = .default) {
    world = EventCentral(core: core, clock: clock)
    pump = EventPump(on: world)
    app = App(on: world, pump: pump)
    app.start()
    // These closures are not `Sendable`, and use the game without a lock: the pump belongs to the loop that runs it.
    pump.addEventCallback { [unowned self] (event: Beginning) in app.seed(event.seed) }
    pump.addEventCallback { [unowned self] (input: Input) in press(input.key) }
    pump.addEventCallback { [unowned self] (_: Tick) in tick() }
    pump.addEventCallback { [unowned self] (event: Ending) in ending = ending ?? event.signal }
  }

  /// Without this, the game waits for the beginning of a recording.
  func begin(seed: UInt64) { Beginning(seed: seed).queue(priority: .highest, on: world) }
  func end(signal: Int32 = 0) { Ending(signal: signal).stack(priority: .highest, on: world) }

  /// One step, with the keys that a bot or a recording presses. All that happens in it happens inside `run`: first what
  /// ends the game, then alarms, then the keys that came since the last step, then the move of the world with what
  /// follows from it, and the sparks at the end (D1).
  func step() {
    keys?.press(in: self)
    pump.queueEvent(Tick())
    // Without a deadline: a frame may come late, but what happens in its step must not depend on time.
    pump.run()
    clock.advance(by: Self.step)
  }

  private func tick() {
    guard ending == nil else { return }
    app.screens.last?.tick()
    steps += 1
  }

  private func press(_ key: Key) {
    // Keys that came with the end of the terminal are not meant.
    guard ending == nil else { return }
    app.screens.last?.press(key)
    if app.hasQuit { ending = 0 }
  }

  var canvas: Canvas { app.screens.reduce(into: Canvas()) { canvas, screen in screen.draw(on: &canvas) } }

  /// The frame as text, to compare two runs: what is seen, and the state of the random numbers, which one number more
  /// in the past would have changed.
  var frame: String {
    let random = (app.screens.first as? PlayScreen)?.field.random.state ?? 0
    return (canvas.lines + ["steps \(steps) best \(app.best) random \(random)", ""]).joined(separator: "\n")
  }
}
