// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

extension StatisticsTests {
  @Test("an event that a shared mailbox accepted is not counted by the worker that takes it", arguments: cores)
  func sharedMailbox(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let observation = central.observe()
    let pool = EventPool(capacity: 2, balancer: EventPoolSharedBalancer(), on: central) { _ in
      let thread = EventThread()
      thread.addEventCallback({ (_: Step) in }, forEventType: Step.self)
      return thread
    }
    for number in 0..<20 { Step(number: number).queue(on: central) }
    #expect(pool.drain())
    let receivers = central.statistics.receivers
    #expect(receivers.map(\.mailbox.accepted).reduce(0, +) == 20)
    #expect(receivers.map(\.counts.delivered).reduce(0, +) == 20)
    observation.end()
  }

  @Test(
    "D4: of what waits in a shared mailbox a new worker counts what was dispatched while it was observed",
    arguments: cores, [true, false])
  func newWorker(core: EventCentral.Core, isObservedMeanwhile: Bool) {
    let central = EventCentral(core: core)
    let pool = EventPool(capacity: 1, balancer: .shared, on: central) { _ in
      let thread = EventThread()
      thread.addEventCallback { (job: Job) in
        job.entered?.open()
        job.leave?.pass()
      }
      return thread
    }
    let (entered, leave) = (Gate(), Gate())
    Job(entered: entered, leave: leave).queue(on: central)
    entered.pass()
    for _ in 0..<5 { Job().queue(on: central) }
    let observation = central.observe(times: .all)
    for _ in 0..<7 { Job().queue(on: central) }
    if !isObservedMeanwhile { observation.end() }
    for _ in 0..<3 { Job().queue(on: central) }
    pool.capacity = 2
    #expect(waitUntil { pool.statistics.delivered == 15 })
    leave.open()
    #expect(pool.drain())
    let (statistics, count) = (central.statistics, UInt64(isObservedMeanwhile ? 10 : 7))
    #expect(statistics.dispatched(Job.self) == count)
    #expect(statistics.handled(Job.self).delivered == count)
    #expect(statistics.handled(Job.self).handling.count == count)
    #expect(statistics.receivers.map(\.counts.delivered).reduce(0, +) == 16)
    observation.end()
  }

  @Test("D4: a worker that comes when an observation has ended without one does not go on with it", arguments: cores)
  func withoutWorkers(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let observation = central.observe()
    let pool = EventPool(capacity: 1, balancer: .shared, on: central) { _ in
      let thread = EventThread()
      thread.addEventCallback { (_: Step) in }
      return thread
    }
    Step().queue(on: central)
    #expect(waitUntil { pool.statistics.delivered == 1 })
    pool.withThreads { $0[0].cancel() }
    #expect(waitUntil { pool.withThreads(\.isEmpty) })
    observation.end()
    // Makes another one.
    pool.capacity = 1
    for _ in 0..<3 { Step().queue(on: central) }
    #expect(pool.drain())
    #expect(pool.statistics.delivered == 4)
    #expect(central.statistics.dispatched(Step.self) == 1)
    #expect(central.statistics.handled(Step.self).delivered == 1)
  }

  @Test("D4: an observation that begins when a shared pool ends counts nothing that was dispatched before", arguments: cores)
  func beginsAtTheEnd(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let log = Log<Int>()
    let (entered, leave) = ([Gate(), Gate()], [Gate(), Gate()])
    let pool = EventPool(capacity: 2, balancer: .shared, on: central) { number in
      let thread = EventThread()
      thread.addEventCallback { (step: Step) in
        guard step.number == 0 else { return log.append(number) }
        entered[number].open()
        leave[number].pass()
      }
      return thread
    }
    // Each thread holds one. The first knows of its own registration alone, and what follows is dispatched after both.
    for _ in 0..<2 { Step(number: 0).queue(on: central) }
    for gate in entered { gate.pass() }
    for number in 1...5 { Step(number: number).queue(on: central) }
    pool.core.close(whenEmpty: true)
    let observation = central.observe()
    leave[0].open()
    #expect(log.entries(atLeast: 5) == [0, 0, 0, 0, 0])
    leave[1].open()
    #expect(pool.drain())
    #expect(central.statistics.handled(Step.self).delivered == 0)
    observation.end()
  }
}
