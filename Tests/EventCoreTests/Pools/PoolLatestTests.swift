// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Synchronization
import Testing

/// Events that a newer one supersedes are not handled: they are no load of their thread from then on.
@Suite("Pools: callbacks that want the latest events only")
struct PoolLatestTests {
  struct Moved: Conflatable {
    var conflationKey: Int
    var number = 0
  }

  @Test(
    "D4: of what is superseded nothing waits, also while its thread stands in a handler", arguments: cores,
    [EventMailboxCapacity.unbounded, .bounded(8, whenFull: .refuse)])
  func nothingWaits(core: EventCentral.Core, mailbox: EventMailboxCapacity) {
    let central = EventCentral(core: core)
    let pool = Self.pool(2, .roundRobin, mailbox, on: central)
    let held = pool.holdAll()
    for number in 0..<100 { Moved(conflationKey: number / 2 % 3, number: number).queue(on: central) }
    // In batches, of which some events supersede others of the same one.
    (0..<200).map { Moved(conflationKey: $0 / 2 % 3, number: $0) }.queue(on: central)
    #expect(pool.statistics.threads.map(\.waiting) == [3, 3])
    #expect(pool.eventCount == 6)
    for thread in held { thread.letGo() }
    #expect(pool.drain())
    let statistics = pool.statistics
    // Two of the delivered ones are those that held the threads.
    #expect(statistics.delivered == 6 + 2 && statistics.skipped == 300 - 6)
    #expect(statistics.refused == 0 && statistics.cancelled == 0)
  }

  @Test("a thread at which events supersede one another stays the least loaded", arguments: cores)
  func leastLoaded(core: EventCentral.Core) {
    struct Job: Eventable {}
    let central = EventCentral(core: core)
    let pool = Self.pool(2, .lowestLoad, .unbounded, on: central) { thread in
      thread.addEventCallback { (_: Job) in }
    }
    let held = pool.holdAll()
    // One waits at each thread, and two more jobs at the second one: what comes of one key goes to the first.
    for key in 0..<2 { Moved(conflationKey: key).queue(on: central) }
    pool.withThreads { threads in for _ in 0..<2 { threads[1].queueEvent(Job()) } }
    for number in 0..<10 { Moved(conflationKey: 0, number: number).queue(on: central) }
    #expect(pool.statistics.threads.map(\.waiting) == [1, 3])
    for thread in held { thread.letGo() }
    #expect(pool.drain())
    #expect(pool.statistics.skipped == 10)
  }

  @Test("what an array has superseded counts as on the other core, in a pool of 65 threads", arguments: cores)
  func arrays(core: EventCentral.Core) {
    final class Chooser: EventPoolBalancing {
      let chosen = Atomic<Int>(0)
      let loads = Log<Int>()
      func chooseThread(for choice: borrowing EventPoolChoice) -> Int {
        let chosen = chosen.load(ordering: .relaxed)
        loads.append(choice.load(of: chosen))
        return chosen
      }
    }
    // No thread runs there.
    let central = EventCentral(deterministic: 1, core: core, clock: ManualClock())
    let chooser = Chooser()
    let pool = EventPool(capacity: 65, balancer: chooser, on: central) { _ in
      let thread = EventThread()
      thread.addEventCallback({ (_: Moved) in }, interestedIn: .latestOnly)
      return thread
    }
    // Each array is posted in parts: its first event, and up to 63 for each of the first 63 threads.
    for (index, loads) in [(0, [0, 1, 2, 3, 4, 5]), (62, [0, 1, 2, 3, 4, 5]), (63, [0, 1, 1, 1, 1, 1])] {
      chooser.chosen.store(index, ordering: .relaxed)
      (0..<6).map { Moved(conflationKey: $0) }.queue(on: central)
      #expect(chooser.loads.take() == loads, "thread \(index)")
    }
    #expect(pool.eventCount == 3 && pool.drain() && pool.statistics.skipped == 15)
  }

  @Test(
    "D4: a thread that is retired ends, though what it still waits for is superseded", arguments: cores, [1, 2, 7])
  func retired(core: EventCentral.Core, senders: Int) {
    for _ in 0..<20 {
      let central = EventCentral(core: core)
      let pool = Self.pool(2, .lowestLoad, .unbounded, on: central)
      onThreads(senders) { sender in
        for number in 0..<200 {
          Moved(conflationKey: number % 2, number: number).queue(on: central)
          if sender == 0, number % 20 == 0 { pool.capacity = 1 + number / 20 % 2 }
        }
      }
      pool.capacity = 1
      #expect(waitUntil { pool.statistics.threads.count == 1 } && pool.drain())
      let statistics = pool.statistics
      #expect(statistics.delivered + statistics.skipped == UInt64(200 * senders))
      #expect(statistics.refused == 0 && statistics.cancelled == 0)
    }
  }

  private static func pool(
    _ capacity: Int, _ balancer: some EventPoolBalancing, _ mailbox: EventMailboxCapacity, on central: EventCentral,
    also: @escaping @Sendable (EventThread) -> Void = { _ in }
  ) -> EventPool<EventThread> {
    EventPool(capacity: capacity, balancer: balancer, mailbox: mailbox, on: central) { _ in
      let thread = EventThread()
      thread.addEventCallback({ (_: Moved) in }, interestedIn: .latestPerKey)
      also(thread)
      return thread
    }
  }
}
