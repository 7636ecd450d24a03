// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

// A method of the MainActor can be called on the main queue alone.

struct Score: Eventable { var score = 0 }

@MainActor
final class Model {
  var score = 0
  func onScore(_ event: Score) { score = event.score }

  func register() {
    Score.addListener(self, onScore, executeOn: .listenerThread)  // expected-error {{loses global actor 'MainActor'}}
    Score.addListener(self, Model.onScore, executeOn: .listenerThread)  // expected-error {{ambiguous use of 'addListener}}
  }
}
