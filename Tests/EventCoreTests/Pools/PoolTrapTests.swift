// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

/// Each mistake is made in a process of its own.
@Suite("D12: mistakes with pools trap")
struct PoolTrapTests {
  @Test("a pool without a thread")
  func noThread() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = EventPool<EventThread>(capacity: 0, on: EventCentral())
    }
    expectMessage(result, "An EventPool has at least one thread")
  }

  @Test("drain on a thread of the pool")
  func drainingOneself() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let pools = Log<EventPool<JobThread>>()
      let jobs = JobPool(.default, 2) { _, _ in pools.entries[0].drain() }
      pools.append(jobs.pool)
      Job().queue(on: jobs.central)
      jobs.pool.join()
    }
    expectMessage(result, "drain(until:) waits for the end of a pool's threads")
  }

  @Test("drain in the closure that makes a thread")
  func drainingWhileMaking() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let (pools, log) = (Log<EventPool<JobThread>>(), Log<Handled>())
      let pool = EventPool<JobThread>(capacity: 1, on: EventCentral()) { index in
        if index == 1 { pools.entries[0].drain() }
        return JobThread(index, log)
      }
      pools.append(pool)
      pool.capacity = 2
    }
    expectMessage(result, "in the closure that makes them, or as one of their listeners")
  }

  @Test("join as an event that the end of the pool left is freed")
  func joiningWhileFreeing() async {
    final class Joining: Sendable {
      let pool: EventPool<JobThread>
      init(_ pool: EventPool<JobThread>) { self.pool = pool }
      deinit { pool.join() }
    }
    struct Last: Eventable { let payload: Joining }
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let log = Log<Handled>()
      let central = EventCentral()
      let pool = EventPool<JobThread>(capacity: 1, balancer: .shared, on: central) { index in
        let thread = JobThread(index, log)
        thread.addEventCallback { (_: Last) in }
        return thread
      }
      let entered = Gate()
      let leave = Gate()
      Job(entered: entered, leave: leave).queue(on: central)
      entered.pass()
      Last(payload: Joining(pool)).queue(on: central)
      pool.withThreads { $0[0].cancel() }
      leave.open()
      pool.cancel()
      pool.join()
    }
    expectMessage(result, "or an event that the pool's end left, was freed, where it would wait for itself")
  }

  @Test("a closure that makes a thread for the main thread")
  func mainThreadInAClosure() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = EventPool<EventThread>(capacity: 1, on: EventCentral()) { _ in UIEventThread() }
    }
    expectMessage(result, "The threads of an EventPool work side by side, and UIEventThread is a UIEventThread")
  }

  @Test("a balancer that chooses a thread that is not there")
  func outOfRange() async {
    struct Beyond: EventPoolBalancing {
      func chooseThread(for choice: borrowing EventPoolChoice) -> Int { choice.count }
    }
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let jobs = JobPool(.default, 2, Beyond())
      Job().queue(on: jobs.central)
    }
    expectMessage(result, "there were 2, and Beyond chose number 2")
  }

  @Test("a closure that returns a thread it has not made, or one of another central")
  func strangeThreads() async {
    let old = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let thread = EventThread()
      _ = EventPool(capacity: 1) { _ in thread }
    }
    expectMessage(old, "An EventPool's closure makes a new thread for each call")
    let elsewhere = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = EventPool(capacity: 1, on: EventCentral()) { _ in EventThread(on: EventCentral()) }
    }
    expectMessage(elsewhere, "A thread of a pool gets its events from the pool")
  }

  @Test("a pool of a class without threads")
  func noThreadsOfTheirOwn() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = EventPool<UIEventThread>(capacity: 2, on: EventCentral())
    }
    expectMessage(result, "The threads of an EventPool work side by side")
  }

  @Test("capacity below 1, set later", arguments: cores, [0, -1])
  func capacitySetTooLow(core: EventCentral.Core, capacity: Int) async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) { [core = core.rawValue as String, capacity = capacity as Int] in
      let jobs = JobPool(EventCentral.Core(rawValue: core)!, 2)
      jobs.pool.capacity = capacity
    }
    expectMessage(
      result,
      "has at least one thread, and whoever set its capacity asked for \(capacity): ask for 1")
  }

  /// A scaler that always wants the same number of threads.
  struct Stubborn: EventPoolScaling {
    let capacity: Int
    var interval: Duration? { nil }
    var restingCapacity: Int { 1 }
    func capacity(for reading: EventPoolReading) -> Int { capacity }
  }

  @Test("a scaler that wants fewer than one thread", arguments: cores, [0, -1])
  func scalerWantsNone(core: EventCentral.Core, capacity: Int) async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) { [core = core.rawValue as String, capacity = capacity as Int] in
      let jobs = JobPool(
        EventCentral.Core(rawValue: core)!, 2, scaler: Stubborn(capacity: capacity))
      jobs.pool.rescale()
    }
    expectMessage(result, "has at least one thread, and Stubborn asked for \(capacity): ask for 1")
  }

  @Test(
    "more threads than a shared mailbox serves: from the maker, set later, or by a scaler",
    arguments: cores)
  func tooManyForSharing(core: EventCentral.Core) async {
    let made = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) { [core = core.rawValue as String] in
      _ = JobPool(EventCentral.Core(rawValue: core)!, 129, EventPoolSharedBalancer())
    }
    expectMessage(
      made, "has at most 128 threads, and its maker asked for 129. Ask for fewer, or balance")
    let set = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) { [core = core.rawValue as String] in
      let jobs = JobPool(EventCentral.Core(rawValue: core)!, 1, EventPoolSharedBalancer())
      jobs.pool.capacity = 129
    }
    expectMessage(set, "has at most 128 threads, and whoever set its capacity asked for 129")
    let scaled = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) { [core = core.rawValue as String] in
      let jobs = JobPool(
        EventCentral.Core(rawValue: core)!, 1, EventPoolSharedBalancer(),
        scaler: Stubborn(capacity: 129))
      jobs.pool.rescale()
    }
    expectMessage(scaled, "has at most 128 threads, and Stubborn asked for 129")
    let mayScale = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) { [core = core.rawValue as String] in
      _ = JobPool(
        EventCentral.Core(rawValue: core)!, 1, EventPoolSharedBalancer(),
        scaler: EventPoolDynamicScaler(maximum: 129))
    }
    expectMessage(
      mayScale, "128 threads, and its EventPoolDynamicScaler, at its maximum, asked for 129")
  }

  @Test("a pool that balances may have more threads than one that shares", arguments: cores)
  func manyInABalancedPool(core: EventCentral.Core) {
    let jobs = JobPool(core, 1)
    jobs.pool.capacity = 129
    #expect(jobs.pool.withThreads { $0.count } == 129)
    jobs.pool.cancel()
  }
}
