// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import TerminalScreen

/// Shows a field, and passes keys to its ship. Its own sparks and messages do not influence the field.
final class PlayScreen: Screen {
  let field: Field
  private var message = (text: "", colour: UInt8(0), until: 0)
  private var sparks: [(at: Point, velocity: Point, until: Int)] = []
  private var callbacks: [any EventListenerHandling] = []

  init(on world: EventCentral, pump: EventPump, seed: UInt64) {
    field = Field(on: world, pump: pump, seed: seed)
    super.init()
    // The field has callbacks for the same events. Each gets every event once (D4), and none knows of another.
    callbacks = [
      pump.addEventCallback { [unowned self] (alarm: Alarm) in
        switch alarm {
        case .hullBreached(let left): show("HULL BREACHED: \(left) LEFT", 196)
        case .raidersDiving: show("RAIDERS DIVING", 208)
        }
      },
      pump.addEventCallback { [unowned self] (event: Destroyed) in burst(at: event.at + .pixels(3, 1)) },
      pump.addEventCallback { [unowned self] (event: WaveBegins) in show("W A V E   \(event.wave)", 226) },
    ]
  }

  deinit { for callback in callbacks { callback.remove() } }

  override func press(_ key: Key) {
    switch key {
    case .left: field.ship.course = -1
    case .stop: field.ship.course = 0
    case .right: field.ship.course = 1
    case .fire: field.ship.pullTrigger()
    case .pause, .suspend: emitEvent(Navigation.pause)
    case .quit: emitEvent(Navigation.title)
    case .start: break
    }
  }

  override func tick() {
    field.tick()
    sparks = sparks.compactMap { $0.until > field.time ? ($0.at + $0.velocity, $0.velocity, $0.until) : nil }
  }

  private func show(_ text: String, _ colour: UInt8) { message = (text, colour, field.time + 90) }

  private func burst(at place: Point) {
    for (x, y) in [(0, -9), (6, -6), (9, 0), (6, 6), (0, 9), (-6, 6), (-9, 0), (-6, -6), (3, -3), (-3, 3)] {
      sparks.append((place, Point(x: x, y: y), field.time + 14 + abs(x) * 2))
    }
  }

  override func draw(on canvas: inout Canvas) {
    let (time, ship) = (field.time, field.ship)
    for star in 0..<42 {  // In three layers, the nearer the faster.
      canvas.plot((star * 37 + 11) % 80, (star * 29 + time * (star % 3 + 1) / 12) % 44, UInt8(234 + star % 3 * 3))
    }
    for missile in field.missiles {
      canvas.draw(["a", "b"], at: missile.box.at.pixels, missile.isBomb ? ["a": 88, "b": 197] : ["a": 159, "b": 159])
    }
    for raider in field.raiders {
      let colours: [Character: UInt8] = ["a": raider.isLeader ? 171 : raider.isDiving ? 208 : 77, "b": 196]
      canvas.draw(Self.shapes[time / 16 % 2][raider.isLeader ? 1 : 0], at: raider.box.at.pixels, colours)
    }
    for spark in sparks { canvas.draw(["a"], at: spark.at.pixels, ["a": spark.until - time > 10 ? 226 : 202]) }
    if ship.hull > 0 {
      let shape = ship.shield.isUp ? [".sssss.", "s..a..s"] : [".......", "...a..."]
      canvas.draw(
        shape + ["..aba..", "aaabaaa", "a.c.c.a"], at: (ship.box.at + .pixels(0, -1)).pixels,
        ["a": 255, "b": 39, "c": 208, "s": 51])
    }
    canvas.write("SCORE \(field.score)", row: 0, column: 1)
    canvas.write("WAVE \(field.wave)", row: 0, 250)
    canvas.write("HULL " + String(repeating: "♥", count: ship.hull), row: 0, column: 71, 203)
    canvas.write(Card.keysText, row: 23, 240)
    if message.until > time, time / 8 % 4 != 3 { canvas.write(message.text, row: 11, message.colour) }
  }

  /// Of a raider and of a leader, with their wings up and with their wings down.
  private static let shapes = [
    [["a.b.a", ".aaa.", "..a.."], ["a.aaa.a", "aabbbaa", ".aaaaa.", "...a..."]],
    [["..b..", "aaaaa", "..a.."], ["..aaa..", ".abbba.", "aaaaaaa", "a..a..a"]],
  ]
}
