// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

extension StatisticsTests {
  @Test("an event that a shared mailbox accepted is not counted by the worker that takes it", arguments: cores)
  func sharedMailbox(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let observation = central.observe()
    let pool = EventPool(capacity: 2, balancer: EventPoolSharedBalancer(), on: central) { _ in
      let thread = EventThread()
      thread.addEventCallback({ (_: Step) in }, forEventType: Step.self)
      return thread
    }
    for number in 0..<20 { Step(number: number).queue(on: central) }
    #expect(pool.drain())
    let receivers = central.statistics.receivers
    #expect(receivers.map(\.mailbox.accepted).reduce(0, +) == 20)
    #expect(receivers.map(\.counts.delivered).reduce(0, +) == 20)
    observation.end()
  }
}
