// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// The player's ship. In the tree it is `field/ship/shield`: a hit is raised at the shield, the outermost part, and
/// bubbles inwards until somebody consumes it.
final class Ship {
  let node: EventNode
  let shield: Shield
  private(set) var box = Box(at: .pixels(36, 38), width: 7, height: 4)
  private(set) var hull = 3
  /// -1 to the left, 1 to the right. Terminals do not tell when a key is released, so the ship keeps its course.
  var course = 0
  /// For how many steps the guns fire: longer than a keyboard waits before it repeats a key.
  private var trigger = 0

  init(in field: EventNode) {
    node = EventNode(parent: field, name: "ship")
    shield = Shield(around: node)
    // By owner: the node does not retain the ship, and the handler ends with it.
    node.addHandler(.onRaise, owner: self, Ship.onHit)
  }

  /// The remainder keeps the time between two shots.
  func pullTrigger() { trigger = 36 + trigger % 9 }

  /// Moves on by a step. Returns whether the guns fire.
  func move() -> Bool {
    box.at.x = min(max(0, box.at.x + course * 12), (Field.width - box.width) * pixel)
    trigger = max(0, trigger - 1)
    return trigger % 9 == 8
  }

  private func onHit(_ hit: Hit) {
    guard hull > 0 else { return }
    hull -= hit.damage
    // The ship tells the tree what has happened to it. What that means for the game is not its business.
    if hull > 0 {
      node.raise(event: Alarm.hullBreached(left: hull), scope: .bubbling)
    } else {
      node.raise(event: Destroyed(kind: .ship, at: box.at), scope: .bubbling)
    }
  }
}

/// While it is up, it consumes the hits that come to the ship.
final class Shield {
  let node: EventNode
  private var handler: EventNodeHandle?
  var isUp: Bool { handler != nil }

  init(around ship: EventNode) { node = EventNode(parent: ship, name: "shield") }

  /// A consumed event does not climb on to the ship. While the shield is down there is no handler, and every hit goes
  /// through: no flag to look at, and none to forget.
  func raise() { handler = node.addHandler([.onRaise, .consumeEvent], owner: self, Shield.absorb) }

  func fade() {
    handler?.remove()
    handler = nil
  }

  private func absorb(_ hit: Hit) {}
}
