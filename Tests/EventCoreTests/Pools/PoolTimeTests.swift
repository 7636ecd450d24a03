// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

@Suite("D8: the time of dispatch in pools")
struct PoolTimeTests {
  @Test(
    "a callback that asks for the time is given no event that was dispatched without it",
    arguments: balances)
  func askedTooLate(_ kind: (EventCentral.Core, Balance)) {
    let jobs = JobPool(kind.0, 1, kind.1.make())
    let times = Log<UInt64>()
    let hold = jobs.holdAll()
    for number in 0..<3 { Job(number: number).queue(on: jobs.central) }
    let thread = jobs.pool.withThreads { $0[0] }
    let timed = thread.addEventCallback { (_: Job, _: EventPriority, time: DispatchTime) in
      times.append(time.uptimeNanoseconds)
    }
    let young = thread.addEventCallback(
      { (_: Job) in }, interestedIn: .youngerThan, maximumAge: 3_600_000_000_000)
    let before = DispatchTime.now().uptimeNanoseconds
    Job(number: 3).queue(on: jobs.central)
    let after = DispatchTime.now().uptimeNanoseconds
    hold.forEach { $0.letGo() }
    #expect(jobs.pool.drain())
    #expect(jobs.log.entries.map(\.number) == [0, 1, 2, 3])
    #expect(times.entries.count == 1)
    #expect(times.entries.allSatisfy { before <= $0 && $0 <= after })
    #expect(young.skippedCount == 0)
    withExtendedLifetime(timed) {}
  }

  enum Interest: CaseIterable { case youngerThan, custom }

  /// Makes a pool of two threads, each with the callback that `add` registers, and their handles.
  private static func pool(
    _ kind: (EventCentral.Core, Balance),
    add: @escaping @Sendable (EventThread) -> any EventListenerHandling
  ) -> (EventPool<EventThread>, Log<any EventListenerHandling>) {
    let handles = Log<any EventListenerHandling>()
    let pool = EventPool<EventThread>(
      capacity: 2, balancer: kind.1.make(), on: EventCentral(core: kind.0)
    ) { _ in
      let thread = EventThread()
      handles.append(add(thread))
      return thread
    }
    return (pool, handles)
  }

  @Test(
    "D4: an event that an interest turns away counts as skipped and as no thread's load",
    arguments: balances, Interest.allCases)
  func turnedAway(_ kind: (EventCentral.Core, Balance), interest: Interest) {
    let (isWanted, log) = (Guarded(true), Log<Int>())
    let (pool, handles) = Self.pool(kind) { thread in
      switch interest {
      case .youngerThan:
        thread.addEventCallback(
          { (job: Job) in log.append(job.number) }, interestedIn: .youngerThan,
          maximumAge: 1_000_000)
      case .custom:
        thread.addEventCallback(
          { (job: Job) in log.append(job.number) }, interestedIn: .custom,
          customFilter: { _, _, _ in isWanted.withLock { $0 } })
      }
    }
    let hold = pool.holdAll()
    for number in 0..<20 { #expect(Job(number: number, key: number).queue(on: pool.central) == 1) }
    // The events were young and wanted when they were dispatched, and are not when they are taken.
    isWanted.withLock { $0 = false }
    let later = DispatchTime.now() + .milliseconds(2)
    while DispatchTime.now() < later {}
    hold.forEach { $0.letGo() }
    #expect(waitUntil { pool.statistics.skipped == 20 })
    #expect(handles.entries.map(\.skippedCount).reduce(0, +) == 20)
    // A thread counts the event that held it after it has left the handler.
    #expect(waitUntil { pool.statistics.delivered == 2 })
    #expect(log.entries.isEmpty)
    // The skipped events weigh on no thread any more, so that each thread gets one of two.
    let again = pool.holdAll()
    #expect(pool.statistics.threads.map(\.waiting) == [0, 0])
    if case .lowestLoad = kind.1 {
      for _ in 0..<2 { Job().queue(on: pool.central) }
      #expect(pool.statistics.threads.map(\.waiting) == [1, 1])
    }
    again.forEach { $0.letGo() }
    // A thread that is retired ends, since what it was promised is accounted for.
    pool.capacity = 1
    #expect(waitUntil { pool.statistics.threads.count == 1 })
    #expect(pool.drain())
    #expect(pool.statistics.cancelled == 0)
    _ = handles.take()
  }
}
