// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

// A method that is called elsewhere cannot be one of an object that is not Sendable.

struct Score: Eventable { var score = 0 }

final class Model {  // expected-note {{class 'Model' does not conform to the 'Sendable' protocol}}
  var score = 0
  func onScore(_ event: Score) { score = event.score }
  func onTimedScore(_ event: Score, _ priority: EventPriority, _ dispatchTime: DispatchTime) {}

  func register() {
    Score.addListener(self, onScore, executeOn: .listenerThread)  // expected-error {{converting non-Sendable function value to '@Sendable (Score) -> Void' may introduce data races}}
    Score.addListener(self, onTimedScore, executeOn: .main)  // expected-error {{converting non-Sendable function value to '@Sendable (Score, EventPriority, DispatchTime) -> Void'}}
    Score.addListener(self, Model.onScore, executeOn: .listenerThread)  // expected-error {{type 'Model' does not conform to the 'Sendable' protocol}}
  }
}
