// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

// A handler of a tree runs on the thread that raises: its owner is Sendable, and its method is on no actor.

struct Score: Eventable { var score = 0 }

final class Model {  // expected-note {{class 'Model' does not conform to the 'Sendable' protocol}}
  var score = 0
  func onScore(_ event: Score) { score = event.score }
}

@MainActor
final class Screen {
  var score = 0
  func onScore(_ event: Score) { score = event.score }
}

func register(_ node: EventNode, _ model: Model, _ screen: Screen) {
  node.addHandler(owner: model, Model.onScore)  // expected-error {{type 'Model' does not conform to the 'Sendable' protocol}}
  node.addHandler(owner: screen, Screen.onScore)  // expected-error {{ambiguous use of 'addHandler}}
  node.addHandler(executeOn: MainActor.shared) { (event: Score) in screen.onScore(event) }
}
