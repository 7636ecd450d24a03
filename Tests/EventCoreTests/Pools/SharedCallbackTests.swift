// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("D4: callbacks that come to a shared pool while events wait")
struct SharedCallbackTests {
  struct Ping: Eventable { var number = 0 }

  /// A shared pool whose threads have one callback from the start.
  private static func pool(
    _ core: EventCentral.Core, _ capacity: Int, _ log: Log<String>,
    _ interest: EventListenerInterest = .all
  ) -> EventPool<EventThread> {
    EventPool(
      capacity: capacity, balancer: EventPoolSharedBalancer(), on: EventCentral(core: core)
    ) { _ in
      let thread = EventThread()
      thread.addEventCallback(
        { (event: Ping) in log.append("first \(event.number)") }, interestedIn: interest)
      return thread
    }
  }

  @Test(
    "D4: a callback that is added gets what is dispatched afterwards, and nothing that waited",
    arguments: cores, [1, 2, 3])
  func addedCallback(core: EventCentral.Core, capacity: Int) {
    let log = Log<String>()
    let pool = Self.pool(core, capacity, log)
    let held = pool.holdAll()
    for number in 0..<5 { #expect(Ping(number: number).queue(on: pool.central) == 1) }
    pool.withThreads { threads in
      // This event waits for one thread alone.
      threads[0].queueEvent(Ping(number: 5))
      for thread in threads {
        thread.addEventCallback { (event: Ping) in log.append("second \(event.number)") }
      }
    }
    for number in 6..<9 { #expect(Ping(number: number).queue(on: pool.central) == 1) }
    held.forEach { $0.letGo() }
    #expect(pool.drain())
    #expect(
      log.entries.sorted()
        == (0..<9).map { "first \($0)" } + (6..<9).map { "second \($0)" })
    #expect(pool.statistics.skipped == 0)
  }

  @Test(
    "D4: a callback that takes the place of all that have ended gets nothing that waited for them",
    arguments: cores, [EventListenerInterest.all, .latestOnly])
  func replacedCallback(core: EventCentral.Core, interest: EventListenerInterest) {
    let (log, handles) = (Log<String>(), Log<any EventListenerHandling>())
    let pool = EventPool<EventThread>(
      capacity: 2, balancer: EventPoolSharedBalancer(), on: EventCentral(core: core)
    ) { _ in
      let thread = EventThread()
      handles.append(
        thread.addEventCallback(
          { (event: Ping) in log.append("first \(event.number)") }, interestedIn: interest))
      return thread
    }
    let held = pool.holdAll()
    Ping(number: 0).queue(on: pool.central)
    for handle in handles.entries { #expect(handle.remove()) }
    pool.withThreads { threads in
      for thread in threads {
        thread.addEventCallback(
          { (event: Ping) in log.append("second \(event.number)") }, interestedIn: interest)
      }
    }
    // Of a lower priority, so that it is handled after the other one would be.
    Ping(number: 1).queue(priority: .lowest, on: pool.central)
    held.forEach { $0.letGo() }
    #expect(pool.drain())
    #expect(log.entries == ["second 1"])
  }

  @Test("D4: the callbacks of a new thread get what waits", arguments: cores)
  func newThread(core: EventCentral.Core) {
    let log = Log<String>()
    let pool = Self.pool(core, 1, log)
    let held = pool.holdAll()
    pool.withThreads { threads in
      _ = threads[0].addEventCallback { (event: Ping) in log.append("second \(event.number)") }
    }
    for number in 0..<5 { Ping(number: number).queue(on: pool.central) }
    pool.capacity = 2
    // The new thread alone handles them.
    #expect(log.entries(atLeast: 5) == (0..<5).map { "first \($0)" })
    held.forEach { $0.letGo() }
    #expect(pool.drain())
    #expect(log.entries.count == 5)
  }

  @Test("D4: a callback that is added while a shared pool ends gets nothing that waits", arguments: cores)
  func addedAtTheEnd(core: EventCentral.Core) {
    let log = Log<String>()
    let pool = Self.pool(core, 2, log)
    let held = pool.holdAll()
    for number in 0..<5 { Ping(number: number).queue(on: pool.central) }
    pool.core.close(whenEmpty: true)
    pool.withThreads { threads in
      // The first one of these knows less of the registrations than the events.
      _ = threads[0].addEventCallback { (event: Ping) in log.append("second \(event.number)") }
    }
    held[0].letGo()
    #expect(log.entries(atLeast: 5) == (0..<5).map { "first \($0)" })
    held.dropFirst().forEach { $0.letGo() }
    #expect(pool.drain())
    #expect(log.entries.count == 5)
  }
}
