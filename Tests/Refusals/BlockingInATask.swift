// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

// A task cannot call a function that blocks its thread, but the form of it that suspends.

struct Score: Eventable { var score = 0 }

func end(
  _ thread: EventThread, _ pool: EventPool<EventThread>, _ handle: any EventListenerHandling,
  _ scope: EventListenerScope
) async {
  thread.drain()  // expected-error {{expression is 'async' but is not marked with 'await'}} expected-note {{call is 'async'}}
  pool.join()  // expected-error {{expression is 'async' but is not marked with 'await'}} expected-note {{call is 'async'}}
  handle.removeAndWait()  // expected-error {{'removeAndWait' is unavailable from asynchronous contexts; It blocks its thread: write await removed().}}
  scope.endAndWait()  // expected-error {{'endAndWait' is unavailable from asynchronous contexts; It blocks its thread: write await ended().}}
  EventPump().wait()  // expected-error {{'wait' is unavailable from asynchronous contexts}}
  _ = await thread.drain()
  await pool.join()
  await handle.removed()
  await scope.ended()
}
