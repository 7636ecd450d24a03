// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

@Suite("Pools: D8: the time of dispatch")
struct PoolTimeTests {
  @Test("no callback that asks for the time too late is given an event without one",
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
}
