// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

/// Each mistake is made in a process of its own.
@Suite("D12: mistakes with pumps trap")
struct EventPumpTrapTests {
  struct Ping: Eventable {}

  static func pump(_ isLocking: Bool) -> EventPump {
    EventPump(on: EventCentral(core: isLocking ? .locking : .default))
  }

  @Test("a limit below zero", arguments: cores)
  func negativeLimit(core: EventCentral.Core) async {
    let isLocking = core == .locking
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      [isLocking = isLocking as Bool] in
      EventPumpTrapTests.pump(isLocking).run(limit: -1)
    }
    expectMessage(result, "is the number of events to handle at most, and this one is -1: pass 0 or more")
  }

  @Test("a run inside a callback of the same pump", arguments: cores)
  func runInside(core: EventCentral.Core) async {
    let isLocking = core == .locking
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      [isLocking = isLocking as Bool] in
      let pump = EventPumpTrapTests.pump(isLocking)
      pump.addEventCallback { (_: Ping) in pump.run() }
      pump.queueEvent(Ping())
      pump.run()
    }
    expectMessage(result, "was called inside a callback of the same pump: return from the callback")
  }

  @Test("two threads at once, which only unsafe code can be", arguments: cores)
  func twoThreads(core: EventCentral.Core) async {
    let isLocking = core == .locking
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      [isLocking = isLocking as Bool] in
      // On two threads at once: that is the mistake which has to trap.
      nonisolated(unsafe) let pump = EventPumpTrapTests.pump(isLocking)
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
