// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("What a scheduler tells the loops that run its timers")
struct TimerLoopTests {
  private struct Tick: Eventable {}

  private final class ToldLoop: TimerLoop {
    let deadlines = Log<UInt64>()
    func noteTimer(at deadline: UInt64) { deadlines.append(deadline) }
  }

  @Test("loops are told of the earliest deadline alone, and of what was set again after it fired", arguments: cores)
  func earliest(core: EventCentral.Core) {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock, timers: .pumps)
    let pump = EventPump(on: central)
    let told = ToldLoop()
    central.scheduler.add(told)

    Tick().scheduleQueue(after: .seconds(10), on: central)
    #expect(told.deadlines.take().count == 1)
    for seconds in 10..<20 { Tick().scheduleQueue(after: .seconds(seconds), on: central) }
    #expect(told.deadlines.take().count == 1, "a later deadline was told, too; only the one of the same time should be")
    for _ in 0..<3 { pump.run() }
    #expect(told.deadlines.take() == [], "runs in which nothing fires were told")

    let tick = Tick().scheduleQueue(every: .seconds(1), on: central)
    #expect(told.deadlines.take().count == 1)
    clock.advance(by: .seconds(1))
    pump.run()
    #expect(told.deadlines.take().count == 1)
    #expect(tick.cancel())

    central.scheduler.remove(told)
    Tick().scheduleQueue(after: .milliseconds(1), on: central)
    #expect(told.deadlines.take() == [])
  }

  /// Holds the thread that tells it of one deadline.
  private final class HoldingLoop: TimerLoop {
    let held: UInt64
    let isHeld = Gate()
    let goesOn = Gate()
    init(_ held: UInt64) { self.held = held }
    func noteTimer(at deadline: UInt64) {
      guard deadline == held else { return }
      isHeld.open()
      goesOn.pass()
    }
  }

  @Test("D5: loops are told of a deadline though another thread is held up before it has told of an earlier one")
  func heldUp() async {
    for core in EventCentral.Core.available {
      let central = EventCentral(core: core, clock: ManualClock(), timers: .pumps)
      let early = central.scheduler.now + 1_000_000_000
      let (holding, told, hasTold) = (HoldingLoop(early), ToldLoop(), Gate())
      central.scheduler.add(holding)
      runThread {
        Tick().scheduleQueue(after: .seconds(1), on: central)
        hasTold.open()
      }
      await offThePool { holding.isHeld.pass() }
      // It came after the held thread has listed the loops.
      central.scheduler.add(told)
      Tick().scheduleQueue(after: .seconds(2), on: central)
      #expect(told.deadlines.take() == [early + 1_000_000_000])
      holding.goesOn.open()
      await offThePool { hasTold.pass() }
      Tick().scheduleQueue(after: .seconds(3), on: central)
      #expect(told.deadlines.take() == [])
    }
  }
}
