// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("D4: how many events wait for callbacks that take the latest only")
struct WaitingCountTests {
  struct Ping: Eventable { var number = 0 }
  struct Other: Eventable {}

  @Test(
    "one event counts as one, in its own lane, whatever lanes the others were on", arguments: cores)
  func ofThread(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    thread.addEventCallback({ (_: Ping) in }, interestedIn: .latestOnly)
    thread.addEventCallback { (_: Other) in }
    let held = HeldThread(thread)
    #expect(thread.eventCount == 0)
    var others = 0
    for lanes in [TestLane.all, TestLane.all.reversed()] {
      for lane in lanes {
        Ping().dispatch(lane, on: central)
        #expect(thread.eventCount == 1 + others)
        #expect(
          TestLane.all.map { thread.eventCount(priority: $0.priority, method: $0.method) }
            == TestLane.all.map { ($0 == lane ? 1 : 0) + others / 10 })
      }
      for lane in lanes { Other().dispatch(lane, on: central) }
      others += 10
    }
    held.letGo()
    #expect(thread.drain())
    #expect(thread.eventCount == 0)
    #expect(thread.statistics == .init(delivered: 22, skipped: 19, cancelled: 0))
  }

  @Test("each callback's event counts for itself, also when the callback has ended", arguments: cores)
  func ofSeveral(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let handles = (0..<3).map { _ in
      thread.addEventCallback({ (_: Ping) in }, interestedIn: .latestOnly)
    }
    let held = HeldThread(thread)
    for lane in TestLane.all { Ping().dispatch(lane, on: central) }
    #expect(thread.eventCount == 3)
    #expect(handles[1].remove())
    #expect(thread.eventCount == 3)
    for lane in TestLane.all { Ping().dispatch(lane, on: central) }
    #expect(thread.eventCount == 3)
    held.letGo()
    #expect(thread.drain())
    #expect(thread.eventCount == 0)
  }

  @Test("one event counts as one in a shared pool, whatever lanes the others were on", arguments: cores)
  func ofSharedPool(core: EventCentral.Core) {
    let pool = EventPool<EventThread>(
      capacity: 2, balancer: EventPoolSharedBalancer(), on: EventCentral(core: core)
    ) { _ in
      let thread = EventThread()
      thread.addEventCallback({ (_: Ping) in }, interestedIn: .latestOnly)
      return thread
    }
    let held = pool.holdAll()
    for lane in TestLane.all + TestLane.all.reversed() {
      Ping().dispatch(lane, on: pool.central)
      #expect(pool.eventCount == 1)
    }
    held.forEach { $0.letGo() }
    #expect(pool.drain())
    #expect(pool.eventCount == 0)
  }

  @Test("D10: an event that a cancel drops is not counted as waiting any more", arguments: cores)
  func dropped(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    thread.addEventCallback({ (_: Ping) in }, interestedIn: .latestOnly)
    let held = HeldThread(thread)
    for lane in TestLane.all { Ping().dispatch(lane, on: central) }
    thread.cancel()
    held.letGo()
    thread.join()
    #expect(thread.eventCount == 0)
    #expect(thread.statistics == .init(delivered: 1, skipped: 9, cancelled: 1))
  }
}
