// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("Pools that have nothing to do, or no thread to do it")
struct PoolRestTests {
  /// Wants one thread, and opens a gate when it is asked.
  struct Least: EventPoolScaling {
    let asked = Gate()
    var interval: Duration? { .milliseconds(1) }
    var restingCapacity: Int { 1 }
    func capacity(for reading: EventPoolReading) -> Int {
      asked.open()
      return 1
    }
  }

  @Test(
    "a scaler is asked while there are more threads than the pool may rest with",
    arguments: balances)
  func idleAndTooLarge(_ kind: (EventCentral.Core, Balance)) {
    let scaler = Least()
    let jobs = JobPool(kind.0, 3, kind.1.make(), scaler: scaler)
    // Nothing was ever dispatched to the pool.
    #expect(scaler.asked.pass())
    #expect(waitUntil { jobs.pool.withThreads { $0.count } == 1 })
    #expect(waitUntil { jobs.lifetime.alive == 1 })
    jobs.pool.capacity = 4
    #expect(waitUntil { jobs.pool.withThreads { $0.count } == 1 })
    #expect(waitUntil { jobs.lifetime.alive == 1 })
    jobs.pool.cancel()
  }

  /// Wants as many threads as the pool rests with.
  struct Steady: EventPoolScaling {
    var interval: Duration? { .milliseconds(1) }
    var restingCapacity: Int { 2 }
    func capacity(for reading: EventPoolReading) -> Int { 2 }
  }

  @Test("the scaler of a pool that rests replaces threads that somebody cancels", arguments: balances)
  func cancelledAtRest(_ kind: (EventCentral.Core, Balance)) {
    let jobs = JobPool(kind.0, 2, kind.1.make(), scaler: Steady())
    for _ in 0..<3 {
      let threads = jobs.pool.withThreads { $0 }
      threads.forEach { $0.cancel() }
      #expect(
        waitUntil {
          jobs.pool.withThreads { present in
            present.count == 2 && present.allSatisfy { thread in !threads.contains { $0 === thread } }
          }
        })
    }
    #expect(Job(number: 1).queue(on: jobs.central) == 1)
    #expect(jobs.log.entries(atLeast: 1).count == 1)
    jobs.pool.cancel()
  }

  @Test("threads that have ended when they are made are not made again and again", arguments: cores)
  func stillborn(core: EventCentral.Core) {
    let clock = ManualClock()
    let central = EventCentral(deterministic: 1, core: core, clock: clock)
    let (made, log) = (Log<Int>(), Log<Handled>())
    let pool = EventPool<JobThread>(capacity: 2, scaler: Steady(), on: central) { index in
      let thread = JobThread(index, log)
      if !made.entries.isEmpty { thread.cancel() }
      made.append(index)
      return thread
    }
    // A second for a scaler that is asked each millisecond.
    for _ in 0..<1_000 {
      clock.advance(by: .milliseconds(1))
      central.run()
    }
    #expect(made.entries == [0, 1])
    // Who cancels another one has it replaced.
    pool.withThreads { $0[0].cancel() }
    for _ in 0..<1_000 {
      clock.advance(by: .milliseconds(1))
      central.run()
    }
    #expect(made.entries.count == 4)
    pool.cancel()
    pool.join()
  }

  @Test(
    "D10: what waits in a shared pool without a thread is freed and counted at its end",
    arguments: cores, [true, false])
  func endWithoutThreads(core: EventCentral.Core, drains: Bool) {
    let jobs = JobPool(core, 2, EventPoolSharedBalancer())
    let held = jobs.holdAll()
    let lifetime = Lifetime()
    for number in 0..<5 { Job(number: number, token: lifetime.token()).queue(on: jobs.central) }
    jobs.pool.withThreads { threads in threads.forEach { $0.cancel() } }
    held.forEach { $0.letGo() }
    #expect(waitUntil { jobs.pool.statistics.threads.isEmpty })
    #expect(lifetime.alive == 5)
    if drains {
      #expect(!jobs.pool.drain())
    } else {
      jobs.pool.cancel()
    }
    #expect(lifetime.alive == 0)
    #expect(jobs.pool.statistics.cancelled == 5)
    #expect(jobs.log.entries.isEmpty)
  }

  @Test(
    "a shared pool makes a new thread only when a retired one has ended, if it has too many",
    arguments: cores)
  func stuckWhileScaling(core: EventCentral.Core) {
    let jobs = JobPool(core, 128, EventPoolSharedBalancer())
    var held: [HeldThread] = []
    var known: Set<ObjectIdentifier> = []
    for _ in 0..<3 {
      jobs.pool.capacity = 128
      for thread in jobs.pool.withThreads({ $0 })
      where known.insert(ObjectIdentifier(thread)).inserted {
        held.append(HeldThread(thread))
      }
      jobs.pool.capacity = 1
    }
    jobs.pool.capacity = 128
    #expect(jobs.pool.statistics.threads.count == 256)
    #expect(jobs.pool.withThreads { $0.count } < 128)
    held.forEach { $0.letGo() }
    #expect(waitUntil { jobs.pool.withThreads { $0.count } == 128 })
    #expect(waitUntil { jobs.lifetime.alive == 128 })
    for number in 0..<300 { Job(number: number).queue(on: jobs.central) }
    #expect(jobs.log.entries(atLeast: 300).map(\.number).sorted() == Array(0..<300))
    jobs.pool.cancel()
  }

  @Test("a shared pool retires a thread that has nothing to do", arguments: cores)
  func retiresTheIdle(core: EventCentral.Core) {
    let jobs = JobPool(core, 3, EventPoolSharedBalancer())
    let busy = jobs.pool.withThreads { HeldThread($0[2]) }
    jobs.pool.capacity = 1
    #expect(jobs.pool.withThreads { $0.map(\.index) } == [2])
    #expect(waitUntil { jobs.lifetime.alive == 1 })
    busy.letGo()
    jobs.pool.cancel()
  }

  @Test("a shared pool that has handled a burst gives its memory back")
  func burst() throws {
    let jobs = JobPool(.locking, 2, EventPoolSharedBalancer())
    let held = jobs.pool.withThreads { $0.map { HeldThread($0) } }
    let inbox = try #require(jobs.pool.core.shared?.core as? LockingSharedMailbox).inbox
    for number in 0..<10_000 { Job(number: number).queue(on: jobs.central) }
    let most = 1 << 16
    #expect(inbox.withLock { inbox.lanes.contains(over: most) })
    held.forEach { $0.letGo() }
    #expect(waitUntil { inbox.withLock { !inbox.lanes.contains(over: most) } })
    #expect(jobs.log.entries(atLeast: 10_000).count == 10_000)
    jobs.pool.cancel()
  }
}
