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

  struct Numbered: Eventable { let number: Int }

  @Test("the largest number is no mistake", arguments: cores)
  func largest(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    for policy in [EventOverflowPolicy.refuse, .dropNewest, .dropOldest, .block(upTo: .seconds(1))] {
      let (pump, log) = (EventPump(on: central, mailbox: .bounded(.max, whenFull: policy)), Log<Int>())
      pump.addEventCallback { (event: Numbered) in log.append(event.number) }
      #expect((0..<3).map { Numbered(number: $0).queue(on: central) } == [1, 1, 1])
      pump.run()
      #expect(log.entries == [0, 1, 2])
      pump.cancel()
      pump.run()
    }
  }
}
