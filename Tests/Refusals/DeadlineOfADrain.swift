// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

// A deadline is a DispatchTime, whose `now` is a function; a run of a pump takes an instant, whose `now` is none.

struct Score: Eventable { var score = 0 }

func drainAndSchedule(_ thread: EventThread, _ pool: EventPool<EventThread>) {
  pool.drain(until: .now + .seconds(3))  // expected-error {{'now' is unavailable: The time is a DispatchTime: write .now() + .seconds(3), with parentheses.}}
  Score().scheduleQueue(at: .now + .seconds(3), on: thread)  // expected-error {{'now' is unavailable}}
  Score().scheduleStack(every: .seconds(1), first: .now + .seconds(3))  // expected-error {{'now' is unavailable}}
  EventPump().run(until: .now + .milliseconds(2))
  thread.drain(until: .now() + .seconds(3))
  thread.drain(until: .now())
  thread.drain()
  Score().scheduleQueue(at: .now() + .seconds(3), on: thread)
  Score().scheduleQueue(at: thread.central.now + .seconds(3), on: thread)
  let clock = DispatchTime.now
  Score().scheduleStack(at: clock() + .seconds(3))
}

func drainInATask(_ thread: EventThread, _ world: EventCentral) async {
  if await world.drain(until: .now + .seconds(3)) {}  // expected-error {{'now' is unavailable}}
  await thread.drain(until: .now + .seconds(3))  // expected-error {{'now' is unavailable}}
  await thread.drain(until: .now() + .seconds(3))
  await world.listener.drain(until: world.now + .seconds(3))
  await world.drain()
}
