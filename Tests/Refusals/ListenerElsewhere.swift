// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

// A closure that is called elsewhere cannot touch what belongs to its actor.

struct Score: Eventable { var score = 0 }

@MainActor
final class Model {
  // expected-note@+1 {{mutation of this property is only permitted within the actor}}
  var score = 0  // expected-note {{property declared here}}

  func register() {
    Score.addListener(self, executeOn: .listenerThread) { [weak self] event in
      self?.score = event.score  // expected-error {{main actor-isolated property 'score' can not be mutated from a Sendable closure}}
    }
    Score.addListener(
      self, executeOn: .taskThread, interestedIn: .custom,
      customFilter: { [weak self] _, _, _ in
        self?.score == 1  // expected-error {{main actor-isolated property 'score' can not be referenced from a Sendable closure}}
      }
    ) { _ in }
  }
}
