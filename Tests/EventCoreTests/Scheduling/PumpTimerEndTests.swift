// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Synchronization
import Testing

@testable import EventCore

@Suite("Timers that end before a pump runs them, and pumps that end before their timers")
struct PumpTimerEndTests {
  struct Tick: Eventable {}

  @Test("wait(until:) goes on when the timer that it waited for was cancelled", arguments: cores)
  func cancelled(core: EventCentral.Core) async {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock, timers: .pumps)
    let handle = Tick().scheduleQueue(after: .seconds(1), on: central)
    let (isReady, results) = (Gate(), Log<Bool>())
    runThread {
      let pump = EventPump(on: central)
      pump.addEventCallback { (_: Tick) in }
      isReady.open()
      results.append(pump.wait())
      results.append(pump.run().handled == 1)
    }
    await offThePool { isReady.pass() }
    #expect(await yieldUntil { clock.sleepers == 1 })
    #expect(handle.cancel())
    clock.advance(by: .seconds(1))
    Tick().queue(on: central)
    await offThePool { _ = results.entries(atLeast: 2) }
    #expect(results.entries == [true, true])
  }

  @Test("a pump that has ended is told of no timer, and waits for none", arguments: cores)
  func ended(core: EventCentral.Core) {
    let central = EventCentral(core: core, clock: ManualClock(), timers: .pumps)
    let wakeUps = Atomic<Int>(0)
    func schedule() -> Int {
      let before = wakeUps.load(ordering: .relaxed)
      Tick().scheduleQueue(after: .seconds(1), on: central).cancel()
      return wakeUps.load(ordering: .relaxed) - before
    }
    let pump = EventPump(on: central, wakeUp: { wakeUps.add(1, ordering: .relaxed) })
    pump.run()
    #expect(pump.timeUntilTimer == nil)
    #expect(schedule() == 1)
    pump.cancel()
    #expect(schedule() == 0)
    pump.run()
    #expect(pump.timeUntilTimer == nil)
    #expect(schedule() == 0)
    let late = Tick().scheduleQueue(after: .seconds(1), on: central)
    #expect(pump.timeUntilTimer == nil)
    late.cancel()
  }
}
