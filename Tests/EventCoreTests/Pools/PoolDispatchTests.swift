// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

@Suite("Pools: events arrive as they were dispatched")
struct PoolDispatchTests {
  struct Ping: Eventable { var number = 0 }
  struct Pong: Eventable { var number = 0 }
  struct Large: Eventable {
    var words: (Int, Int, Int, Int, Int, Int) = (1, 2, 3, 4, 5, 6)
    var token: Lifetime.Token
  }

  @Test("D1 to D3: order, priority and method survive on each thread", arguments: balances)
  func lanesSurvive(_ kind: (EventCentral.Core, Balance)) {
    let jobs = JobPool(kind.0, 1, kind.1.make())
    let held = jobs.holdAll()
    var (model, number) = (LaneModel<Int>(), 0)
    for (lane, testLane) in TestLane.all.enumerated().reversed() {
      for _ in 0..<3 {
        Job(number: number).dispatch(testLane, on: jobs.central)
        model.post(number, lane: lane)
        number += 1
      }
    }
    held.forEach { $0.letGo() }
    #expect(jobs.log.entries(atLeast: 30).map(\.number) == model.takeAll())
    jobs.pool.cancel()
  }

  @Test("D8: a callback gets the time and the priority of the dispatch", arguments: balances)
  func timeSurvives(_ kind: (EventCentral.Core, Balance)) {
    let central = EventCentral(core: kind.0)
    let log = Log<(EventPriority, DispatchTime)>()
    let pool = EventPool<EventThread>(capacity: 2, balancer: kind.1.make(), on: central) { _ in
      let thread = EventThread()
      thread.addEventCallback { (_: Ping, priority, time) in log.append((priority, time)) }
      return thread
    }
    let held = pool.holdAll()
    let before = DispatchTime.now()
    Ping().queue(priority: .low, on: central)
    let after = DispatchTime.now()
    // The handlers run later, and are told the moment of the dispatch.
    while DispatchTime.now() <= after {}
    held.forEach { $0.letGo() }
    let (priority, time) = log.entries(atLeast: 1)[0]
    #expect(priority == .low)
    #expect(time >= before && time <= after)
    pool.cancel()
  }

  @Test("round robin takes turns over the events of all types", arguments: cores)
  func turnsOverTypes(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let log = Log<Int>()
    let pool = EventPool<EventThread>(capacity: 3, on: central) { index in
      let thread = EventThread()
      thread.addEventCallback { (_: Ping) in log.append(index) }
      thread.addEventCallback { (_: Pong) in log.append(index) }
      return thread
    }
    for number in 0..<12 {
      // Two events of each type in turn: if each type had turns of its own, they would go 0, 1, 0, 1.
      if number / 2 % 2 == 0 { Ping().queue(on: central) } else { Pong().queue(on: central) }
      #expect(log.entries(atLeast: number + 1).last == number % 3)
    }
    pool.cancel()
  }

  @Test("D8: the clock is read as soon as one thread asks for it, and no longer", arguments: cores)
  func clockByNeed(core: EventCentral.Core) {
    let jobs = JobPool(core, 3, EventPoolRoundRobinBalancer())
    let times = Log<DispatchTime>()
    let handles = jobs.pool.withThreads { threads in
      threads.map { $0.addEventCallback { (_: Job, _, time) in times.append(time) } }
    }
    let before = DispatchTime.now()
    for number in 0..<6 { Job(number: number).queue(on: jobs.central) }
    #expect(times.entries(atLeast: 6).allSatisfy { $0 >= before })
    handles[0].removeAndWait()
    handles[1].removeAndWait()
    for number in 6..<12 { Job(number: number).queue(on: jobs.central) }
    #expect(times.entries(atLeast: 8).count == 8)
    #expect(times.entries.allSatisfy { $0 >= before })
    _ = jobs.log.entries(atLeast: 12)
    jobs.pool.cancel()
  }

  @Test(
    "a pool is one receiver beside others, and shares large events with them", arguments: balances)
  func oneReceiver(_ kind: (EventCentral.Core, Balance)) {
    let central = EventCentral(core: kind.0)
    let (lifetime, log) = (Lifetime(), Log<String>())
    let pool = EventPool<EventThread>(capacity: 3, balancer: kind.1.make(), on: central) { _ in
      let thread = EventThread()
      thread.addEventCallback { (event: Large) in log.append("pool \(event.words.5)") }
      return thread
    }
    let other = EventThread(on: central)
    other.addEventCallback { (event: Large) in log.append("other \(event.words.5)") }
    for _ in 0..<10 {
      #expect(Large(token: lifetime.token()).queue(on: central) == 2)
    }
    #expect(
      log.entries(atLeast: 20).sorted()
        == Array(repeating: "other 6", count: 10) + Array(repeating: "pool 6", count: 10))
    #expect(lifetime.waitUntilNone())
    pool.cancel()
    #expect(Large(token: lifetime.token()).queue(on: central) == 1)
    #expect(lifetime.waitUntilNone())
  }

  @Test(
    "an event sent to the pool reaches one thread, an event sent to a thread reaches that one",
    arguments: balances)
  func directDispatch(_ kind: (EventCentral.Core, Balance)) {
    let jobs = JobPool(kind.0, 3, kind.1.make())
    #expect(jobs.pool.queueEvent(Job(number: 1)))
    #expect(jobs.pool.stackEvent(Job(number: 2), priority: .high))
    #expect(jobs.log.entries(atLeast: 2).map(\.number).sorted() == [1, 2])
    let threads = jobs.pool.withThreads { $0 }
    for (index, thread) in threads.enumerated() {
      #expect(thread.central === jobs.central)
      #expect(thread.queueEvent(Job(number: 10 + index)))
      #expect(thread.stackEvent(Job(number: 20 + index)))
    }
    let handled = jobs.log.entries(atLeast: 8).dropFirst(2)
    #expect(handled.allSatisfy { $0.thread == $0.number % 10 })
    jobs.pool.cancel()
    jobs.pool.join()
    #expect(!jobs.pool.queueEvent(Job()))
    #expect(!threads[0].queueEvent(Job()))
  }

  @Test("D4: a callback that comes or goes later changes who takes part", arguments: balances)
  func laterCallbacks(_ kind: (EventCentral.Core, Balance)) {
    let jobs = JobPool(kind.0, 3, kind.1.make())
    let log = Log<Handled>()
    #expect(Ping().queue(on: jobs.central) == 0)
    let threads = jobs.pool.withThreads { $0 }
    func listen(_ index: Int) -> any EventListenerHandling {
      threads[index].addEventCallback { (event: Ping) in
        log.append(Handled(thread: index, number: event.number))
      }
    }
    /// Sends four events and returns which threads have handled them. In a shared pool a thread that
    /// has no callback may take one and skip it.
    func send(from number: Int) -> Set<Int> {
      for number in number..<number + 4 {
        #expect(Ping(number: number).queue(on: jobs.central) == 1)
      }
      let counted = UInt64(number + 4)
      #expect(
        waitUntil { jobs.pool.statistics.delivered + jobs.pool.statistics.skipped == counted })
      let handled = log.entries.filter { $0.number >= number }
      #expect(Set(handled.map(\.number)).count == handled.count)
      #expect(kind.1 == .shared || handled.count == 4)
      return Set(handled.map(\.thread))
    }
    let first = listen(2)
    #expect(send(from: 0).isSubset(of: [2]))
    let second = listen(0)
    let both = send(from: 4)
    #expect(both.isSubset(of: [0, 2]))
    #expect(kind.1 != .roundRobin || both == [0, 2])
    // All threads have a callback: now nothing is skipped in a shared pool either.
    let third = listen(1)
    let skipped = jobs.pool.statistics.skipped
    #expect(kind.1 == .shared || skipped == 0)
    #expect(!send(from: 8).isEmpty)
    #expect(log.entries.filter { $0.number >= 8 }.count == 4)
    #expect(jobs.pool.statistics.skipped == skipped)
    first.remove()
    third.remove()
    #expect(send(from: 12).isSubset(of: [0]))
    second.removeAndWait()
    #expect(Ping().queue(on: jobs.central) == 0)
    // The type that all threads handle is as it was.
    #expect(Job().queue(on: jobs.central) == 1)
    jobs.pool.cancel()
  }

  @Test("D7: a handler dispatches to its own pool", arguments: balances)
  func handlerDispatches(_ kind: (EventCentral.Core, Balance)) {
    let jobs = JobPool(kind.0, 3, kind.1.make()) { thread, job in
      if job.number < 500 { Job(number: job.number + 1).queue(on: thread.central) }
    }
    Job(number: 0).queue(on: jobs.central)
    #expect(jobs.log.entries(atLeast: 501).map(\.number).sorted() == Array(0...500))
    jobs.pool.cancel()
  }

  @Test("two pools of one class on one central get every event each", arguments: cores)
  func twoPools(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let logs = [Log<Handled>(), Log<Handled>()]
    let pools = logs.map { log in
      EventPool(capacity: 2, on: central) { index in JobThread(index, log) }
    }
    for number in 0..<10 { #expect(Job(number: number).queue(on: central) == 2) }
    for log in logs {
      #expect(log.entries(atLeast: 10).map(\.number).sorted() == Array(0..<10))
    }
    pools.forEach { $0.cancel() }
  }

  @Test(
    "D4: in a balanced pool one event waits on each thread for latest-only callbacks",
    arguments: cores)
  func latestOnly(core: EventCentral.Core) {
    struct ByNumber: EventPoolBalancing {
      func chooseThread(for choice: borrowing EventPoolChoice) -> Int {
        (choice.withEvent(of: Ping.self) { event in event.number } ?? 0) % choice.count
      }
    }
    let central = EventCentral(core: core)
    let (log, plain) = (Log<Handled>(), Log<Int>())
    let pool = EventPool<EventThread>(capacity: 2, balancer: ByNumber(), on: central) { index in
      let thread = EventThread()
      thread.addEventCallback(
        { (event: Ping) in log.append(Handled(thread: index, number: event.number)) },
        interestedIn: .latestOnly)
      // This callback has another receiver: the pool chooses a thread for each of the two.
      thread.addEventCallback { (event: Ping) in plain.append(event.number) }
      return thread
    }
    let held = pool.holdAll()
    for number in 0..<1_000 { #expect(Ping(number: number).queue(on: central) == 2) }
    pool.capacity = 1
    for number in 1_000..<1_100 { Ping(number: number).queue(on: central) }
    held.forEach { $0.letGo() }
    #expect(plain.entries(atLeast: 1_100).sorted() == Array(0..<1_100))
    // The retired thread had the newest event of its half, the other one the newest of all.
    #expect(waitUntil { pool.statistics.threads.count == 1 })
    let latest = log.entries(atLeast: 2)
    #expect(Set(latest.map(\.number)) == [999, 1_099])
    #expect(waitUntil { pool.statistics.skipped == 1_098 })
    // Every promise is accounted for, so that the pool comes to its end.
    #expect(pool.drain())
    #expect(pool.statistics.delivered == 2 + 2 + 1_100)
  }

  @Test("a listener that a handler of the pool registers is no part of the pool", arguments: cores)
  func listenerInAHandler(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let (log, registered) = (Log<Int>(), Log<any EventListenerHandling>())
    let ready = Gate()
    let pool = EventPool<EventThread>(capacity: 2, on: central) { _ in
      let thread = EventThread()
      thread.addEventCallback { (_: Job) in
        registered.append(
          Ping.addListener(nil, { (event: Ping) in log.append(event.number) }, on: central))
        ready.open()
      }
      return thread
    }
    Job().queue(on: central)
    ready.pass()
    // The listener gets every event on the thread of its handler; the pool has no callback for Ping.
    for number in 0..<10 { #expect(Ping(number: number).queue(on: central) == 1) }
    #expect(log.entries(atLeast: 10) == Array(0..<10))
    registered.take().forEach { $0.remove() }
    pool.cancel()
  }
}
