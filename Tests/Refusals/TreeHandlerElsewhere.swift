// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

// A handler of a tree runs on the thread that raises: its method is on no actor. An owner that is not Sendable belongs to
// the place where the handler is added, which is looked at when it is called.

struct Score: Eventable { var score = 0 }

final class Model {
  var score = 0
  func onScore(_ event: Score) { score = event.score }
}

@MainActor
final class Screen {
  var score = 0
  func onScore(_ event: Score) { score = event.score }
}

func register(_ node: EventNode, _ model: Model, _ screen: Screen) {
  node.addHandler(owner: model, Model.onScore)
  node.addHandler(owner: screen, Screen.onScore)  // expected-error {{ambiguous use of 'addHandler}}
  node.addHandler(executeOn: MainActor.shared) { (event: Score) in screen.onScore(event) }
}
