// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Synchronization
import Testing

@testable import EventCore

@Suite("Pools: bounded mailboxes")
struct PoolBoundTests {
  static let policies: [EventOverflowPolicy] = [
    .refuse, .dropNewest, .dropOldest, .block(upTo: .zero), .block(upTo: .microseconds(1)),
  ]

  /// Each core and balancer with each policy.
  static let balanced: [(EventCentral.Core, Balance)] = cores.flatMap { core in
    Balance.balanced.map { (core, $0) }
  }

  @Test("D4: the policy of the thread that the balancer has chosen applies", arguments: cores, policies)
  func chosen(core: EventCentral.Core, policy: EventOverflowPolicy) {
    for count in [0, 2, 3, 4, 9] {
      let jobs = JobPool(core, 2, LastBalancer(), mailbox: .bounded(3, whenFull: policy))
      let held = jobs.holdAll()
      var sum = EventDispatchOutcome()
      for number in 0..<count {
        let outcome = Job(number: number, token: jobs.lifetime.token()).queueWithOutcome(on: jobs.central)
        sum.accepted += outcome.accepted
        sum.refused += outcome.refused
        sum.dropped += outcome.dropped
        sum.displaced += outcome.displaced
        #expect(outcome.ended == 0)
      }
      let over = max(0, count - 3)
      var (expected, numbers) = (EventDispatchOutcome(), Array(0..<min(3, count)))
      expected.accepted = count - over
      switch policy {
      case .refuse, .block: expected.refused = over
      case .dropNewest: expected.dropped = over
      case .dropOldest:
        (expected.accepted, expected.displaced) = (count, over)
        numbers = Array((count - min(3, count))..<count)
      }
      #expect(sum == expected)
      let threads = jobs.pool.statistics.threads
      #expect(threads.map(\.waiting) == [0, count - over])
      let mailboxes = jobs.pool.mailboxStatistics
      #expect(mailboxes.refused == UInt64(expected.refused))
      #expect(mailboxes.dropped == UInt64(expected.dropped + expected.displaced))
      #expect(mailboxes.waiting == count - over && jobs.pool.eventCount == count - over)
      held.forEach { $0.letGo() }
      #expect(jobs.log.entries(atLeast: count - over).map(\.number) == numbers)
      #expect(jobs.pool.drain())
      // The mailboxes of threads that have ended count on.
      #expect(jobs.pool.mailboxStatistics.refused == UInt64(expected.refused))
      #expect(jobs.pool.mailboxStatistics.dropped == UInt64(expected.dropped + expected.displaced))
      #expect(jobs.lifetime.waitUntilNone())
    }
  }

  @Test("D4: a thread that was overrun and is retired handles what waits for it, and ends", arguments: cores, policies)
  func retired(core: EventCentral.Core, policy: EventOverflowPolicy) {
    let jobs = JobPool(core, 2, mailbox: .bounded(2, whenFull: policy))
    let held = jobs.holdAll()
    for number in 0..<10 { Job(number: number).queue(on: jobs.central) }
    jobs.pool.capacity = 1
    let threads = jobs.pool.statistics.threads
    #expect(threads.map(\.waiting) == [2, 2] && threads.map(\.isRetiring) == [false, true])
    held.forEach { $0.letGo() }
    #expect(jobs.log.entries(atLeast: 4).count == 4)
    #expect(waitUntil { jobs.pool.statistics.threads.count == 1 })
    Job(number: 10).queue(on: jobs.central)
    #expect(jobs.log.entries(atLeast: 5).last == Handled(thread: 0, number: 10))
    jobs.pool.cancel()
  }

  @Test("D4: floods of a balanced pool that grows and shrinks are accounted for", arguments: balanced, policies)
  func floods(_ kind: (EventCentral.Core, Balance), policy: EventOverflowPolicy) {
    for capacity in [1, 3, 500] {
      let jobs = JobPool(kind.0, 2, kind.1.make(), mailbox: .bounded(capacity, whenFull: policy))
      let each = policy == .block(upTo: .microseconds(1)) ? 400 : shortened(2_000)
      let accepted = Atomic<Int>(0)
      let sending = Atomic<Int>(2)
      onThreads(3) { thread in
        guard thread < 2 else {
          // Threads are retired while events for them are refused and dropped.
          while sending.load(ordering: .acquiring) > 0 {
            for threads in [3, 1, 2] { jobs.pool.capacity = threads }
          }
          return
        }
        for number in 0..<each {
          accepted.wrappingAdd(
            Job(number: number, key: number, token: jobs.lifetime.token()).queue(on: jobs.central),
            ordering: .relaxed)
        }
        sending.wrappingSubtract(1, ordering: .releasing)
      }
      // Each retired thread finds out that nothing is on its way any more.
      #expect(waitUntil { jobs.pool.statistics.threads.count == 2 })
      #expect(jobs.pool.drain())
      let (mailboxes, total) = (jobs.pool.mailboxStatistics, UInt64(accepted.load(ordering: .relaxed)))
      #expect(mailboxes.accepted == total && mailboxes.waiting == 0)
      #expect(mailboxes.accepted + mailboxes.refused == UInt64(2 * each))
      #expect(mailboxes.dropped + UInt64(jobs.log.entries.count) == total)
      #expect(mailboxes.highWaterMark <= capacity)
      let statistics = jobs.pool.statistics
      #expect(statistics.delivered == UInt64(jobs.log.entries.count))
      #expect(statistics.cancelled == 0 && statistics.refused == 0)
      #expect(jobs.lifetime.waitUntilNone())
    }
  }

  @Test("D7: a handler that dispatches to its own full thread is refused at once", arguments: cores)
  func itself(core: EventCentral.Core) {
    let refusals = Log<Int>()
    let jobs = JobPool(core, 1, mailbox: .bounded(1, whenFull: .block(upTo: .seconds(3600)))) { thread, job in
      guard job.number == 0 else { return }
      for number in 1...3 where Job(number: number).queue(on: thread.central) == 0 { refusals.append(number) }
    }
    Job(number: 0).queue(on: jobs.central)
    #expect(jobs.log.entries(atLeast: 2).map(\.number) == [0, 1])
    #expect(refusals.entries == [2, 3])
    jobs.pool.cancel()
  }
}
