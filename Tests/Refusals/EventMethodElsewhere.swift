// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

// An event method that is called elsewhere cannot touch what belongs to the MainActor or to one thread.

struct Score: Eventable { var score = 0 }

@MainActor
final class Model {
  var score = 0  // expected-note {{mutation of this property is only permitted within the actor}}

  @EventMethod<Model, Score>(executeOn: .listenerThread)
  private var onScore = { (self, event, priority, dispatchTime) in
    self.score = event.score  // expected-error {{main actor-isolated property 'score' can not be mutated from a Sendable closure}}
  }
}

final class Plain {  // expected-note {{class 'Plain' does not conform to the 'Sendable' protocol}}
  var score = 0

  @EventMethod<Plain, Score>(executeOn: .listenerThread)  // expected-error {{type 'Plain' does not conform to the 'Sendable' protocol}}
  private var onScore = { (self, event, priority, dispatchTime) in
    self.score = event.score
  }
}
