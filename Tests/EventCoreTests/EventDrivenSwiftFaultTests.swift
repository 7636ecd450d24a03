// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Testing

@testable import EventCore

/// Faults of EventDrivenSwift 5.2, as its users meet them. Each test is named after a fault and fails if
/// EventCore has it. The suites of each part say more; "Coming from EventDrivenSwift" lists the faults
/// for users.
@Suite("Faults of EventDrivenSwift")
struct EventDrivenSwiftFaultTests {
  struct Step: Eventable { var number = 0 }
  struct Tracked: Eventable { let token: Lifetime.Token }

  // thread                              test
  // in the first of 500 events          queues one more, .highest
  @Test("D1: a .highest event that comes during a backlog of 500 was handled last", arguments: cores)
  func priorityWithinABatchOnly(core: EventCentral.Core) {
    let thread = EventThread(on: EventCentral(core: core))
    let (log, entered, leave) = (Log<Int>(), Gate(), Gate())
    thread.addEventCallback { (event: Step) in
      if event.number == 0 {
        entered.open()
        leave.pass()
      }
      log.append(event.number)
    }
    for number in 0..<500 { Step(number: number).queue(on: thread.central) }
    entered.pass()
    Step(number: 500).queue(priority: .highest, on: thread.central)
    leave.open()
    #expect(thread.drain())
    #expect(log.entries == [0, 500] + Array(1..<500))
  }

  @Test("D3: a stack that passes through the central came out first in, first out", arguments: cores)
  func stackReversedTwice(core: EventCentral.Core) {
    let thread = EventThread(on: EventCentral(core: core))
    let log = Log<Int>()
    thread.addEventCallback { (event: Step) in log.append(event.number) }
    let held = HeldThread(thread)
    for number in 0..<10 { Step(number: number).stack(on: thread.central) }
    held.letGo()
    #expect(thread.drain())
    #expect(log.entries == Array((0..<10).reversed()))
  }

  @Test("round robin ran past its last thread on event n+1", arguments: cores)
  func roundRobinPastTheEnd(core: EventCentral.Core) {
    for count in [1, 2, 3, 5] {
      let jobs = JobPool(core, count)
      for number in 0..<(3 * count + 1) { Job(number: number).queue(on: jobs.central) }
      #expect(jobs.pool.drain())
      #expect(
        jobs.log.entries.sorted { $0.number < $1.number }.map(\.thread)
          == (0..<(3 * count + 1)).map { $0 % count })
    }
  }

  @Test("lowest load picked the busiest thread", arguments: cores)
  func lowestLoadPicksTheBusiest(core: EventCentral.Core) {
    let jobs = JobPool(core, 3, EventPoolLowestLoadBalancer())
    let held = jobs.holdAll()
    // 5, 0 and 3 wait.
    jobs.pool.withThreads { threads in
      for _ in 0..<5 { threads[0].queueEvent(Job(number: -1)) }
      for _ in 0..<3 { threads[2].queueEvent(Job(number: -1)) }
    }
    for number in 0..<3 { Job(number: number).queue(on: jobs.central) }
    held.forEach { $0.letGo() }
    #expect(jobs.pool.drain())
    #expect(jobs.log.entries.filter { $0.number >= 0 }.map(\.thread) == [1, 1, 1])
  }

  @Test(".latestOnly trapped on its first event", arguments: cores)
  func latestOnlyTraps(core: EventCentral.Core) {
    let thread = EventThread(on: EventCentral(core: core))
    let log = Log<Int>()
    thread.addEventCallback(
      { (event: Step) in log.append(event.number) }, interestedIn: .latestOnly)
    Step(number: 1).queue(on: thread.central)
    #expect(log.entries(atLeast: 1) == [1])
    thread.cancel()
  }

  @Test(
    "D4: nothing was scheduled or listened to unless somebody served the main queue", arguments: cores)
  func mainQueueNeeded(core: EventCentral.Core) async {
    await offThePool {
      // The main queue is held, so that nothing arrives that goes by way of it.
      let held = HeldPlace(.dispatchQueue(.main), on: EventCentral(core: core))
      let central = EventCentral(core: core)
      let log = Log<Int>()
      // This is neither the main thread nor a task, so `.requesterThread` is the listener thread.
      let handle = Step.addListener(
        nil, { event in log.append(event.number) }, executeOn: .requesterThread, on: central)
      Step(number: 1).queue(on: central)
      #expect(log.entries(atLeast: 1) == [1])
      Step(number: 2).scheduleQueue(at: .now() + .milliseconds(1), on: central)
      #expect(log.entries(atLeast: 2) == [1, 2])
      handle.remove()
      held.letGo()
    }
  }

  @Test("D4: what waits for a main queue that nobody serves was lost in silence", arguments: cores)
  func lostInSilence(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let held = HeldPlace(.dispatchQueue(.main), on: central)
      let log = Log<Int>()
      let handle = Step.addListener(
        nil, { event in log.append(event.number) }, executeOn: .dispatchQueue(.main), on: central)
      for number in 1...3 { Step(number: number).queue(on: central) }
      guard case .mainQueue = handle.executesOn else {
        Issue.record("runs on \(handle.executesOn)")
        return
      }
      #expect(handle.waitingEventCount == 3)
      held.letGo()
      #expect(log.entries(atLeast: 3) == [1, 2, 3])
    }
  }

  @Test("D9: 50 released event threads were 50 threads", arguments: cores)
  func releasedThreadsStay(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    var consumers: [Consumer] = []
    let lifetime = Lifetime()
    for _ in 0..<50 {
      let thread = EventThread(on: central)
      let token = lifetime.token()
      thread.addEventCallback { (_: Step) in withExtendedLifetime(token) {} }
      consumers.append(thread.consumer)
    }
    #expect(waitUntil { consumers.allSatisfy(\.ended.isOpen) })
    #expect(lifetime.waitUntilNone())
    #expect(Step().queue(on: central) == 0)
  }

  @Test("D10: cancel() did not wake a sleeping thread", arguments: cores)
  func cancelDoesNotWake(core: EventCentral.Core) {
    for round in 0..<100 {
      let thread = EventThread(on: EventCentral(core: core))
      // The cancel comes later from round to round, so that in some of them the thread sleeps.
      for _ in 0..<100 * round { _ = DispatchTime.now() }
      thread.cancel()
      #expect(waitUntil { thread.consumer.ended.isOpen })
    }
  }

  @Test("D8: pools reset the dispatch time", arguments: cores)
  func poolsResetTheTime(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let times = Log<UInt64>()
    for balancer in Balance.allCases {
      let pool = EventPool<EventThread>(capacity: 2, balancer: balancer.make(), on: central) { _ in
        let thread = EventThread()
        thread.addEventCallback { (_: Step, _: EventPriority, time: DispatchTime) in
          times.append(time.uptimeNanoseconds)
        }
        return thread
      }
      let held = pool.holdAll()
      let before = DispatchTime.now().uptimeNanoseconds
      Step().queue(on: central)
      let after = DispatchTime.now().uptimeNanoseconds
      held.forEach { $0.letGo() }
      #expect(pool.drain())
      #expect(times.take().map { (before...after).contains($0) } == [true], "\(balancer)")
    }
  }

  @Test("pools did not scale", arguments: cores)
  func noScaling(core: EventCentral.Core) {
    let scaler = EventPoolDynamicScaler(maximum: 2, growDepth: 1, growAfter: .zero, interval: nil)
    let jobs = JobPool(core, 1, scaler: scaler)
    let held = jobs.holdAll()
    for number in 0..<10 { Job(number: number).queue(on: jobs.central) }
    jobs.pool.rescale()
    #expect(jobs.pool.capacity == 2)
    #expect(jobs.pool.withThreads(\.count) == 2)
    held.forEach { $0.letGo() }
    #expect(jobs.pool.drain())
    #expect(jobs.log.entries.count == 10)
  }

  @Test("D4, D10: queues grew without a count", arguments: cores)
  func growthWithoutACount(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let lifetime = Lifetime()
    thread.addEventCallback { (_: Tracked) in }
    let held = HeldThread(thread)
    for _ in 0..<100 { Tracked(token: lifetime.token()).queue(on: central) }
    #expect(thread.eventCount == 100)
    thread.cancel()
    held.letGo()
    thread.join()
    #expect(thread.statistics.cancelled == 100)
    #expect(lifetime.waitUntilNone())
  }

  @Test("D11: types were told apart by their names")
  func typesByName() {
    // Both are called "Event" here, and print alike.
    enum One { struct Event: Eventable {} }
    enum Two { struct Event: Eventable {} }
    #expect("\(One.Event.self)" == "\(Two.Event.self)")
    let thread = EventThread(on: EventCentral())
    thread.addEventCallback { (_: One.Event) in }
    #expect(One.Event().queue(on: thread.central) == 1)
    #expect(Two.Event().queue(on: thread.central) == 0)
    thread.cancel()
  }
}
