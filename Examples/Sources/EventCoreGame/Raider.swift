// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// A leader and six raiders in formation. Its node is the parent of theirs: what happens to one of them bubbles through
/// here, and what concerns them all is propagated from here.
final class Squadron {
  let node: EventNode
  private(set) var anchor: Point

  init(in field: EventNode, column: Int) {
    node = EventNode(parent: field, name: "squadron")
    anchor = .pixels(column, -20)
    node.addHandler(.onRaise, owner: self, Squadron.onDestroyed)
  }

  /// It arrives fast, and then comes nearer slowly.
  func move(at time: Int) {
    if anchor.y < 2 * pixel { anchor.y += 10 } else if anchor.y < 22 * pixel, time % 5 == 0 { anchor.y += 1 }
  }

  private func onDestroyed(_ event: Destroyed) {
    guard event.kind == .leader else { return }
    // Down to this squadron's raiders, which are its children; the other squadrons keep their formation.
    node.propagate(event: BreakFormation())
    // And up, to whoever is responsible for alarms.
    node.raise(event: Alarm.raidersDiving, scope: .bubbling)
  }
}

/// One of them, or their leader, which has number 0.
final class Raider {
  let node: EventNode
  let isLeader: Bool
  private(set) var box: Box
  private(set) var hull: Int
  private let (squadron, number): (Squadron, Int)
  /// How many steps there are until it dives; nil while it keeps its place.
  private var delay: Int?
  var isDiving: Bool { delay.map { $0 <= 0 } ?? false }

  init(in squadron: Squadron, number: Int) {
    (self.squadron, self.number, isLeader, hull) = (squadron, number, number == 0, number == 0 ? 2 : 1)
    box = Box(at: squadron.anchor, width: isLeader ? 7 : 5, height: isLeader ? 4 : 3)
    node = EventNode(parent: squadron.node, name: isLeader ? "leader" : "raider")
    node.addHandler(.onRaise, owner: self, Raider.onHit)
    node.addHandler(.onPropagate, owner: self, Raider.onBreakFormation)
  }

  /// Moves on by a step: with its squadron, or down at the ship.
  func move(sway: Int, towards ship: Box, speed: Int) {
    delay = delay.map { $0 - 1 }
    guard isDiving else {
      let slot = isLeader ? Point.pixels(7, 0) : .pixels((number - 1) % 3 * 8, (number - 1) / 3 * 4 + 5)
      box.at = squadron.anchor + slot + Point(x: sway, y: 0)
      return
    }
    box.at.y += speed
    if box.at.y < ship.at.y - 6 * pixel { box.at.x += min(max(ship.middle - box.middle, -6), 6) }
    // One that has missed comes again from above.
    if box.at.y > Field.height * pixel { box.at.y = -box.height * pixel }
  }

  private func onHit(_ hit: Hit) {
    guard hull > 0 else { return }
    hull -= hit.damage
    // It bubbles to the squadron, which may have lost its leader, and to the field, which counts.
    if hull <= 0 { node.raise(event: Destroyed(kind: isLeader ? .leader : .raider, at: box.at), scope: .bubbling) }
  }

  private func onBreakFormation(_ event: BreakFormation) { delay = number * 24 }
}
