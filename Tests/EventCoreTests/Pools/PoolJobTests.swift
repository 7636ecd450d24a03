// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("Pools: jobs on their threads")
struct PoolJobTests {
  @Test(
    "D4: jobs that ran on a thread hide none of its events, and it can be retired", arguments: cores, Balance.balanced)
  func before(core: EventCentral.Core, balance: Balance) async {
    let jobs = JobPool(core, 2, balance.make())
    for thread in jobs.pool.withThreads({ $0 }) {
      for _ in 0..<5 { await Task(executorPreference: thread) {}.value }
    }
    let held = jobs.holdAll()
    for number in 0..<20 { Job(number: number, key: number).queue(on: jobs.central) }
    #expect(jobs.pool.statistics.threads.map(\.waiting).reduce(0, +) == 20)
    jobs.pool.capacity = 1
    held.forEach { $0.letGo() }
    #expect(await yieldUntil { jobs.pool.statistics.threads.count == 1 })
    #expect(await jobs.pool.drain())
    await jobs.pool.join()
    #expect(jobs.log.entries.map(\.number).sorted() == Array(0..<20))
  }

  /*
       the test                                  both threads
                                                 stand in a job
       dispatch two events to each
       retire the second, give it another job
       let them go                               end the job, handle the events; the second runs its job and ends
   */
  @Test("D4: a thread that is retired inside of a job handles what waits, and ends", arguments: cores)
  func during(core: EventCentral.Core) async {
    let jobs = JobPool(core, 2)
    let (entered, leave) = (Gate(), Gate())
    let threads = jobs.pool.withThreads { $0 }
    var tasks = threads.map { thread in
      Task(executorPreference: thread) {
        entered.open()
        leave.pass()
      }
    }
    for _ in threads { entered.pass() }
    for number in 0..<4 { Job(number: number).queue(on: jobs.central) }
    let statistics = jobs.pool.statistics.threads
    #expect(statistics.map(\.waiting) == [2, 2])
    #expect(statistics.allSatisfy { $0.runningFor != nil })
    jobs.pool.capacity = 1
    tasks.append(Task(executorPreference: threads[1]) {})
    #expect(await yieldUntil { threads[1].eventCount == 3 })
    for _ in threads { leave.open() }
    for task in tasks { await task.value }
    #expect(await yieldUntil { jobs.pool.statistics.threads.map(\.index) == [0] })
    #expect(await jobs.pool.drain())
    #expect(jobs.log.entries.map(\.number).sorted() == Array(0..<4))
    #expect(jobs.log.entries.filter { $0.thread == 1 }.map(\.number) == [1, 3])
  }

  @Test("D9: a thread that is cancelled while a job waits is forgotten by its pool", arguments: cores)
  func dropped(core: EventCentral.Core) async {
    let jobs = JobPool(core, 1)
    let held = jobs.holdAll()
    weak var consumer: Consumer?
    do {
      let thread = jobs.pool.withThreads { $0[0] }
      consumer = thread.consumer
      #expect(thread.consumer.post {})
      thread.cancel()
    }
    held.forEach { $0.letGo() }
    #expect(
      await yieldUntil {
        _ = jobs.pool.statistics
        return consumer == nil
      })
    #expect(jobs.pool.statistics.cancelled == 1)
    await jobs.pool.drain()
  }
}
