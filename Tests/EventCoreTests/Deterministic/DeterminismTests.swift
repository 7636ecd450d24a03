// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("Determinism: a seed decides what runs when")
struct DeterminismTests {
  struct Number: Eventable { var value = 0 }

  @Test("seeds lead to every order of two threads that have an event each", arguments: cores)
  func everyOrder(core: EventCentral.Core) {
    var orders: Set<[String]> = []
    for seed in UInt64(0)..<200 {
      let world = EventCentral(deterministic: seed, core: core)
      let threads = ["a", "b", "c"].map { name in
        let thread = EventThread(on: world, name: name)
        thread.addEventCallback { (_: Number) in }
        return thread
      }
      let trace = world.trace {
        Number().queue(on: world)
        #expect(world.run() == 3)
      }
      orders.insert(trace.entries.map(\.receiver))
      for thread in threads { thread.cancel() }
    }
    #expect(orders.count == 6)
  }

  @Test("seeds lead to every distribution of two events over two threads of a shared pool", arguments: cores)
  func everyWorker(core: EventCentral.Core) {
    final class Worker: EventThread, @unchecked Sendable {
      override func registerEventListeners() { addEventCallback { (_: Number) in } }
    }
    var orders: Set<[String]> = []
    for seed in UInt64(0)..<100 {
      let world = EventCentral(deterministic: seed, core: core)
      let pool = EventPool<Worker>(capacity: 2, balancer: .shared, on: world, name: "w") { _ in Worker() }
      let trace = world.trace {
        Number().queue(on: world)
        Number().queue(on: world)
        #expect(world.run() == 2)
      }
      orders.insert(trace.entries.map(\.receiver))
      pool.cancel()
    }
    #expect(orders == [["w-0", "w-0"], ["w-0", "w-1"], ["w-1", "w-0"], ["w-1", "w-1"]])
  }

  @Test("a keyed pool chooses the same threads in each process, though hash values differ", arguments: cores)
  func keyedPools(core: EventCentral.Core) {
    /// Hashes as in the process of a number.
    struct Key: Hashable, Sendable {
      let id: Int
      let process: Int
    }
    struct Order: Eventable { let customer: Key }
    struct Payment: Conflatable {
      let customer: Key
      var conflationKey: Key { customer }
    }
    final class Cashier: EventThread, @unchecked Sendable {
      // It adds no state.
      override func registerEventListeners() {
        addEventCallback { (_: Order) in }
        addEventCallback({ (_: Payment) in }, interestedIn: .latestPerKey)
      }
    }
    let traces = (0..<5).map { process in
      let world = EventCentral(deterministic: 7, core: core)
      let balancer = EventPoolKeyedBalancer { (order: Order) in order.customer }
        .keyed { (payment: Payment) in payment.customer }
      let pool = EventPool<Cashier>(capacity: 5, balancer: balancer, on: world, name: "cashier") { _ in Cashier() }
      defer { pool.cancel() }
      return world.trace {
        for number in 0..<60 {
          // Each key first by one type or the other, and again by the other one.
          let key = Key(id: number * 7 % 20, process: process)
          if number % 3 == 0 { Payment(customer: key).queue(on: world) } else { Order(customer: key).queue(on: world) }
        }
        world.run()
      }
    }
    #expect(Set(traces[0].entries.map(\.receiver)).count == 5)
    for trace in traces { #expect(trace == traces[0]) }
  }

  @Test("D1: within each receiver the most urgent event comes first, whatever the seed", arguments: cores)
  func lanes(core: EventCentral.Core) {
    for seed in UInt64(0)..<50 {
      let world = EventCentral(deterministic: seed, core: core)
      let (first, second) = (Log<Int>(), Log<Int>())
      let threads = [first, second].map { log in
        let thread = EventThread(on: world)
        thread.addEventCallback { (number: Number) in
          log.append(number.value)
          // Overtakes the backlog.
          if number.value == 3 { Number(value: 99).stack(on: world) }
        }
        return thread
      }
      for value in 0..<4 { Number(value: value).queue(priority: value < 2 ? .low : .normal, on: world) }
      world.run()
      for log in [first, second] {
        // The second thread's own 3 comes at its own time, so that it gets a 99 before or after that.
        #expect(log.entries.filter { $0 != 99 } == [2, 3, 0, 1])
        #expect(log.entries.count == 6)
      }
      for thread in threads { thread.cancel() }
    }
  }

  @Test("a run handles as many events as it is told to, and at 0 none", arguments: cores)
  func limits(core: EventCentral.Core) {
    let world = EventCentral(deterministic: 1, core: core)
    let thread = EventThread(on: world)
    thread.addEventCallback { (_: Number) in }
    #expect(world.run() == 0)
    for value in 0..<10 { Number(value: value).queue(on: world) }
    #expect(world.run(limit: 0) == 0)
    #expect(world.run(limit: 1) == 1)
    #expect(thread.eventCount == 9)
    #expect(world.run(limit: 3) == 3)
    #expect(world.run(limit: 7) == 6)
    #expect(thread.statistics.delivered == 10)
    thread.cancel()
    Number().queue(on: world)
    #expect(world.run() == 0)
  }

  @Test("the limit of a run holds for a listener of another source on a thread, too", arguments: cores)
  func limitOfGuest(core: EventCentral.Core) {
    struct Start: Eventable {}
    let world = EventCentral(deterministic: 1, core: core)
    let (thread, source, log) = (EventThread(on: world), EventListener(on: world), Log<Int>())
    thread.addEventCallback { (_: Start) in
      Number.addListener(nil, { log.append($0.value) }, executeOn: .requesterThread, on: source)
    }
    thread.queueEvent(Start())
    #expect(world.run() == 1)
    for value in 0..<100 { source.queueEvent(Number(value: value)) }
    for count in 1...100 {
      #expect(world.run(limit: 1) == 1)
      #expect(log.entries.count == count)
    }
    #expect(world.run() == 0)
    // Also if the source belongs to another central; and a run for one event counts as one.
    let other = EventListener(on: EventCentral(core: core))
    struct StartOther: Eventable {}
    thread.addEventCallback { (_: StartOther) in
      Number.addListener(nil, { log.append($0.value) }, executeOn: .requesterThread, on: other)
    }
    thread.queueEvent(StartOther())
    #expect(world.run() == 1)
    for value in 0..<3 { other.queueEvent(Number(value: value)) }
    #expect(world.run(limit: 1) == 1)
    #expect(log.entries.count == 101)
    #expect(world.run() == 2)
    #expect(log.entries.count == 103)
    thread.cancel()
    _ = world.run()
  }

  @Test("everything runs on the thread that calls run", arguments: cores)
  func oneThread(core: EventCentral.Core) {
    let world = EventCentral(deterministic: 3, core: core)
    let thread = EventThread(on: world)
    let places = Log<UInt>()
    thread.addEventCallback { (_: Number) in places.append(currentThread()) }
    for place in [ExecuteEventOn.listenerThread, .taskThread, .dispatchQueue(.global())] {
      Number.addListener(nil, { _ in places.append(currentThread()) }, executeOn: place, on: world)
    }
    let node = EventNode(core: core)
    node.addHandler(.onRaise, executeOn: thread) { (_: Number) in places.append(currentThread()) }
    node.raise(event: Number())
    Number().queue(on: world)
    #expect(places.entries.isEmpty)
    world.run()
    #expect(places.entries == Array(repeating: currentThread(), count: 5))
    thread.cancel()
  }

  @Test("D9, D10: listeners, threads and pools end in a deterministic central as in any other", arguments: cores)
  func endings(core: EventCentral.Core) {
    final class Owner: Sendable {}
    final class Worker: EventThread, @unchecked Sendable {
      override func registerEventListeners() { addEventCallback { (_: Held) in } }
    }
    struct Held: Eventable { let token: Lifetime.Token }
    let lifetime = Lifetime()
    let world = EventCentral(deterministic: 5, core: core)
    var owner: Owner? = Owner()
    let count = Log<Int>()
    Number.addListener(owner, { _ in count.append(1) }, executeOn: .listenerThread, on: world)
    Number().queue(on: world)
    world.run()
    owner = nil
    Number().queue(on: world)
    world.run()
    #expect(count.entries == [1])
    for balancer: any EventPoolBalancing in [.roundRobin, .shared] {
      var pool: EventPool<Worker>? = EventPool(capacity: 3, balancer: balancer, on: world) { _ in Worker() }
      for _ in 0..<5 { Held(token: lifetime.token()).queue(on: world) }
      #expect(world.run(limit: 2) == 2)
      pool = nil
      #expect(lifetime.waitUntilNone())
      #expect(pool == nil)
    }
    let thread = EventThread(on: world)
    thread.addEventCallback { (_: Held) in }
    for _ in 0..<5 { Held(token: lifetime.token()).queue(on: world) }
    #expect(thread.drain())
    #expect(thread.statistics.delivered == 5)
    thread.join()
    // Retired threads of a pool handle what was promised to them.
    let pool = EventPool<Worker>(capacity: 4, on: world) { _ in Worker() }
    for _ in 0..<8 { Held(token: lifetime.token()).queue(on: world) }
    pool.capacity = 1
    #expect(world.run() == 8)
    #expect(pool.withThreads { $0.count } == 1)
    pool.join(afterCancel: true)
    #expect(lifetime.waitUntilNone())
  }

  @Test("D9: a drained pool leaves nothing behind, also what its threads were subscribed to", arguments: cores)
  func drainedPool(core: EventCentral.Core) {
    struct Held: Eventable { let token: Lifetime.Token }
    final class Worker: EventThread, @unchecked Sendable {
      override func registerEventListeners() { addEventCallback { (_: Held) in } }
    }
    let (world, lifetime) = (EventCentral(deterministic: 7, core: core), Lifetime())
    let pool = EventPool<Worker>(capacity: 2, balancer: .shared, on: world, name: "w") { _ in
      let (thread, token) = (Worker(), lifetime.token())
      thread.addEventCallback { (_: Number) in withExtendedLifetime(token) {} }
      return thread
    }
    Held(token: lifetime.token()).queue(on: world)
    #expect(pool.drain())
    #expect(lifetime.waitUntilNone())
  }

  @Test("D9: a central that is released with events that wait leaves nothing behind", arguments: cores)
  func releasedEarly(core: EventCentral.Core) {
    struct Held: Eventable { let token: Lifetime.Token }
    let lifetime = Lifetime()
    do {
      let world = EventCentral(deterministic: 6, core: core)
      let thread = EventThread(on: world)
      thread.addEventCallback { (_: Held) in }
      Held.addListener(nil, { _ in }, executeOn: .listenerThread, on: world)
      Held(token: lifetime.token()).queue(on: world)
    }
    #expect(lifetime.waitUntilNone())
  }

  @Test("D6: a handler that is removed is not called, and removals need no wait", arguments: cores)
  func removals(core: EventCentral.Core) {
    let world = EventCentral(deterministic: 8, core: core)
    let thread = EventThread(on: world)
    let handle = thread.addEventCallback { (_: Number) in _ = Issue.record("D6: called after its removal") }
    Number().queue(on: world)
    handle.removeAndWait()
    #expect(world.run() == 1)
    #expect(thread.statistics.skipped == 1)
    thread.cancel()
  }

  @Test("D5: a dispatch never waits for a place, since nothing would make one meanwhile", arguments: cores)
  func fullMailboxes(core: EventCentral.Core) {
    final class Worker: EventThread, @unchecked Sendable {
      override func registerEventListeners() { addEventCallback { (_: Number) in } }
    }
    let world = EventCentral(deterministic: 1, core: core)
    let mailbox = EventMailboxCapacity.bounded(1, whenFull: .block(upTo: .seconds(30)))
    let pools = [EventPoolRoundRobinBalancer(), EventPoolSharedBalancer()].map { (balancer: any EventPoolBalancing) in
      EventPool<Worker>(balancer: balancer, mailbox: mailbox, on: world) { _ in Worker() }
    }
    let thread = EventThread(on: world, mailbox: mailbox)
    thread.addEventCallback { (_: Number) in }
    let listener = EventListener(on: world, mailbox: mailbox)
    Number.addListener(nil, { _ in }, executeOn: .listenerThread, on: listener)
    let pump = EventPump(on: world, mailbox: mailbox)
    pump.addEventCallback { (_: Number) in }
    #expect(Number().queue(on: world) == 5)
    let time = ContinuousClock().measure { #expect(Number().queueWithOutcome(on: world).refused == 5) }
    #expect(time < .seconds(15))
    #expect(world.run() == 4)
    #expect(pump.run().handled == 1)
    for pool in pools { pool.cancel() }
    thread.cancel()
    listener.end()
  }

  @Test("callbacks of a pool's threads get events in the order of their registration", arguments: cores)
  func callbackOrder(core: EventCentral.Core) {
    // They stay, so that each has other addresses.
    var worlds: [(pool: EventPool<EventThread>, trace: EventTrace, calls: [String])] = []
    for _ in 0..<100 {
      let (world, log) = (EventCentral(deterministic: 1, core: core), Log<String>())
      let pool = EventPool(capacity: 2, on: world) { _ in
        let thread = EventThread()
        thread.addEventCallback { (number: Number) in log.append("each: \(number.value)") }
        for name in ["first", "second"] {
          thread.addEventCallback(
            { (number: Number) in log.append("\(name): \(number.value)") }, interestedIn: .latestOnly)
        }
        return thread
      }
      let trace = world.trace {
        for value in 0..<3 { Number(value: value).queue(on: world) }
        world.run()
      }
      worlds.append((pool, trace, log.entries))
    }
    #expect(Set(worlds.map(\.calls)).count == 1)
    #expect(worlds.allSatisfy { $0.trace == worlds[0].trace })
    for world in worlds { world.pool.cancel() }
  }

  @Test("a task awaits the end of a thread without anybody else running the central", arguments: cores)
  func asynchronousEnds(core: EventCentral.Core) async {
    let world = EventCentral(deterministic: 9, core: core)
    let thread = EventThread(on: world)
    let count = Log<Int>()
    thread.addEventCallback { (number: Number) in
      count.append(number.value)
      if number.value < 3 { thread.queueEvent(Number(value: number.value + 1)) }
    }
    Number(value: 0).queue(on: world)
    world.run()
    Number(value: 3).queue(on: world)
    #expect(await thread.drain())
    await thread.join()
    #expect(count.entries == [0, 1, 2, 3, 3])
  }

  @Test("the MainActor's handlers run inside a run on the main thread", arguments: cores)
  @MainActor func mainActor(core: EventCentral.Core) {
    final class Screen: UIEventThread, @unchecked Sendable {}
    let world = EventCentral(deterministic: 2, core: core)
    let (screen, bounded) = (Screen(on: world), Screen(on: world, mailbox: .bounded(8, whenFull: .refuse)))
    var count = 0
    for screen in [screen, bounded] {
      screen.addEventCallback { @MainActor @Sendable (_: Number) in count += 1 }
    }
    Number.addListener(nil, on: world) { _ in count += 1 }
    Number().queue(on: world)
    #expect(count == 0)
    #expect(world.run() == 3)
    #expect(count == 3)
    Number().queue(on: world)
    #expect(screen.drain() && bounded.drain())
    #expect(count >= 5)
  }

  @Test("scheduled events run at their time on the manual clock, as do those of a fixed interval", arguments: cores)
  func schedules(core: EventCentral.Core) {
    let clock = ManualClock()
    let world = EventCentral(deterministic: 4, core: core, clock: clock)
    let thread = EventThread(on: world)
    let times = Log<DispatchTime>()
    thread.addEventCallback { (_: Number, _, time) in times.append(time) }
    let start = world.now
    Number().scheduleQueue(every: .seconds(10), limit: 3, on: world)
    #expect(world.run() == 0)
    for second in 1...40 {
      clock.advance(by: .seconds(1))
      #expect(world.run() == (second % 10 == 0 && second <= 30 ? 1 : 0))
    }
    #expect(times.entries == [10, 20, 30].map { start + .seconds($0) })
    thread.cancel()
  }

  @Test("a run while a thread of a shared pool is made leaves what waits for the pool")
  func runWhileMaking() {
    let world = EventCentral(deterministic: 1)
    let pool = EventPool<EventThread>(capacity: 1, balancer: .shared, on: world) { _ in
      let thread = EventThread()
      thread.addEventCallback { (_: Number) in }
      #expect(Number().queue(on: world) == 1)
      #expect(world.run() == 0)
      return thread
    }
    #expect(world.run() == 1)
    pool.cancel()
  }
}

extension EventPool {
  fileprivate func join(afterCancel: Bool) {
    if afterCancel { cancel() }
    join()
  }
}
