// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

/// Each mistake is made in a process of its own.
@Suite("D12: mistakes in scheduling trap")
struct ScheduleTrapTests {
  struct Ping: Eventable {}

  @Test("an interval of zero")
  func zeroInterval() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      Ping().scheduleQueue(every: .zero, on: EventCentral())
    }
    expectMessage(result, "repeats after a time that is greater than 0")
  }

  @Test("a negative interval")
  func negativeInterval() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      Ping().scheduleStack(every: .seconds(-1), on: EventCentral(core: .locking))
    }
    expectMessage(result, "repeats after a time that is greater than 0")
  }

  @Test("a limit below one")
  func noLimit() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      Ping().scheduleQueue(every: .seconds(1), limit: 0, on: EventCentral())
    }
    expectMessage(result, "A limit is how often an event is dispatched")
  }
}
