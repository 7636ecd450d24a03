// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("D12: mistakes with bounds trap")
struct BoundedMailboxTrapTests {
  @Test("a capacity of zero")
  func zero() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = EventPump(on: EventCentral(), mailbox: .bounded(0, whenFull: .refuse))
    }
    expectMessage(result, "holds at least one event, and this one was to hold 0: pass 1 or more")
  }

  @Test("a wait of less than no time")
  func negativeWait() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = EventThread(on: EventCentral(), mailbox: .bounded(1, whenFull: .block(upTo: .seconds(-1))))
    }
    expectMessage(result, "waits for a time, and this one is -1.0 seconds: pass .zero or more")
  }

  @Test("a bound for a thread of a pool")
  func threadOfPool() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = EventPool(on: EventCentral()) { _ in
        EventThread(mailbox: .bounded(1, whenFull: .refuse))
      }
    }
    expectMessage(result, "pass the bound to the EventPool, and none to its threads")
  }
}
