// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("Scheduling: a cancel while the event is dispatched")
struct ScheduleCancelRaceTests {
  private final class Ending: Sendable {
    let began = Gate()
    let mayEnd = Gate()
    deinit {
      began.open()
      mayEnd.pass()
    }
  }
  private struct Held: Eventable { let ending: Ending }

  /// Holds a dispatch in its balancer, which is a user's code.
  private struct Standing: EventPoolBalancing {
    let entered = Gate()
    let leave = Gate()
    func chooseThread(for choice: borrowing EventPoolChoice) -> Int {
      entered.open()
      leave.pass()
      return 0
    }
  }

  @Test("D5, D6: a cancel waits for the dispatch, and not for the end of the event", arguments: cores)
  func endsAfterwards(core: EventCentral.Core) {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock)
    let balancer = Standing()
    let pool = EventPool(capacity: 2, balancer: balancer, on: central) { _ in
      let thread = EventThread()
      thread.addEventCallback { (_: Held) in }
      return thread
    }
    let (began, mayEnd): (Gate, Gate)
    let handle: EventScheduleHandle
    do {
      let ending = Ending()
      (began, mayEnd) = (ending.began, ending.mayEnd)
      handle = Held(ending: ending).scheduleQueue(every: .nanoseconds(1), on: central)
    }
    runThread { clock.advance(by: .nanoseconds(1)) }
    balancer.entered.pass()
    // Nobody takes the event, so that the schedule has the last reference to what it carries.
    pool.cancel()
    pool.join()
    let cancelled = Gate()
    runThread {
      #expect(handle.cancel())
      cancelled.open()
    }
    #expect(waitUntil { handle.state == .cancelled })
    #expect(!cancelled.passIfOpen())
    balancer.leave.open()
    #expect(cancelled.pass())
    #expect(began.pass())
    mayEnd.open()
    #expect(waitUntil { central.scheduleStatistics.pending == 0 })
  }

  @Test("D6: nothing is dispatched after cancel() has returned", arguments: cores)
  func nothingAfterwards(core: EventCentral.Core) {
    struct Tick: Eventable {}
    for _ in 0..<shortened(2_000) {
      let clock = ManualClock()
      let central = EventCentral(core: core, clock: clock)
      // This thread dispatches the first event.
      let handle = Tick().scheduleQueue(
        every: .nanoseconds(1), first: central.now, policy: .catchUp, on: central)
      let (ready, done) = (Gate(), Gate())
      runThread {
        ready.open()
        for _ in 0..<20 { clock.advance(by: .nanoseconds(1)) }
        done.open()
      }
      ready.pass()
      #expect(handle.cancel())
      let dispatches = handle.dispatches
      done.pass()
      #expect(handle.dispatches == dispatches)
    }
  }
}
