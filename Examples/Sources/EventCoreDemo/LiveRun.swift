// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// Runs the loop with an engine, and shows it on a live screen, or, without a terminal, in one line a second.
struct LiveRun {
  enum Ending: Equatable {
    case time
    case key
    case signal(Int32)
    case sensor
  }

  let engine: Engine
  /// The source of the samples, for the heading.
  let input: String
  /// When to end, in seconds; nil if the samples decide.
  let limit: Double?
  /// How many seconds it will take.
  let total: Double
  /// Whether to fire a burst at half time.
  let burst: Bool

  private var scene = Scene()
  private var telemetry: Telemetry
  private var screen: Screen?
  private var keyboard: Keyboard?
  private var note = ""
  private var hasFired = false
  private var secondsTold = 0

  init(_ engine: Engine, input: String, limit: Double?, total: Double, burst: Bool) {
    self.engine = engine
    self.input = input
    self.limit = limit
    self.total = total
    self.burst = burst
    telemetry = Telemetry(engine)
  }

  /// Runs until the time or the samples are over, or somebody asks for the end.
  mutating func run() -> (ending: Ending, counts: GameLoop) {
    if Output.isTerminal {
      screen = Screen()
      keyboard = Keyboard()
    }
    defer {
      keyboard?.restore()
      screen?.restore()
    }
    var loop = GameLoop()
    var ending = Ending.time
    engine.sensor.start()
    loop.run { time, counts in
      guard let end = frame(time, counts) else { return true }
      ending = end
      return false
    }
    return (ending, loop)
  }

  /// One frame. Returns why it was the last one; nil if it was not.
  private mutating func frame(_ time: UInt64, _ counts: GameLoop) -> Ending? {
    let seconds = Double(time) / Double(Clock.second)
    if let signal = Signals.take() { return .signal(signal) }
    if let limit, seconds >= limit { return .time }
    if engine.sensor.hasEnded { return .sensor }
    for key in keyboard?.keys() ?? [] {
      if let end = press(key) { return end }
    }
    if burst, !hasFired, seconds >= total / 2 {
      hasFired = true
      _ = press(.burst)
    }
    let state = engine.world.latest
    scene.step(towards: state)
    // Ten times a second is enough for a reader.
    if counts.frames % (GameLoop.rate / 10) == 0 {
      telemetry.look(at: time)
      draw(seconds, counts, state)
    }
    return nil
  }

  private mutating func press(_ key: Keyboard.Key) -> Ending? {
    switch key {
    case .quit: return .key
    case .interrupt: return .signal(Signals.interrupt)
    case .burst:
      note = engine.filler.fireBurst() ? "burst fired" : "the previous burst is not handled yet"
    case .raise: engine.filler.raiseLoad()
    case .lower: engine.filler.lowerLoad()
    }
    return nil
  }

  private mutating func draw(_ seconds: Double, _ counts: GameLoop, _ state: World.State) {
    if let screen {
      let dashboard = Dashboard(
        title: "EventCore demo   \(engine.central.core) core   \(input)", time: seconds, total: total,
        counts: counts, scene: scene, state: state, telemetry: telemetry, load: engine.filler.load,
        note: note)
      screen.show(dashboard.lines)
    } else if Int(seconds) > secondsTold {
      secondsTold = Int(seconds)
      Output.line(progress(counts, state))
    }
  }

  private func progress(_ counts: GameLoop, _ state: World.State) -> String {
    let all = telemetry.all
    let longest = all.count > 0 ? all.maximum : nil
    return right("\(secondsTold) s", 5) + right(grouped(telemetry.eventsPerSecond), 11)
      + " events/s"
      + "   p50 \(latency(all.percentile(0.5)))   p99 \(latency(all.percentile(0.99)))"
      + "   p99.9 \(latency(all.percentile(0.999)))   max \(latency(longest))"
      + "   waiting \(grouped(telemetry.depth))   late frames \(counts.late)   rate spikes \(state.spikes)"
  }
}
