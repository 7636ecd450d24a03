// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
@testable import EventCore
import EventCoreTestSupport
import Synchronization
import Testing

@Suite("D9, D10: the end of pools")
struct PoolEndingTests {
  @Test(
    "D10: cancel finishes the handlers that run, and frees and counts what waits",
    arguments: balances)
  func cancelCounts(_ kind: (EventCentral.Core, Balance)) {
    let jobs = JobPool(kind.0, 3, kind.1.make())
    let held = jobs.holdAll()
    let lifetime = Lifetime()
    for number in 0..<60 {
      Job(number: number, key: number, token: lifetime.token()).queue(on: jobs.central)
    }
    #expect(jobs.pool.eventCount == 60)
    jobs.pool.cancel()
    #expect(Job(token: lifetime.token()).queue(on: jobs.central) == 0)
    held.forEach { $0.letGo() }
    jobs.pool.join()
    #expect(waitUntil { jobs.pool.statistics.threads.isEmpty })
    #expect(jobs.log.entries.isEmpty)
    #expect(lifetime.waitUntilNone())
    let statistics = jobs.pool.statistics
    // The three gates were delivered.
    #expect(statistics.delivered == 3)
    #expect(statistics.cancelled == 60)
    #expect(jobs.pool.eventCount == 0)
  }

  @Test("D10: drain handles what waits first", arguments: balances)
  func drainHandlesFirst(_ kind: (EventCentral.Core, Balance)) {
    let jobs = JobPool(kind.0, 3, kind.1.make())
    let held = jobs.holdAll()
    for number in 0..<300 { Job(number: number, key: number).queue(on: jobs.central) }
    runThread { held.forEach { $0.letGo() } }
    #expect(jobs.pool.drain(until: .now() + .seconds(60)))
    #expect(jobs.log.entries.map(\.number).sorted() == Array(0..<300))
    #expect(jobs.pool.statistics.cancelled == 0)
    #expect(Job().queue(on: jobs.central) == 0)
  }

  @Test("D10: a drain whose time is over frees the rest", arguments: balances)
  func drainGivesUp(_ kind: (EventCentral.Core, Balance)) {
    let jobs = JobPool(kind.0, 2, kind.1.make())
    let held = jobs.holdAll()
    for number in 0..<10 { Job(number: number, key: number).queue(on: jobs.central) }
    #expect(!jobs.pool.drain(until: .now()))
    held.forEach { $0.letGo() }
    jobs.pool.join()
    #expect(waitUntil { jobs.pool.statistics.cancelled == 10 })
  }

  @Test("D9: a pool that is released takes its idle threads along", arguments: balances)
  func releaseIdle(_ kind: (EventCentral.Core, Balance)) {
    let lifetime = Lifetime()
    let central = EventCentral(core: kind.0)
    for _ in 0..<20 {
      let log = Log<Handled>()
      let pool = EventPool(capacity: 3, balancer: kind.1.make(), on: central) { index in
        JobThread(index, log, token: lifetime.token())
      }
      Job(number: 1, token: lifetime.token()).queue(on: central)
      withExtendedLifetime(pool) {}
    }
    #expect(lifetime.waitUntilNone())
    #expect(waitUntil { Job().queue(on: central) == 0 })
  }

  @Test(
    "D9: a pool may be released while its threads are inside handlers and more waits",
    arguments: balances)
  func releaseBusy(_ kind: (EventCentral.Core, Balance)) {
    let (lifetime, log) = (Lifetime(), Log<Handled>())
    let central = EventCentral(core: kind.0)
    let (entered, leave) = ((0..<3).map { _ in Gate() }, (0..<3).map { _ in Gate() })
    let holder = Box(
      EventPool(capacity: 3, balancer: kind.1.make(), on: central) { index in
        JobThread(index, log, token: lifetime.token())
      })
    for number in 0..<3 {
      // The keyed and the custom balancer may choose one thread for two of them.
      Job(
        number: number, key: number, token: lifetime.token(), entered: entered[number],
        leave: leave[number]
      )
      .queue(on: central)
    }
    if kind.1 == .roundRobin || kind.1 == .shared { entered.forEach { $0.pass() } }
    for number in 3..<30 { Job(number: number, token: lifetime.token()).queue(on: central) }
    holder.value = nil
    #expect(Job(token: lifetime.token()).queue(on: central) == 0)
    leave.forEach { $0.open() }
    #expect(lifetime.waitUntilNone())
    #expect(log.entries.allSatisfy { $0.number < 3 })
    if kind.1 == .roundRobin || kind.1 == .shared { #expect(log.entries.count == 3) }
  }

  @Test(
    "D9: the last reference may go inside a handler of one of its own threads", arguments: balances)
  func releaseInsideAHandler(_ kind: (EventCentral.Core, Balance)) {
    let (lifetime, log) = (Lifetime(), Log<Handled>())
    let central = EventCentral(core: kind.0)
    let released = Gate()
    let holder = Box<EventPool<JobThread>>(nil)
    do {
      let pool = EventPool(capacity: 3, balancer: kind.1.make(), on: central) { index in
        JobThread(index, log, token: lifetime.token()) { thread, job in
          holder.value = nil
          // The handler's own thread object is still there.
          #expect(thread.central === central)
          released.open()
        }
      }
      holder.value = pool
    }
    Job(number: 1, token: lifetime.token()).queue(on: central)
    released.pass()
    #expect(lifetime.waitUntilNone())
    #expect(waitUntil { Job().queue(on: central) == 0 })
    #expect(log.entries.count == 1)
  }

  @Test(
    "D9: threads that bound methods keep alive end with their pool all the same", arguments: cores)
  func boundMethods(core: EventCentral.Core) {
    final class Bound: EventThread, @unchecked Sendable {
      // A constant of a Sendable type.
      private let token: Lifetime.Token
      init(_ token: Lifetime.Token) {
        self.token = token
        super.init()
      }
      @available(*, unavailable) required init() { preconditionFailure() }
      override func registerEventListeners() { addEventCallback(onJob, forEventType: Job.self) }
      func onJob(_ job: Job, _ priority: EventPriority, _ time: DispatchTime) {}
    }
    let (lifetime, central) = (Lifetime(), EventCentral(core: core))
    do {
      let pool = EventPool(capacity: 4, on: central) { _ in Bound(lifetime.token()) }
      for _ in 0..<10 { Job().queue(on: central) }
      withExtendedLifetime(pool) {}
    }
    #expect(lifetime.waitUntilNone())
  }

  @Test("a thread that is cancelled by itself leaves its share to the others", arguments: balances)
  func oneThreadCancelled(_ kind: (EventCentral.Core, Balance)) {
    let jobs = JobPool(kind.0, 3, kind.1.make())
    jobs.pool.withThreads { $0[1] }.cancel()
    for number in 0..<30 { #expect(Job(number: number, key: number).queue(on: jobs.central) == 1) }
    let handled = jobs.log.entries(atLeast: 30)
    #expect(handled.map(\.number).sorted() == Array(0..<30))
    #expect(handled.allSatisfy { $0.thread != 1 })
    #expect(waitUntil { jobs.pool.withThreads { $0.count } == 2 })
    // Setting the capacity makes another thread with its index.
    jobs.pool.capacity = 3
    #expect(jobs.pool.statistics.threads.map(\.index) == [0, 1, 2])
    jobs.pool.cancel()
  }

  @Test("a thread that is cancelled inside a handler is replaced when the capacity is set", arguments: balances)
  func cancelledInside(_ kind: (EventCentral.Core, Balance)) {
    let jobs = JobPool(kind.0, 2, kind.1.make())
    let held = jobs.holdAll()
    jobs.pool.withThreads { $0[1] }.cancel()
    jobs.pool.capacity = 2
    #expect(jobs.pool.withThreads { $0.count } == 2)
    #expect(jobs.pool.statistics.threads.map(\.index).sorted() == [0, 1, 2])
    held.forEach { $0.letGo() }
    #expect(waitUntil { jobs.pool.statistics.threads.map(\.index) == [0, 2] })
    for number in 0..<10 { #expect(Job(number: number, key: number).queue(on: jobs.central) == 1) }
    #expect(jobs.log.entries(atLeast: 10).allSatisfy { $0.thread != 1 })
    jobs.pool.cancel()
  }

  @Test(
    "a thread that ends while it is made is no thread of the pool, and is replaced when asked",
    arguments: balances)
  func endedWhileMade(_ kind: (EventCentral.Core, Balance)) {
    let (central, log) = (EventCentral(core: kind.0), Log<Handled>())
    let made = Log<Int>()
    let pool = EventPool(capacity: 2, balancer: kind.1.make(), on: central) { index in
      let thread = JobThread(index, log)
      made.append(index)
      if made.entries == [0, 1] {
        thread.cancel()
        thread.join()
      }
      return thread
    }
    #expect(pool.withThreads { $0.count } == 1)
    pool.capacity = 2
    #expect(pool.withThreads { $0.count } == 2)
    #expect(made.entries == [0, 1, 1])
    for number in 0..<10 { #expect(Job(number: number, key: number).queue(on: central) == 1) }
    _ = log.entries(atLeast: 10)
    // If no thread is left to handle what waits, it ends with the pool and is counted (D10).
    let held = pool.holdAll()
    for number in 10..<13 { Job(number: number, key: number).queue(on: central) }
    for thread in pool.withThreads({ $0 }) { thread.cancel() }
    held.forEach { $0.letGo() }
    pool.cancel()
    #expect(waitUntil { pool.statistics.cancelled == 3 })
    #expect(log.entries.count == 10)
  }

  @Test(
    "D10: drain does not say that all was handled after a thread was cancelled with its share",
    arguments: cores)
  func drainAfterCancelledThread(core: EventCentral.Core) {
    let jobs = JobPool(core, 3, Balance.roundRobin.make())
    let held = jobs.holdAll()
    for number in 0..<30 { Job(number: number, key: number).queue(on: jobs.central) }
    jobs.pool.withThreads { $0[1] }.cancel()
    held.forEach { $0.letGo() }
    // It makes no difference whether the pool has noticed the end of the thread yet.
    #expect(!jobs.pool.drain(until: .now() + .seconds(60)))
    #expect(jobs.log.entries.count == 20)
    #expect(jobs.pool.statistics.cancelled == 10)
  }

  @Test(
    "D4: every event of a batch that an ending pool accepts is accounted for",
    arguments: balances)
  func batchWhileEnding(_ kind: (EventCentral.Core, Balance)) {
    for round in 0..<shortened(200) {
      let jobs = JobPool(kind.0, 4, kind.1.make())
      let batch = (0..<64).map { Job(number: $0, key: $0) }
      let accepted = Guarded(0)
      onThreads(2) { thread in
        if thread == 0 {
          for _ in 0..<20 {
            let count = batch.queue(on: jobs.central)
            accepted.withLock { $0 += count }
          }
        } else {
          for _ in 0..<round % 50 { _ = jobs.pool.capacity }
          jobs.pool.cancel()
        }
      }
      jobs.pool.join()
      let isBalanced = waitUntil {
        let statistics = jobs.pool.statistics
        return Int(statistics.delivered + statistics.skipped + statistics.cancelled)
          == accepted.withLock { $0 }
      }
      #expect(isBalanced, "\(accepted.withLock { $0 }) accepted, \(jobs.pool.statistics)")
      guard isBalanced else { return }
    }
  }

  @Test(
    "D10: with all threads cancelled one by one the pool refuses, and counts",
    arguments: Balance.balanced)
  func allThreadsCancelled(_ balance: Balance) {
    for core in cores {
      let jobs = JobPool(core, 3, balance.make())
      jobs.pool.withThreads { $0.forEach { $0.cancel() } }
      #expect(Job().queue(on: jobs.central) == 0)
      #expect(!jobs.pool.queueEvent(Job()))
      jobs.pool.cancel()
    }
  }

  @Test("D9: threads that are being retired end with their pool, too", arguments: balances)
  func releaseWhileRetiring(_ kind: (EventCentral.Core, Balance)) {
    let (lifetime, log) = (Lifetime(), Log<Handled>())
    let central = EventCentral(core: kind.0)
    let held: [HeldThread]
    do {
      let pool = EventPool(capacity: 3, balancer: kind.1.make(), on: central) { index in
        JobThread(index, log, token: lifetime.token())
      }
      held = pool.holdAll()
      for number in 0..<30 {
        Job(number: number, key: number, token: lifetime.token()).queue(on: central)
      }
      pool.capacity = 1
    }
    held.forEach { $0.letGo() }
    #expect(lifetime.waitUntilNone())
    #expect(log.entries.isEmpty)
  }

  @Test("D4, D10: what is left of an array as the pool ends is refused", arguments: cores)
  func arrayAtTheEnd(core: EventCentral.Core) {
    let balancer = EndingBalancer()
    let jobs = JobPool(core, 2, balancer)
    let held = jobs.holdAll()
    let pool = jobs.pool
    balancer.ending.withLock { $0 = { pool.cancel() } }
    let events = (0..<5).map { Job(number: $0, token: jobs.lifetime.token()) }
    let accepted = events.queue(on: jobs.central)
    // The cores choose threads for the same events, but the locking one posts each at once.
    #expect(accepted == (core == .locking ? 2 : 1))
    #expect(pool.statistics.refused == UInt64(5 - accepted))
    #expect(pool.mailboxStatistics.accepted == UInt64(accepted + held.count))
    held.forEach { $0.letGo() }
    pool.join()
    #expect(waitUntil { pool.statistics.cancelled == UInt64(accepted) })
    balancer.ending.withLock { $0 = nil }
  }

  @Test("D9: what a key's closure holds ends with the pool, also if a thread remembers the way to it", arguments: cores)
  func balancerEnds(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let (lifetime, log) = (Lifetime(), Log<Handled>())
    do {
      let token = lifetime.token()
      let balancer = EventPoolKeyedBalancer { (job: Job) in withExtendedLifetime(token) { job.key } }
      let pool = EventPool(capacity: 2, balancer: balancer, on: central) { index in
        let thread = JobThread(index, log)
        // A way of its own.
        thread.addEventCallback({ (_: Job) in }, interestedIn: .latestOnly)
        return thread
      }
      for key in 0..<20 { Job(key: key).queue(on: central) }
      withExtendedLifetime(pool) {}
    }
    #expect(lifetime.waitUntilNone())
  }

  @Test("D9: the clock of a central ends with its pools, also if a thread remembers the way to them", arguments: balances)
  func clockEnds(_ kind: (EventCentral.Core, Balance)) {
    weak var clock: ManualClock?
    do {
      let manual = ManualClock()
      clock = manual
      let central = EventCentral(core: kind.0, clock: manual)
      let log = Log<Handled>()
      let pool = EventPool(capacity: 2, balancer: kind.1.make(), on: central) { JobThread($0, log) }
      for key in 0..<20 { Job(key: key).queue(on: central) }
      #expect(pool.drain())
    }
    #expect(waitUntil { clock == nil })
  }

  /// The thread that is chosen for the third event has closed, and the other one has not yet: as `PoolCore.close` does
  /// one after the other.
  @Test(
    "D2, D10: as a pool ends, no event goes to another thread than the one that was chosen for it", arguments: cores)
  func endsUnderADispatch(core: EventCentral.Core) {
    for isArray in [false, true] {
      let balancer = EndingBalancer()
      let jobs = JobPool(core, 2, balancer)
      let held = jobs.holdAll()
      let pool = jobs.pool
      balancer.ending.withLock {
        $0 = {
          pool.core.routes.close()
          pool.core.slots.active[0].thread.consumer.close(whenEmpty: true)
        }
      }
      let events = (0..<5).map { Job(number: $0, token: jobs.lifetime.token()) }
      let accepted =
        isArray ? events.queue(on: jobs.central) : events.reduce(0) { $0 + $1.queue(on: jobs.central) }
      // As in `arrayAtTheEnd`.
      #expect(accepted == (isArray && core != .locking ? 1 : 2))
      // One by one, the last two find no pool any more.
      #expect(pool.statistics.refused == UInt64(isArray ? 5 - accepted : 1))
      held.forEach { $0.letGo() }
      #expect(pool.drain())
      #expect(jobs.log.entries == (0..<accepted).map { Handled(thread: 0, number: $0) })
      balancer.ending.withLock { $0 = nil }
    }
  }
}

/// Ends the pool as it is asked about a third event, and chooses the first thread.
private final class EndingBalancer: EventPoolBalancing {
  let ending = Mutex<(@Sendable () -> Void)?>(nil)
  private let asked = Atomic<Int>(0)

  func chooseThread(for choice: borrowing EventPoolChoice) -> Int {
    if asked.wrappingAdd(1, ordering: .relaxed).newValue == 3 { ending.withLock { $0 }?() }
    return 0
  }
}
