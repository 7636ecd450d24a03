// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Synchronization
import Testing

@Suite("Pools: which thread gets an event")
struct PoolBalancingTests {
  @Test(
    "D4: each event goes to exactly one thread, for n-1, n, n+1 and 3n events over n threads",
    arguments: balances, [1, 2, 3, 5])
  func exactlyOne(_ kind: (EventCentral.Core, Balance), threads: Int) {
    let jobs = JobPool(kind.0, threads, kind.1.make())
    var sent = 0
    for burst in [threads - 1, threads, threads + 1, 3 * threads, 1_000] {
      for _ in 0..<burst {
        #expect(Job(number: sent, key: sent).queue(on: jobs.central) == 1)
        sent += 1
      }
      #expect(jobs.log.entries(atLeast: sent).map(\.number).sorted() == Array(0..<sent))
    }
    #expect(jobs.pool.drain())
    #expect(jobs.pool.statistics.delivered == UInt64(sent))
    #expect(jobs.pool.statistics.refused == 0)
  }

  @Test(
    "D4: an event is superseded if its latest-only callback is removed while its thread is chosen",
    arguments: cores)
  func removedWhileChosen(core: EventCentral.Core) {
    struct Ping: Eventable {}
    final class RemovingBalancer: EventPoolBalancing {
      // Of the first thread. Given up with the removal, since it leads to the pool, which has the balancer.
      let handle = Mutex<(any EventListenerHandling)?>(nil)
      func chooseThread(for choice: borrowing EventPoolChoice) -> Int {
        handle.withLock { $0.take() }?.remove()
        return 0
      }
    }
    let central = EventCentral(core: core)
    let balancer = RemovingBalancer()
    // With a single thread there is nothing to choose.
    let pool = EventPool(capacity: 2, balancer: balancer, on: central) { index in
      let thread = EventThread()
      let handle = thread.addEventCallback(
        { (_: Ping) in Issue.record("It was removed.") }, interestedIn: .latestOnly)
      if index == 0 { balancer.handle.withLock { $0 = handle } }
      return thread
    }
    #expect(Ping().queue(on: central) == 1)
    #expect(pool.drain())
    let statistics = pool.statistics
    #expect(statistics.delivered == 0 && statistics.skipped == 1 && statistics.refused == 0)
  }

  @Test(
    "a latest-only callback beside another one takes no turn from it", arguments: cores, [2, 3, 4])
  func roundRobinBesideLatest(core: EventCentral.Core, capacity: Int) {
    struct Ping: Eventable { var number = 0 }
    let central = EventCentral(core: core)
    let log = Log<(index: Int, number: Int)>()
    let newest = Log<Int>()
    let pool = EventPool(capacity: capacity, on: central) { index in
      let thread = EventThread()
      thread.addEventCallback { (event: Ping) in log.append((index, event.number)) }
      thread.addEventCallback({ (_: Ping) in newest.append(index) }, interestedIn: .latestOnly)
      return thread
    }
    for number in 0..<3 * capacity {
      #expect(Ping(number: number).queue(on: central) == 2)
      // One event at a time, so that each thread has its turn in the latest-only callbacks, too.
      _ = log.entries(atLeast: number + 1)
      _ = newest.entries(atLeast: number + 1)
    }
    let turns = Array(0..<capacity)
    #expect(log.entries.map(\.index) == turns + turns + turns)
    #expect(newest.entries == turns + turns + turns)
    pool.cancel()
  }

  @Test(
    "D4: an event goes to one thread's ordinary callback, in whichever order the threads register others",
    arguments: cores, [EventDispatchMethod.queue, .stack])
  func differentOrders(core: EventCentral.Core, method: EventDispatchMethod) {
    struct Ping: Eventable { var number = 0 }
    let balancers: [any EventPoolBalancing] = [EventPoolRoundRobinBalancer(), EventPoolLowestLoadBalancer()]
    for balancer in balancers {
      for isOnlyOne in [false, true] {
        let central = EventCentral(core: core)
        let log = Log<Int>()
        let pool = EventPool(capacity: 2, balancer: balancer, on: central) { index in
          let thread = EventThread()
          let latestFirst = index == 0
          if latestFirst { thread.addEventCallback({ (_: Ping) in }, interestedIn: .latestOnly) }
          thread.addEventCallback { (event: Ping) in log.append(event.number) }
          if !latestFirst, !isOnlyOne { thread.addEventCallback({ (_: Ping) in }, interestedIn: .latestOnly) }
          return thread
        }
        for number in 0..<100 {
          let ping = Ping(number: number)
          #expect((method == .queue ? ping.queue(on: central) : ping.stack(on: central)) == 2)
        }
        #expect(pool.drain())
        #expect(log.entries.sorted() == Array(0..<100))
      }
    }
  }

  @Test("events without a key take all threads in turn, beside latest-only callbacks too", arguments: cores)
  func unkeyedBesideLatest(core: EventCentral.Core) {
    struct Ping: Eventable { var number = 0 }
    let central = EventCentral(core: core)
    let (log, newest) = (Log<Int>(), Log<Int>())
    let pool = EventPool(
      capacity: 2, balancer: EventPoolKeyedBalancer { (job: Job) in job.key }, on: central
    ) { index in
      let thread = EventThread()
      thread.addEventCallback { (_: Ping) in log.append(index) }
      thread.addEventCallback({ (_: Ping) in newest.append(index) }, interestedIn: .latestOnly)
      return thread
    }
    for number in 0..<6 {
      #expect(Ping(number: number).queue(on: central) == 2)
      _ = log.entries(atLeast: number + 1)
      _ = newest.entries(atLeast: number + 1)
    }
    #expect(log.entries == [0, 1, 0, 1, 0, 1])
    #expect(newest.entries == [0, 1, 0, 1, 0, 1])
    pool.cancel()
  }

  @Test("round robin takes the threads in turn, past the last one too", arguments: cores)
  func roundRobinInTurn(core: EventCentral.Core) {
    let jobs = JobPool(core, 3)
    let held = jobs.holdAll()
    for number in 0..<10 { Job(number: number).queue(on: jobs.central) }
    held.forEach { $0.letGo() }
    let handled = jobs.log.entries(atLeast: 10)
    // The events of `holdAll` went straight to the threads, and took no turn.
    #expect(handled.allSatisfy { $0.thread == $0.number % 3 })
    jobs.pool.cancel()
  }

  @Test(
    "lowest load finds the thread with the least to do, the running handler included",
    arguments: cores)
  func lowestLoadIsLowest(core: EventCentral.Core) {
    let jobs = JobPool(core, 3, EventPoolLowestLoadBalancer())
    let threads = jobs.pool.withThreads { $0 }
    let (entered, leave) = ((0..<2).map { _ in Gate() }, Gate())
    // Thread 0 and 1 are inside a handler, with nothing waiting; thread 2 is idle.
    for index in 0..<2 {
      threads[index].queueEvent(Job(number: -1, entered: entered[index], leave: leave))
      entered[index].pass()
    }
    let gate = Gate()
    Job(number: 0, entered: gate, leave: leave).queue(on: jobs.central)
    gate.pass()
    #expect(threads.map(\.eventCount) == [0, 0, 0])
    // All threads are equally busy, so the first one gets the event, and then the others.
    for number in 1...6 {
      Job(number: number).queue(on: jobs.central)
    }
    #expect(threads.map(\.eventCount) == [2, 2, 2])
    threads[1].queueEvent(Job(number: 10))
    threads[1].queueEvent(Job(number: 11))
    for number in 7...10 { Job(number: number).queue(on: jobs.central) }
    #expect(threads.map(\.eventCount) == [4, 4, 4])
    for _ in 0..<3 { leave.open() }
    #expect(jobs.log.entries(atLeast: 15).first { $0.number == 0 }?.thread == 2)
    jobs.pool.cancel()
  }

  @Test("D2: events with one key are handled by one thread in their order", arguments: cores)
  func keyedKeepsOrder(core: EventCentral.Core) {
    let jobs = JobPool(core, 4, EventPoolKeyedBalancer { (job: Job) in job.key })
    let (keys, each) = (23, 60)
    for number in 0..<(keys * each) {
      Job(number: number, key: number % keys).queue(on: jobs.central)
    }
    let handled = jobs.log.entries(atLeast: keys * each)
    for key in 0..<keys {
      let ofKey = handled.filter { $0.number % keys == key }
      #expect(Set(ofKey.map(\.thread)).count == 1)
      #expect(ofKey.map(\.number) == (0..<each).map { key + $0 * keys })
    }
    // The 23 keys are not all on one thread, whatever hash this process has drawn.
    #expect(Set(handled.map(\.thread)).count > 1)
    jobs.pool.cancel()
  }

  @Test("a key stays with its thread when another thread comes or goes", arguments: cores)
  func keysStay(core: EventCentral.Core) {
    let jobs = JobPool(core, 4, EventPoolKeyedBalancer(by: \Job.key))
    func threadOfKeys() -> [Int: Int] {
      _ = jobs.log.take()
      for key in 0..<100 { Job(number: key, key: key).queue(on: jobs.central) }
      let handled = jobs.log.entries(atLeast: 100)
      return Dictionary(uniqueKeysWithValues: handled.map { ($0.number, $0.thread) })
    }
    let before = threadOfKeys()
    jobs.pool.capacity = 5
    let more = threadOfKeys()
    #expect(before.allSatisfy { more[$0.key] == $0.value || more[$0.key] == 4 })
    jobs.pool.capacity = 4
    #expect(waitUntil { jobs.pool.statistics.threads.count == 4 })
    let gone = Set(0..<5).subtracting(jobs.pool.statistics.threads.map(\.index))
    let less = threadOfKeys()
    #expect(more.allSatisfy { less[$0.key] == $0.value || gone.contains($0.value) })
    jobs.pool.cancel()
  }

  @Test("a keyed balancer sends types without a key where another one says", arguments: cores)
  func keyedOtherwise(core: EventCentral.Core) {
    struct Other: Eventable { var number: Int }
    let central = EventCentral(core: core)
    let log = Log<Handled>()
    let pool = EventPool<EventThread>(
      capacity: 3,
      balancer: EventPoolKeyedBalancer(otherwise: LastBalancer()) { (job: Job) in job.key },
      on: central
    ) { index in
      let thread = EventThread()
      thread.addEventCallback { (other: Other) in
        log.append(Handled(thread: index, number: other.number))
      }
      return thread
    }
    for number in 0..<9 { Other(number: number).queue(on: central) }
    #expect(log.entries(atLeast: 9) == (0..<9).map { Handled(thread: 2, number: $0) })
    pool.cancel()
  }

  @Test("a balancer of the user's own sees count, loads, index, lane and event", arguments: cores)
  func ownBalancer(core: EventCentral.Core) {
    final class Watcher: EventPoolBalancing {
      struct Seen: Sendable, Equatable {
        var count: Int
        var loads: [Int]
        var indices: [Int]
        var priority: EventPriority
        var method: EventDispatchMethod
        var number: Int?
        var other: Bool
      }
      struct Other: Eventable {}
      let seen = Log<Seen>()
      func chooseThread(for choice: borrowing EventPoolChoice) -> Int {
        var (loads, indices): ([Int], [Int]) = ([], [])
        for number in 0..<choice.count {
          loads.append(choice.load(of: number))
          indices.append(choice.index(of: number))
        }
        let number = choice.withEvent(of: Job.self) { job in job.number }
        let other = choice.withEvent(of: Other.self) { _ in true }
        seen.append(
          Seen(
            count: choice.count, loads: loads, indices: indices, priority: choice.priority,
            method: choice.method, number: number, other: other ?? false))
        return 1
      }
    }
    let watcher = Watcher()
    let jobs = JobPool(core, 2, watcher)
    let held = jobs.holdAll()
    Job(number: 7).queue(priority: .low, on: jobs.central)
    Job(number: 8).stack(priority: .highest, on: jobs.central)
    #expect(
      watcher.seen.entries == [
        .init(
          count: 2, loads: [1, 1], indices: [0, 1], priority: .low, method: .queue, number: 7,
          other: false),
        .init(
          count: 2, loads: [1, 2], indices: [0, 1], priority: .highest, method: .stack, number: 8,
          other: false),
      ])
    held.forEach { $0.letGo() }
    #expect(
      jobs.log.entries(atLeast: 2) == [.init(thread: 1, number: 8), .init(thread: 1, number: 7)])
    jobs.pool.cancel()
  }

  @Test("D7: a balancer may dispatch, and change the pool it balances", arguments: cores)
  func balancerReenters(core: EventCentral.Core) {
    final class Growing: EventPoolBalancing {
      let grow = Log<@Sendable () -> Void>()
      func chooseThread(for choice: borrowing EventPoolChoice) -> Int {
        grow.take().forEach { $0() }
        return choice.count - 1
      }
    }
    let balancer = Growing()
    let jobs = JobPool(core, 2, balancer)
    balancer.grow.append { [jobs] in
      jobs.pool.capacity = 3
      Job(number: 1).queue(on: jobs.central)
    }
    Job(number: 0).queue(on: jobs.central)
    // The event that was being placed goes to one of the threads that were on offer; the nested one
    // finds the new thread, too.
    let handled = jobs.log.entries(atLeast: 2)
    #expect(handled.contains(.init(thread: 1, number: 0)))
    #expect(handled.contains(.init(thread: 2, number: 1)))
    jobs.pool.cancel()
  }

  @Test(
    "D2: a batch is spread like single events, and keeps its order on each thread",
    arguments: balances, [1, 2, 63, 64, 65, 200])
  func batches(_ kind: (EventCentral.Core, Balance), count: Int) {
    let jobs = JobPool(kind.0, 3, kind.1.make())
    #expect((0..<count).map { Job(number: $0, key: $0) }.queue(on: jobs.central) == count)
    let handled = jobs.log.entries(atLeast: count)
    #expect(handled.map(\.number).sorted() == Array(0..<count))
    if kind.1 != .shared {
      for thread in 0..<3 {
        let numbers = handled.filter { $0.thread == thread }.map(\.number)
        #expect(numbers == numbers.sorted())
      }
    }
    if kind.1 == .roundRobin {
      #expect(handled.allSatisfy { $0.thread == $0.number % 3 })
    }
    jobs.pool.cancel()
  }
}
