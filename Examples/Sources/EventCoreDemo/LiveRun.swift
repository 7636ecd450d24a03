// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import TerminalScreen

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

  /// The loop's mailbox: what the threads tell the loop waits here for its next frame.
  let pump: EventPump
  private let world: World
  private var scene = Scene()
  private var telemetry: Telemetry
  private var terminal: Terminal?
  private var note = ""
  private var hasFired = false
  private var secondsTold = 0

  init(_ engine: Engine, input: String, limit: Double?, total: Double, burst: Bool) {
    self.engine = engine
    self.input = input
    self.limit = limit
    self.total = total
    self.burst = burst
    pump = EventPump(on: engine.central)
    world = World(following: pump)
    telemetry = Telemetry(engine)
  }

  /// Runs until the time or the samples are over, or somebody asks for the end.
  mutating func run() -> (ending: Ending, counts: GameLoop) {
    terminal = Terminal()
    defer { terminal?.restore() }
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
    let keys: [UInt8]
    switch terminal?.read(until: .now) {
    case .ending(let signal): return .signal(signal)
    case .bytes(let bytes): keys = bytes
    case nil:
      if let signal = Signals.take() { return .signal(signal) }
      keys = []
    }
    if let limit, seconds >= limit { return .time }
    if engine.sensor.hasEnded { return .sensor }
    for key in keys {
      if press(key) { return .key }
    }
    if burst, !hasFired, seconds >= total / 2 {
      hasFired = true
      fireBurst()
    }
    // Half of the frame is for events at most; what is left then keeps its order for the next one.
    pump.run(until: .now + .seconds(1) / (2 * GameLoop.rate))
    scene.step(towards: world)
    // Ten times a second is enough for a reader.
    if counts.frames % (GameLoop.rate / 10) == 0 {
      telemetry.look(at: time)
      draw(seconds, counts)
    }
    return nil
  }

  /// Returns whether the key ends the run.
  private mutating func press(_ key: UInt8) -> Bool {
    switch key {
    case UInt8(ascii: "q"), UInt8(ascii: "Q"): return true
    case UInt8(ascii: "b"), UInt8(ascii: "B"): fireBurst()
    case UInt8(ascii: "+"), UInt8(ascii: "="): engine.filler.raiseLoad()
    case UInt8(ascii: "-"), UInt8(ascii: "_"): engine.filler.lowerLoad()
    default: break
    }
    return false
  }

  private mutating func fireBurst() {
    note = engine.filler.fireBurst() ? "burst fired" : "the previous burst is not handled yet"
  }

  private mutating func draw(_ seconds: Double, _ counts: GameLoop) {
    if let terminal {
      let dashboard = Dashboard(
        title: "EventCore demo   \(engine.central.core) core   \(input)", time: seconds, total: total,
        counts: counts, scene: scene, state: world, telemetry: telemetry, load: engine.filler.load,
        note: note)
      terminal.show(lines: dashboard.lines)
    } else if Int(seconds) > secondsTold {
      secondsTold = Int(seconds)
      Output.line(progress(counts))
    }
  }

  private func progress(_ counts: GameLoop) -> String {
    let all = telemetry.all
    let longest = all.count > 0 ? all.maximum : nil
    return right("\(secondsTold) s", 5) + right(grouped(telemetry.eventsPerSecond), 11)
      + " events/s"
      + "   p50 \(latency(all.percentile(0.5)))   p99 \(latency(all.percentile(0.99)))"
      + "   p99.9 \(latency(all.percentile(0.999)))   max \(latency(longest))"
      + "   waiting \(grouped(telemetry.depth))   late frames \(counts.late)   rate spikes \(world.spikes)"
  }
}
