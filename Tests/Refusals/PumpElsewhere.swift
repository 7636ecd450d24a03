// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

// A pump belongs to its loop. Its closures use what the loop uses, and neither may go elsewhere.

struct Hit: Eventable { var damage = 0 }

final class Game {
  var damage = 0
}

func confined(_ world: EventCentral) {
  let (pump, game) = (EventPump(on: world), Game())
  pump.addEventCallback { (hit: Hit) in game.damage += hit.damage }
  pump.addEventCallback(
    { (hit: Hit, _, _) in game.damage += hit.damage }, interestedIn: .custom,
    customFilter: { _, _, _ in game.damage < 100 })
  pump.run(until: .now + .milliseconds(2))
  print(game.damage)
}

func movedWithItsGame(_ world: EventCentral) {
  let (pump, game) = (EventPump(on: world), Game())
  pump.addEventCallback { (hit: Hit) in game.damage += hit.damage }
  Task { _ = pump.run() }
}

func leftBehind(_ world: EventCentral) {
  let (pump, game) = (EventPump(on: world), Game())
  pump.addEventCallback { (hit: Hit) in game.damage += hit.damage }
  Task { _ = pump.run() }  // expected-error {{sending value of non-Sendable type '() async -> ()' risks causing data races}} expected-note {{Passing value of non-Sendable type}}
  print(game.damage)  // expected-note {{access can happen concurrently}}
}
