// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Synchronization
import Testing

@Suite("Pools: the number of threads")
struct PoolScalingTests {
  @Test("D4: the capacity may grow and shrink at run time", arguments: balances)
  func capacity(_ kind: (EventCentral.Core, Balance)) {
    let jobs = JobPool(kind.0, 2, kind.1.make())
    #expect(jobs.pool.capacity == 2)
    var sent = 0
    for capacity in [5, 1, 3, 3, 2] {
      jobs.pool.capacity = capacity
      #expect(jobs.pool.capacity == capacity)
      #expect(jobs.pool.withThreads { $0.count } == capacity)
      for _ in 0..<50 {
        Job(number: sent, key: sent).queue(on: jobs.central)
        sent += 1
      }
      #expect(jobs.log.entries(atLeast: sent).map(\.number).sorted() == Array(0..<sent))
      #expect(waitUntil { jobs.pool.statistics.threads.count == capacity })
    }
    // The log has an event before its handler has returned.
    #expect(waitUntil { jobs.pool.statistics.delivered == UInt64(sent) })
    jobs.pool.cancel()
  }

  @Test("D4: a thread that is retired handles what waits for it, and gets no more", arguments: cores)
  func retiredDrains(core: EventCentral.Core) {
    let jobs = JobPool(core, 2)
    let held = jobs.holdAll()
    for number in 0..<20 { Job(number: number).queue(on: jobs.central) }
    jobs.pool.capacity = 1
    // At once, although both are inside a handler.
    let (retiring, rest) = (
      jobs.pool.statistics.threads.filter(\.isRetiring), jobs.pool.withThreads { $0 }
    )
    #expect(retiring.map(\.index) == [1])
    #expect(retiring.map(\.waiting) == [10])
    #expect(rest.count == 1)
    for number in 20..<30 { Job(number: number).queue(on: jobs.central) }
    #expect(rest[0].eventCount == 20)
    held.forEach { $0.letGo() }
    let handled = jobs.log.entries(atLeast: 30)
    #expect(handled.map(\.number).sorted() == Array(0..<30))
    #expect(handled.filter { $0.thread == 1 }.map(\.number) == (0..<10).map { 2 * $0 + 1 })
    #expect(waitUntil { jobs.pool.statistics.threads.count == 1 })
    // The thread leaves the list before it releases its object.
    #expect(waitUntil { jobs.lifetime.alive == 1 })
    jobs.pool.cancel()
  }

  @Test("D6, D7: a handler may shrink the pool by its own thread", arguments: balances)
  func handlerShrinks(_ kind: (EventCentral.Core, Balance)) {
    let pools = Log<EventPool<JobThread>>()
    let jobs = JobPool(kind.0, 3, kind.1.make()) { _, job in
      pools.entries[0].capacity = job.number % 3 + 1
    }
    pools.append(jobs.pool)
    for number in 0..<200 { Job(number: number, key: number).queue(on: jobs.central) }
    #expect(jobs.log.entries(atLeast: 200).map(\.number).sorted() == Array(0..<200))
    #expect(waitUntil { jobs.pool.statistics.threads.count == jobs.pool.capacity })
    jobs.pool.cancel()
    _ = pools.take()
  }

  /// Returns when the thread has taken everything that waits for it before the last lane.
  static let awaitLook: @Sendable (JobThread) -> Void = { thread in
    let hasLooked = Gate()
    let handle = thread.addEventCallback { (_: Look) in hasLooked.open() }
    thread.queueEvent(Look(), priority: .lowest)
    hasLooked.pass()
    handle.remove()
  }
  private struct Look: Eventable {}

  /*
       closure of the pool                           the new thread
       make the thread, which starts
       send it an event of its own, in the last lane
                                                     look at what waits for it; handle that event
       register the callback; return
                                                     handle what waits in the pool
   */
  @Test(
    "D4: a thread whose closure registers its callbacks skips nothing of what waits before that",
    arguments: balances)
  func grownByClosure(_ kind: (EventCentral.Core, Balance)) {
    let jobs = JobPool(kind.0, 1, kind.1.make(), complete: Self.awaitLook)
    let held = jobs.holdAll()
    for number in 0..<20 { Job(number: number, key: number).queue(on: jobs.central) }
    jobs.pool.capacity = 4
    held.forEach { $0.letGo() }
    #expect(jobs.pool.drain())
    #expect(jobs.log.entries.map(\.number).sorted() == Array(0..<20))
    #expect(jobs.pool.statistics.skipped == 0)
  }

  @Test(
    "D4: a thread that is made with its pool skips nothing of what is dispatched meanwhile",
    arguments: balances)
  func madeByClosure(_ kind: (EventCentral.Core, Balance)) {
    let (threads, sent) = (Log<JobThread>(), Log<Int>())
    let held = Log<HeldThread>()
    let jobs = JobPool(
      kind.0, 3, kind.1.make(),
      complete: { thread in
        if let first = threads.entries.first, held.entries.isEmpty {
          held.append(HeldThread(first))
        }
        for number in 10 * thread.index..<10 * thread.index + 10 {
          if Job(number: number, key: number).queue(on: thread.central) == 1 { sent.append(number) }
        }
        Self.awaitLook(thread)
        threads.append(thread)
      })
    // While the first thread was made, no callback was registered yet.
    #expect(sent.entries == Array(10..<30))
    held.take().forEach { $0.letGo() }
    _ = threads.take()
    #expect(jobs.pool.drain())
    #expect(jobs.log.entries.map(\.number).sorted() == Array(10..<30))
    // Each thread has also handled a `Look`, and the first one the event that held it.
    let statistics = jobs.pool.statistics
    #expect(statistics.delivered == 20 + 3 + 1)
    #expect(statistics.skipped == 0)
  }

  @Test(
    "D2, D4: scaling under fire delivers each event once and keeps each producer's order per thread",
    arguments: balances, [false, true])
  func underFire(_ kind: (EventCentral.Core, Balance), isByClosure: Bool) {
    var random = SeededRandom(seed: announcedSeed("pool under fire, \(kind), \(isByClosure)"))
    let (producers, each) = (3, 3_000)
    let lifetime = Lifetime()
    let looks = Log<Void>()
    let complete: @Sendable (JobThread) -> Void = { thread in
      Self.awaitLook(thread)
      looks.append(())
    }
    let jobs = JobPool(kind.0, 2, kind.1.make(), complete: isByClosure ? complete : nil)
    let seeds = (0...producers).map { _ in random.next() }
    let running = Atomic<Int>(producers)
    onThreads(producers + 1) { index in
      var random = SeededRandom(seed: seeds[index])
      if index == producers {
        while running.load(ordering: .acquiring) > 0 {
          jobs.pool.capacity = Int.random(in: 1...6, using: &random)
        }
        return
      }
      var number = 0
      while number < each {
        let count = min(Int.random(in: 1...4, using: &random), each - number)
        let batch = (0..<count).map {
          Job(number: index * each + number + $0, key: number + $0, token: lifetime.token())
        }
        if count == 1 {
          batch[0].queue(on: jobs.central)
        } else {
          batch.queue(on: jobs.central)
        }
        number += count
      }
      running.wrappingSubtract(1, ordering: .releasing)
    }
    let handled = jobs.log.entries(atLeast: producers * each)
    #expect(jobs.pool.drain())
    #expect(jobs.log.entries.count == producers * each)
    #expect(Set(handled.map(\.number)).count == producers * each)
    Self.expectOrder(handled, each: each)
    #expect(lifetime.waitUntilNone())
    #expect(waitUntil { jobs.pool.statistics.threads.isEmpty })
    let statistics = jobs.pool.statistics
    #expect(statistics.delivered == UInt64(producers * each + looks.entries.count))
    #expect(statistics.skipped == 0)
    #expect(statistics.cancelled == 0 && statistics.refused == 0)
  }

  /// D2: on each thread the events of each producer come in the order in which it dispatched them.
  /// This holds in a shared pool, too: what a thread takes later was dispatched later.
  private static func expectOrder(_ handled: [Handled], each: Int) {
    struct Place: Hashable { var thread, producer: Int }
    var last: [Place: Int] = [:]
    for event in handled {
      // A later thread may have the index of one that has ended, and then its events come later, too.
      let place = Place(thread: event.thread, producer: event.number / each)
      #expect(last[place] ?? -1 < event.number, "\(place)")
      last[place] = event.number
    }
  }

  @Test(
    "D10: every event of a pool that ends under fire is delivered, cancelled or refused",
    arguments: balances, [true, false])
  func endUnderFire(_ kind: (EventCentral.Core, Balance), drains: Bool) {
    for _ in 0..<shortened(20) {
      let lifetime = Lifetime()
      let jobs = JobPool(kind.0, 3, kind.1.make())
      let accepted = Atomic<Int>(0)
      onThreads(3) { index in
        for number in 0..<200 {
          if index == 2, number == 100 {
            if drains { jobs.pool.drain() } else { jobs.pool.cancel() }
          }
          accepted.wrappingAdd(
            Job(number: number, key: number, token: lifetime.token()).queue(on: jobs.central),
            ordering: .relaxed)
        }
      }
      jobs.pool.join()
      #expect(lifetime.waitUntilNone())
      #expect(waitUntil { jobs.pool.statistics.threads.isEmpty })
      // A dispatch that the pool's end has overtaken frees its event and counts it.
      #expect(
        waitUntil {
          let statistics = jobs.pool.statistics
          return Int(statistics.delivered + statistics.cancelled)
            == accepted.load(ordering: .relaxed)
        })
    }
  }

  @Test("a pool tells which handlers do not end, and its other threads go on", arguments: balances)
  func stuckHandler(_ kind: (EventCentral.Core, Balance)) {
    let jobs = JobPool(kind.0, 2, kind.1.make())
    let (entered, leave) = (Gate(), Gate())
    let threads = jobs.pool.withThreads { $0 }
    threads[0].queueEvent(Job(number: -1, entered: entered, leave: leave))
    entered.pass()
    #expect(jobs.pool.stuckThreads(runningFor: .seconds(3600)).isEmpty)
    #expect(waitUntil { !jobs.pool.stuckThreads(runningFor: .milliseconds(20)).isEmpty })
    let stuck = jobs.pool.stuckThreads(runningFor: .milliseconds(20))
    #expect(stuck.map(\.index) == [0])
    #expect(jobs.pool.statistics.threads[1].runningFor == nil)
    // The other thread goes on. The events that were placed on the stuck one wait and are counted; in
    // a shared pool none is.
    for number in 0..<40 { Job(number: number, key: number).queue(on: jobs.central) }
    let waiting = jobs.pool.stuckThreads(runningFor: .milliseconds(20))[0].waiting
    #expect(jobs.log.entries(atLeast: 40 - waiting).count == 40 - waiting)
    switch kind.1 {
    case .roundRobin: #expect(waiting == 20)
    case .custom, .shared: #expect(waiting == 0)
    case .lowestLoad, .keyed: break
    }
    leave.open()
    #expect(jobs.log.entries(atLeast: 41).map(\.number).sorted() == Array(-1..<40))
    jobs.pool.cancel()
  }

  @Test(
    "D9: a pool that ends while two threads set its capacity leaves no thread behind",
    arguments: cores)
  func capacityRaces(core: EventCentral.Core) {
    for _ in 0..<30 {
      let jobs = JobPool(core, 1)
      onThreads(3) { index in
        if index == 2 {
          jobs.pool.cancel()
        } else {
          for capacity in 1...4 { jobs.pool.capacity = capacity + index }
        }
      }
      #expect(jobs.lifetime.waitUntilNone())
    }
  }
}
