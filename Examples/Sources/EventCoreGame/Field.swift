// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// A shot of the ship, which goes up, or a bomb of a raider, which goes down.
struct Missile {
  var box: Box
  let speed: Int
  var isBomb: Bool { speed > 0 }
}

/// The simulated world: the root of the tree. The same seed and the same keys at the same steps give the same game,
/// bit for bit: it computes in steps and whole numbers, and never looks at a clock.
final class Field {
  static let (width, height) = (80, 44)
  let node: EventNode
  let ship: Ship
  private(set) var raiders: [Raider] = []
  private(set) var missiles: [Missile] = []
  private(set) var (time, score, wave) = (0, 0, 0)
  private(set) var random: SeededRandom
  private var squadrons: [Squadron] = []
  private var timers = Timers()
  private let (world, pump): (EventCentral, EventPump)
  private var callbacks: [any EventListenerHandling] = []

  init(on world: EventCentral, pump: EventPump, seed: UInt64) {
    (self.world, self.pump, random) = (world, pump, SeededRandom(seed: seed))
    node = EventNode(name: "field", core: world.core)
    ship = Ship(in: node)
    callbacks = [
      // Hits wait until everything has moved. Each is then raised at what was hit, and the tree decides.
      pump.addEventCallback { (hit: Hit) in hit.target.raise(event: hit, scope: .bubbling) },
      // A breach puts the shield up for a moment. If two bombs hit in one step, the second `Hit` waits in the pump
      // while the first one raises the alarm. Since alarms are stacked, the shield is up when it is handled.
      pump.addEventCallback { [unowned self] (alarm: Alarm) in onAlarm(alarm) },
      pump.addEventCallback { [unowned self] (_: ShieldFades) in ship.shield.fade() },
      pump.addEventCallback { [unowned self] (event: WaveBegins) in begin(event.wave) },
    ]
    node.addHandler(.onRaise, owner: self, Field.onDestroyed)
    // Out of the tree, for those who are not in it: the screen, and the callbacks above.
    node.dispatchEvents(of: Alarm.self, to: world, .onRaise, by: .stack, priority: .highest)
    node.dispatchEvents(of: Destroyed.self, to: world, .onRaise, by: .queue, priority: .low)
    timers.queue(WaveBegins(wave: 1), afterSteps: 60, on: world)
  }

  // The closures do not retain the field: after the removal none of them is called again (D6).
  deinit { for callback in callbacks { callback.remove() } }

  /// Moves everything by one step, and queues what comes of it.
  func tick() {
    time += 1
    timers.advance()
    if ship.hull > 0, ship.move() { launch(from: ship.box.at + .pixels(3, -1), speed: -28) }
    moveRaiders()
    for index in missiles.indices { missiles[index].box.at.y += missiles[index].speed }
    missiles.removeAll { !(-2 * pixel..<Self.height * pixel).contains($0.box.at.y) || strikes($0) }
  }

  private func moveRaiders() {
    let sway = abs(time % 320 - 160) - 80
    for squadron in squadrons { squadron.move(at: time) }
    for raider in raiders {
      raider.move(sway: sway, towards: ship.box, speed: min(9 + wave, 14))
      guard raider.isDiving, ship.hull > 0, raider.box.overlaps(ship.box) else { continue }
      // Both are hit, and neither knows of the other.
      pump.queueEvent(Hit(target: raider.node, damage: raider.hull))
      pump.queueEvent(Hit(target: ship.shield.node, damage: 1))
    }
    guard !raiders.isEmpty, random.below(max(16, 64 - 8 * wave)) == 0 else { return }
    let box = raiders[random.below(raiders.count)].box
    guard (0..<28 * pixel).contains(box.at.y) else { return }
    launch(from: Point(x: box.middle, y: box.at.y + 3 * pixel), speed: min(7 + wave, 12))
  }

  private func launch(from place: Point, speed: Int) {
    missiles.append(Missile(box: Box(at: place, width: 1, height: 2), speed: speed))
  }

  /// Queues a hit if something is where the missile is. Returns whether the missile is spent.
  private func strikes(_ missile: Missile) -> Bool {
    let raider = missile.isBomb ? nil : raiders.first { missile.box.overlaps($0.box) }
    let isAtShip = missile.isBomb && ship.hull > 0 && missile.box.overlaps(ship.box)
    guard let target = isAtShip ? ship.shield.node : raider?.node else { return false }
    return pump.queueEvent(Hit(target: target, damage: 1))
  }

  private func onAlarm(_ alarm: Alarm) {
    guard case .hullBreached = alarm else { return }
    ship.shield.raise()
    timers.queue(ShieldFades(), afterSteps: 120, on: world)
  }

  private func begin(_ wave: Int) {
    self.wave = wave
    squadrons = [29, 6, 52].prefix(wave).map { Squadron(in: node, column: $0) }
    raiders = squadrons.flatMap { squadron in (0..<7).map { Raider(in: squadron, number: $0) } }
  }

  /// Every end of an object in the tree comes by here, last of all.
  private func onDestroyed(_ event: Destroyed) {
    guard event.kind != .ship else {
      // Screens are no part of the tree. The timer queues this on the central, from where it enters the coordinators.
      return timers.queue(Navigation.over(score: score, wave: wave), afterSteps: 120, on: world)
    }
    score += event.kind == .leader ? 150 : 50
    // A raider's node ends with the raider. The event on its way, which has left that node, is not disturbed.
    raiders.removeAll { $0.hull <= 0 }
    if raiders.isEmpty { timers.queue(WaveBegins(wave: wave + 1), afterSteps: 120, on: world) }
  }
}
