// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

// A filter beside a method runs where the method does, so that it cannot ask the MainActor.

struct Score: Eventable { var score = 0 }

@MainActor
final class Model {
  nonisolated func onScore(_ event: Score) {}
  func wants(_ event: Score) -> Bool { event.score > 0 }  // expected-note 2 {{calls to instance method 'wants' from outside of its actor context are implicitly asynchronous}}
}

func register(_ model: Model) {
  Score.addListener(
    model, Model.onScore, executeOn: .listenerThread, interestedIn: .custom,
    customFilter: { model, event, _, _ in
      model.wants(event)  // expected-error {{call to main actor-isolated instance method 'wants' in a synchronous nonisolated context}}
    })
  Score.addListener(
    model, Model.onScore, interestedIn: .custom,
    customFilter: { model, event, _, _ in
      model.wants(event)  // expected-error {{call to main actor-isolated instance method 'wants' in a synchronous nonisolated context}}
    })
}
