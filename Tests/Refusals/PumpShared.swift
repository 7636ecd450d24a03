// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

// A closure that may run anywhere cannot run a pump.

func shared(_ pump: EventPump) {
  let elsewhere: @Sendable () -> Void = { _ = pump.run() }  // expected-error {{capture of 'pump' with non-Sendable type 'EventPump' in a '@Sendable' closure}}
  elsewhere()
}
