// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("Scheduling: cancelling, and the ownership of events and centrals")
struct ScheduleCancelTests {
  typealias Number = ScheduleWorld.Number
  struct Owned: Eventable { var token: Lifetime.Token }

  @Test("a cancel says whether it was in time", arguments: cores)
  func inTime(core: EventCentral.Core) {
    let world = ScheduleWorld(core)
    let (one, two) = (
      Number(value: 1).scheduleQueue(after: .nanoseconds(5), on: world.central),
      Number(value: 2).scheduleQueue(after: .nanoseconds(5), on: world.central)
    )
    #expect(one.cancel())
    #expect(!one.cancel())
    #expect(one.state == .cancelled)
    world.clock.advance(by: .nanoseconds(5))
    #expect(!two.cancel())
    #expect(two.state == .dispatched)
    #expect(!Number(value: 3).scheduleQueue(after: .zero, on: world.central).cancel())
    #expect(world.finish() == [2, 3])
    #expect(
      world.central.scheduleStatistics
        == EventScheduleStatistics(
          pending: 0, dispatched: 2, skipped: 0, cancelled: 1, dropped: 0))
  }

  @Test("a cancelled event is freed at once, whoever keeps the handle", arguments: cores)
  func freedByCancel(core: EventCentral.Core) {
    let (world, lifetime) = (ScheduleWorld(core), Lifetime())
    let once = Owned(token: lifetime.token()).scheduleQueue(after: .seconds(1), on: world.central)
    let often = Owned(token: lifetime.token()).scheduleQueue(every: .seconds(1), on: world.central)
    #expect(lifetime.alive == 2)
    #expect(once.cancel())
    #expect(lifetime.alive == 1)
    #expect(often.cancel())
    #expect(lifetime.alive == 0)
    #expect(world.finish() == [])
  }

  @Test("a dispatched event is not kept by its handle", arguments: cores)
  func freedByDispatch(core: EventCentral.Core) {
    let (world, lifetime) = (ScheduleWorld(core), Lifetime())
    // Nobody listens, so that the event ends with its dispatch.
    let handle = Owned(token: lifetime.token()).scheduleQueue(after: .seconds(1), on: world.central)
    world.clock.advance(by: .seconds(1))
    #expect(lifetime.alive == 0)
    #expect(handle.state == .dispatched)
    #expect(world.finish() == [])
  }

  @Test("an event is dispatched even if its handle was released", arguments: cores)
  func fireAndForget(core: EventCentral.Core) {
    let world = ScheduleWorld(core)
    weak var handle: EventScheduleHandle?
    do {
      let made = Number(value: 7).scheduleQueue(after: .nanoseconds(1), on: world.central)
      handle = made
    }
    #expect(handle != nil, "the scheduler lets go of it before its time")
    world.clock.advance(by: .nanoseconds(1))
    #expect(handle == nil, "the scheduler keeps it after its time")
    #expect(world.finish() == [7])
  }

  @Test("D10: a central that ends before its first schedule drops all later ones", arguments: cores)
  func drainedFirst(core: EventCentral.Core) async {
    for timers in [EventCentral.Timers.thread, .pumps] {
      let (clock, log, lifetime) = (ManualClock(), Log<Int>(), Lifetime())
      let central = EventCentral(core: core, clock: clock, timers: timers)
      let pump = EventPump(on: central)
      pump.addEventCallback { (_: Owned) in log.append(1) }
      await central.drain()
      let once = Owned(token: lifetime.token()).scheduleQueue(after: .seconds(1), on: central)
      let often = Owned(token: lifetime.token()).scheduleQueue(every: .seconds(1), on: central)
      clock.advance(by: .seconds(3))
      pump.run()
      #expect(once.state == .dropped && often.state == .dropped && !often.cancel())
      #expect(log.entries.isEmpty && lifetime.alive == 0)
      #expect(central.scheduleStatistics.dropped == 2 && central.scheduleStatistics.pending == 0)
    }
    // The same with a thread of the scheduler's own, which is not made.
    let central = EventCentral(core: core)
    await central.drain()
    #expect(Number(value: 1).scheduleQueue(every: .seconds(3_600), on: central).state == .dropped)
    #expect(!central.scheduler.isMade)
  }

  @Test("a handler may cancel the repetition that called it", arguments: cores)
  func insideTheHandler(core: EventCentral.Core) {
    let world = ScheduleWorld(core)
    let (handles, results) = (Log<EventScheduleHandle>(), Log<Bool>())
    world.thread.addEventCallback { (event: Number) in
      if event.value == 9 { results.append(handles.entries[0].cancel()) }
    }
    handles.append(Number(value: 9).scheduleQueue(every: .nanoseconds(1), on: world.central))
    world.clock.advance(by: .nanoseconds(1))
    #expect(results.entries(atLeast: 1) == [true])
    world.clock.advance(by: .nanoseconds(10))
    #expect(world.finish() == [9])
    #expect(handles.entries[0].state == .cancelled)
  }

  /// Cancels schedules as it ends.
  private final class Canceller: Sendable {
    let handles = Log<EventScheduleHandle>()
    let results = Log<Bool>()
    deinit { for handle in handles.entries { results.append(handle.cancel()) } }
  }
  private struct Cancelling: Eventable { let canceller: Canceller }

  @Test("the end of an event, on the scheduler's thread, may cancel schedules", arguments: cores)
  func insideTheDispatch(core: EventCentral.Core) {
    let world = ScheduleWorld(core)
    let other = Number(value: 1).scheduleQueue(every: .nanoseconds(2), on: world.central)
    let results: Log<Bool>
    do {
      let canceller = Canceller()
      results = canceller.results
      canceller.handles.append(other)
      Cancelling(canceller: canceller).scheduleQueue(after: .nanoseconds(1), on: world.central)
    }
    world.clock.advance(by: .nanoseconds(10))
    #expect(results.entries == [true])
    #expect(world.finish() == [])
  }

  private func makeCentral(_ core: EventCentral.Core, _ clock: ManualClock?) -> EventCentral {
    clock.map { EventCentral(core: core, clock: $0) } ?? EventCentral(core: core)
  }

  @Test(
    "D9: a central that is released frees what is scheduled, and its handles say so",
    arguments: cores)
  func centralReleased(core: EventCentral.Core) {
    let lifetime = Lifetime()
    var handles: [EventScheduleHandle] = []
    // A scheduler with a thread of its own, and one that the test drives.
    for clock in [nil, ManualClock()] {
      var central: EventCentral? = makeCentral(core, clock)
      handles += (0..<100).map { index in
        Owned(token: lifetime.token()).scheduleQueue(
          after: .seconds(1000 + index % 7), on: central!)
      }
      let counts = central!.scheduler.counts
      #expect(counts.statistics.pending == 100)
      central = nil
      #expect(lifetime.waitUntilNone())
      #expect(waitUntil { counts.statistics.dropped == 100 })
      #expect(counts.statistics.pending == 0)
      clock?.advance(by: .seconds(5000))
    }
    #expect(waitUntil { handles.allSatisfy { $0.state == .dropped } })
    #expect(handles.allSatisfy { !$0.cancel() })
  }

  private final class Worker: EventThread, @unchecked Sendable {}  // It adds no state.

  @Test("D9: a schedule is dropped at its time if the thread, pump, pool or listener has ended", arguments: cores)
  func receiverEnded(core: EventCentral.Core) {
    let (world, lifetime) = (ScheduleWorld(core), Lifetime())
    let central = world.central
    func schedule(on receiver: any EventListenable) -> [EventScheduleHandle] {
      [
        Owned(token: lifetime.token()).scheduleQueue(after: .seconds(1), on: receiver),
        Owned(token: lifetime.token()).scheduleQueue(every: .seconds(1), on: receiver),
      ]
    }
    let (thread, drained) = (EventThread(on: central), EventThread(on: central))
    let (pump, pool) = (EventPump(on: central), EventPool<Worker>(capacity: 1, on: central))
    let listener = EventListener(on: central)
    let ending: [any EventListenable] = [thread, drained, pump.place, pool, listener]
    var handles = ending.flatMap { schedule(on: $0) }
    thread.cancel()
    #expect(drained.drain())
    pump.cancel()
    pool.cancel()
    listener.end()
    // One that is released, and one that has ended before.
    handles += schedule(on: EventThread(on: central)) + schedule(on: EventPool<Worker>(capacity: 1, on: central))
    handles += schedule(on: EventListener(on: central)) + schedule(on: thread)
    // These go on: a thread without its listeners, and a central without the listeners that are its own.
    let other = EventThread(on: central)
    let lasting = schedule(on: other) + schedule(on: central)
    other.listener.end()
    central.listener.end()
    world.clock.advance(by: .seconds(1))
    #expect(handles.allSatisfy { $0.state == .dropped && $0.dispatches == 0 })
    #expect(lasting.map(\.dispatches) == [1, 1, 1, 1])
    #expect(lifetime.alive == 2)
    #expect(
      central.scheduleStatistics
        == EventScheduleStatistics(pending: 2, dispatched: 4, skipped: 0, cancelled: 0, dropped: handles.count))
    // A repetition that has been dispatched before.
    other.cancel()
    world.clock.advance(by: .seconds(1))
    #expect(lasting.map(\.state) == [.dispatched, .dropped, .dispatched, .waiting])
    #expect(lasting.allSatisfy { $0.cancel() == ($0 === lasting[3]) } && lifetime.alive == 0)
    #expect(world.finish() == [])
  }

  @Test("D9: a schedule is dropped at its time if the pool's thread has ended and somebody holds it", arguments: cores)
  func threadOfPoolEnded(core: EventCentral.Core) {
    for balancer in [.roundRobin, .shared] as [any EventPoolBalancing] {
      for isDrained in [false, true] {
        let (world, lifetime) = (ScheduleWorld(core), Lifetime())
        let pool = EventPool<Worker>(capacity: 3, balancer: balancer, on: world.central)
        func schedule(on thread: Worker) -> EventScheduleHandle {
          Owned(token: lifetime.token()).scheduleQueue(every: .seconds(1), on: thread)
        }
        let threads = pool.withThreads { $0 }
        // The second one's listener is made after the thread's end, the third one's both before and after.
        var handles = [schedule(on: threads[2])]
        if isDrained {
          #expect(pool.drain())
        } else {
          pool.capacity = 1
          for thread in threads[1...] { thread.join() }
        }
        // The thread leaves its pool, and has ended before it does.
        #expect(waitUntil { pool.statistics.threads.count <= 1 })
        handles += threads[1...].map(schedule)
        world.clock.advance(by: .seconds(1))
        #expect(handles.allSatisfy { $0.state == .dropped && $0.dispatches == 0 } && lifetime.alive == 0)
        pool.cancel()
        #expect(world.finish() == [])
      }
    }
  }

  private struct Last: Eventable { let central: EventCentral }

  @Test("D9: a scheduled event may hold the last reference to its central", arguments: cores)
  func centralReleasedByItsScheduler(core: EventCentral.Core) {
    for clock in [nil, ManualClock()] {
      let handle: EventScheduleHandle
      let waiting: EventScheduleHandle
      do {
        let central = makeCentral(core, clock)
        waiting = Number().scheduleQueue(after: .seconds(1000), on: central)
        handle = Last(central: central).scheduleQueue(after: .milliseconds(1), on: central)
      }
      clock?.advance(by: .milliseconds(1))
      #expect(waitUntil { handle.state == .dispatched && waiting.state == .dropped })
    }
  }

  @Test("D9: the thread of a central's scheduler ends with the central", arguments: cores)
  func threadEnds(core: EventCentral.Core) {
    let central = Log<EventCentral>()
    central.append(EventCentral(core: core))
    Number().scheduleQueue(after: .seconds(1000), on: central.entries[0])
    let scheduler = central.entries[0].scheduler.weakCore
    #expect(scheduler() != nil)
    _ = central.take()
    #expect(waitUntil { scheduler() == nil })
  }

  @Test("D9: a schedule does not retain its central", arguments: cores)
  func centralIsNotKept(core: EventCentral.Core) {
    weak var central: EventCentral?
    let handle: EventScheduleHandle
    do {
      let made = EventCentral(core: core)
      central = made
      handle = Number().scheduleQueue(every: .seconds(1000), on: made)
    }
    #expect(central == nil)
    #expect(waitUntil { handle.state == .dropped })
  }
}
