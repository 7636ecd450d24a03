// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

// The state of a worker is sent to its thread: whoever made it cannot use it any more.

struct Hit: Eventable { var damage = 0 }

final class Bodies {
  var damage = 0
}

func sent(_ world: EventCentral) -> EventWorker<Bodies> {
  let bodies = Bodies()
  return EventWorker(on: world, state: bodies) { on in
    on(Hit.self) { bodies, hit in bodies.damage += hit.damage }
  }
}

func usedAgain(_ world: EventCentral) -> EventWorker<Bodies> {
  let bodies = Bodies()
  let worker = EventWorker(on: world, state: bodies) { on in  // expected-error {{sending 'bodies' risks causing data races}} expected-note {{used after being passed as a 'sending' parameter}}
    on(Hit.self) { bodies, hit in bodies.damage += hit.damage }
  }
  print(bodies.damage)  // expected-note {{access can happen concurrently}}
  return worker
}

func usedElsewhere(_ world: EventCentral, _ bodies: Bodies) -> EventWorker<Bodies> {
  EventWorker(on: world, state: bodies) { _ in }  // expected-error {{sending 'bodies' risks causing data races}} expected-note {{passed as a 'sending' parameter}}
}
