// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

/// Each mistake is made in a process of its own.
@Suite("D12: mistakes with pumps trap")
struct EventPumpTrapTests {
  struct Ping: Eventable {}

  @Test("a limit below zero")
  func negativeLimit() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      EventPump(on: EventCentral()).run(limit: -1)
    }
    expectMessage(result, "is the number of events to handle at most, and this one is -1: pass 0 or more")
  }

  @Test("a run inside a callback of the same pump")
  func runInside() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let pump = EventPump(on: EventCentral())
      pump.addEventCallback { (_: Ping) in pump.run() }
      pump.queueEvent(Ping())
      pump.run()
    }
    expectMessage(result, "was called inside a callback of the same pump: return from the callback")
  }

  @Test("two threads at once, which only unsafe code can be")
  func twoThreads() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      nonisolated(unsafe) let pump = EventPump(on: EventCentral(core: .locking))
      let (entered, never) = (Gate(), Gate())
      pump.addEventCallback { (_: Ping) in
        entered.open()
        never.pass()
      }
      pump.queueEvent(Ping())
      runThread {
        entered.pass()
        pump.run()
      }
      pump.run()
    }
    expectMessage(result, "run by one thread at a time, and another thread is running this one")
  }
}
