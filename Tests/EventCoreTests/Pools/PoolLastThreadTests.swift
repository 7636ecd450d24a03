// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("D10: the end of pools whose threads come and go")
struct PoolLastThreadTests {
  enum End: CaseIterable { case cancelled, drained }

  /// Waits for an end in one of two ways.
  enum Waiting: CaseIterable {
    case blocking, inATask

    /// Calls `body` with the result of a drain.
    func drain<Thread>(_ pool: EventPool<Thread>, _ body: @escaping @Sendable (Bool) -> Void) {
      switch self {
      case .blocking: runThread { body(pool.drain()) }
      case .inATask: Task { body(await pool.drain()) }
      }
    }

    /// Calls `body` after a join.
    func join<Thread>(_ pool: EventPool<Thread>, _ body: @escaping @Sendable () -> Void) {
      switch self {
      case .blocking:
        runThread {
          pool.join()
          body()
        }
      case .inATask:
        Task {
          await pool.join()
          body()
        }
      }
    }
  }

  //     retiring thread    last active thread     drain
  //     in a handler
  //                        in a handler
  //                        ends by itself
  //                                               begins
  //     ends                                      frees what waits, and says so
  @Test(
    "a drain does not say that all was handled if the last thread that took from a shared mailbox has ended",
    arguments: cores, End.allCases)
  func leftToARetiringThread(core: EventCentral.Core, end: End) async {
    await offThePool {
      let jobs = JobPool(core, 2, EventPoolSharedBalancer())
      let threads = jobs.pool.withThreads { $0 }
      let held = jobs.holdAll()
      for number in 0..<10 { Job(number: number).queue(on: jobs.central) }
      jobs.pool.capacity = 1
      #expect(jobs.pool.withThreads { $0.map(\.index) } == [0])
      let hasLeft = Gate()
      switch end {
      case .cancelled:
        threads[0].cancel()
        hasLeft.open()
      case .drained:
        // What a drain begins with. Here, since nothing tells that the one below has come so far: that the thread refuses
        // events is a moment before it takes none of the pool's.
        threads[0].consumer.close(whenEmpty: true)
        runThread {
          threads[0].drain()
          hasLeft.open()
        }
      }
      held[0].letGo()
      hasLeft.pass()
      threads[0].join()
      #expect(waitUntil { jobs.pool.withThreads { $0.isEmpty } })
      let listener = HeldThread.Hold.addListener(nil, executeOn: .listenerThread, on: jobs.pool) { _ in }
      let (result, drained) = (Guarded(true), Gate())
      Waiting.blocking.drain(jobs.pool) { isComplete in
        result.withLock { $0 = isComplete }
        drained.open()
      }
      // Then the drain waits for the thread that is being retired.
      #expect(waitUntil { !listener.isActive })
      held[1].letGo()
      drained.pass()
      #expect(!result.withLock { $0 })
      #expect(jobs.log.entries.filter { $0.number > 0 }.isEmpty)
      #expect(jobs.pool.statistics.cancelled == 10)
    }
  }

  //     worker              thread drain        pool drain
  //     in a handler
  //                                             begins
  //                         begins
  //     ends, and leaves what waits to others: nobody
  //                                             frees it, and says so
  @Test(
    "a drain does not say that all was handled if its only worker was drained by itself meanwhile", arguments: cores)
  func drainedBesideItsPool(core: EventCentral.Core) async {
    await offThePool {
      let jobs = JobPool(core, 1, EventPoolSharedBalancer())
      let thread = jobs.pool.withThreads { $0[0] }
      let held = jobs.holdAll()
      var accepted = UInt64((1...10).map { Job(number: $0) }.queue(on: jobs.central))
      let (result, drained) = (Guarded(true), Gate())
      Waiting.blocking.drain(jobs.pool) { isComplete in
        result.withLock { $0 = isComplete }
        drained.open()
      }
      // Until the pool takes nothing more.
      #expect(waitUntil {
        let isAccepted = Job(number: 11).queue(on: jobs.central) == 1
        if isAccepted { accepted += 1 }
        return !isAccepted
      })
      // As `thread.drain()` begins: from outside nothing shows that it has.
      thread.beginDrain()
      held[0].letGo()
      thread.join()
      drained.pass()
      let cancelled = jobs.pool.statistics.cancelled
      #expect(cancelled > 0 && cancelled + UInt64(jobs.log.entries.filter { $0.number > 0 }.count) == accepted)
      #expect(!result.withLock { $0 })
    }
  }

  @Test(
    "a join waits for the end of the pool, whatever threads it has meanwhile",
    arguments: balances, Waiting.allCases)
  func joinOutlivesThreads(_ kind: (EventCentral.Core, Balance), waiting: Waiting) async {
    await offThePool {
      let jobs = JobPool(kind.0, 1, kind.1.make())
      let joined = Gate()
      waiting.join(jobs.pool) { joined.open() }
      // All threads that the join may have found at its beginning have ended.
      for _ in 0..<3 {
        let thread = jobs.pool.withThreads { $0[0] }
        thread.cancel()
        thread.join()
        jobs.pool.capacity = 1
      }
      #expect(Job(number: 1).queue(on: jobs.central) == 1)
      #expect(jobs.log.entries(atLeast: 1).count == 1)
      #expect(!joined.passIfOpen())
      jobs.pool.cancel()
      joined.pass()
      #expect(jobs.pool.statistics.threads.isEmpty)
    }
  }

  @Test(
    "a join in a deterministic central runs it until the pool has ended, also with other threads",
    arguments: cores)
  func deterministicJoin(core: EventCentral.Core) {
    for seed: UInt64 in 1...20 {
      let world = EventCentral(deterministic: seed, core: core)
      let (holder, log) = (Box<EventPool<JobThread>>(nil), Log<Handled>())
      let pool = EventPool(capacity: 1, on: world) { index in
        JobThread(index, log) { thread, job in
          guard let pool = holder.value else { return }
          switch job.number {
          case 0:
            // The only thread makes another one, and is retired.
            pool.capacity = 2
            pool.withThreads { threads in
              for number in 1...20 { threads[1].queueEvent(Job(number: number)) }
            }
            pool.capacity = 1
          case 20: pool.cancel()
          default: break
          }
        }
      }
      holder.value = pool
      Job(number: 0).queue(on: world)
      pool.join()
      holder.value = nil
      #expect(log.entries == [Handled(thread: 0, number: 0)] + (1...20).map { Handled(thread: 1, number: $0) })
    }
  }

  //     grows                  ends
  //     begins to make one
  //                            closes the pool, and waits
  //     has made it, while it handles an event
  //                            goes on when it has ended, too
  @Test(
    "what ends a pool waits for the thread that is being made, which handles its events, or counts them",
    arguments: balances, [true, false])
  func endedWhileMaking(_ kind: (EventCentral.Core, Balance), drains: Bool) async {
    for waiting in Waiting.allCases {
      await offThePool {
        let (central, log, lifetime) = (EventCentral(core: kind.0), Log<Handled>(), Lifetime())
        let (isMaking, goesOn, grown) = (Gate(), Gate(), Gate())
        let (entered, leave) = (Gate(), Gate())
        let pool = EventPool(capacity: 1, balancer: kind.1.make(), on: central) { index in
          guard index > 0 else { return JobThread(index, log) }
          isMaking.open()
          goesOn.pass()
          let thread = JobThread(index, log)
          thread.queueEvent(Job(number: 1, token: lifetime.token(), entered: entered, leave: leave))
          thread.queueEvent(Job(number: 2, token: lifetime.token()))
          entered.pass()
          return thread
        }
        runThread {
          pool.capacity = 2
          grown.open()
        }
        isMaking.pass()
        let (result, ended) = (Guarded(false), Gate())
        if drains {
          waiting.drain(pool) { isComplete in
            result.withLock { $0 = isComplete }
            ended.open()
          }
        } else {
          pool.cancel()
          waiting.join(pool) { ended.open() }
        }
        #expect(waitUntil { pool.statistics.threads.isEmpty })
        goesOn.open()
        grown.pass()
        #expect(!ended.passIfOpen())
        leave.open()
        ended.pass()
        #expect(result.withLock { $0 } == drains)
        #expect(log.entries.map(\.number) == (drains ? [1, 2] : [1]))
        let statistics = pool.statistics
        #expect(statistics.threads.isEmpty)
        #expect(statistics.delivered == (drains ? 2 : 1) && statistics.cancelled == (drains ? 0 : 1))
        #expect(lifetime.waitUntilNone())
      }
    }
  }

  @Test("nothing waits for a thread that has ended, even if the pool has not noticed it", arguments: cores)
  func endedAndStillListed(core: EventCentral.Core) {
    for _ in 0..<100 {
      let jobs = JobPool(core, 2)
      let held = jobs.holdAll()
      for number in 0..<20 { Job(number: number).queue(on: jobs.central) }
      let thread = jobs.pool.withThreads { $0[1] }
      thread.cancel()
      held[1].letGo()
      thread.join()
      let statistics = jobs.pool.statistics
      #expect(statistics.cancelled == 10)
      #expect(statistics.threads.allSatisfy { $0.index == 0 || $0.waiting == 0 })
      held[0].letGo()
      jobs.pool.cancel()
    }
  }

  @Test("a pool's mailbox counts what was sent straight to its threads, too", arguments: balances)
  func straightToAThread(_ kind: (EventCentral.Core, Balance)) {
    let jobs = JobPool(kind.0, 2, kind.1.make())
    let held = jobs.holdAll()
    jobs.pool.withThreads { threads in
      for number in 0..<3 { threads[0].queueEvent(Job(number: number)) }
    }
    for number in 3..<5 { Job(number: number, key: number).queue(on: jobs.central) }
    #expect(jobs.pool.mailboxStatistics.waiting == 5 && jobs.pool.eventCount == 5)
    held.forEach { $0.letGo() }
    #expect(jobs.pool.drain())
    let mailboxes = jobs.pool.mailboxStatistics
    #expect(mailboxes.accepted == 7 && mailboxes.waiting == 0)
    #expect(jobs.pool.statistics.delivered == 7)
  }
}
