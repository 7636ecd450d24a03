// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// What a callback without `executeOn:` captures may be sent elsewhere after its registration: the compiler does not see
// that the registration keeps it, and accepts this race. A compiler that refuses it is better, and this file goes then.

import EventCore

struct Hit: Eventable {}

final class Count {
  var value = 0
}

@MainActor
func race(on world: EventCentral) {
  let count = Count()
  Hit.addListener(nil, { _ in count.value += 1 }, on: world)
  Task.detached { count.value += 1 }
}
