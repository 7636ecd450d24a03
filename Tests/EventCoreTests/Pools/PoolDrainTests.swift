// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Synchronization
import Testing

@Suite("D10: drains that nothing new keeps")
struct PoolDrainTests {
  struct Next: Eventable {}

  /// A pool whose threads send themselves a further event in each handler, as many as `limit` in all.
  private func makePool(
    _ balance: Balance, on central: EventCentral, limit: Int, _ count: Counter
  ) -> EventPool<EventThread> {
    EventPool(capacity: 2, balancer: balance.make(), on: central) { _ in
      let thread = EventThread()
      thread.addEventCallback { [unowned thread] (_: Next) in
        if count.add() < limit { thread.queueEvent(Next()) }
      }
      thread.addEventCallback { (_: Job) in }
      return thread
    }
  }

  private final class Counter: Sendable {
    private let count = Atomic<Int>(0)
    /// Returns the new value.
    func add(_ number: Int = 1) -> Int { count.wrappingAdd(number, ordering: .relaxed).newValue }
    var value: Int { count.load(ordering: .acquiring) }
  }

  @Test("a pool's threads cannot keep its drain by what they send to themselves", arguments: balances)
  func sentToThemselves(_ kind: (EventCentral.Core, Balance)) async {
    await offThePool {
      let (central, count, limit) = (EventCentral(core: kind.0), Counter(), 1_000_000)
      let pool = makePool(kind.1, on: central, limit: limit, count)
      let (held, drained, results) = (pool.holdAll(), Gate(), Log<Bool>())
      pool.withThreads { for thread in $0 { thread.queueEvent(Next()) } }
      runThread {
        results.append(pool.drain())
        drained.open()
      }
      waitUntil { Job().queue(on: central) == 0 }
      for thread in held { thread.letGo() }
      drained.pass()
      #expect(results.entries == [true])
      #expect(count.value < limit)
    }
  }

  @Test(
    "on a deterministic central none of what they send to themselves is handled after the drain began",
    arguments: balances)
  func deterministic(_ kind: (EventCentral.Core, Balance)) async {
    let (world, count) = (EventCentral(deterministic: 1, core: kind.0), Counter())
    let pool = makePool(kind.1, on: world, limit: 100_000, count)
    pool.withThreads { for thread in $0 { thread.queueEvent(Next()) } }
    #expect(await pool.drain(until: world.now + .seconds(1)))
    #expect(count.value == 2)
  }

  /// Sends itself an event until a number of others are handled.
  private final class Impatient: EventThread, @unchecked Sendable {
    // Constants of a Sendable type.
    let (turns, handled): (Counter, Counter)

    init(on world: EventCentral, _ turns: Counter, until handled: Counter) {
      (self.turns, self.handled) = (turns, handled)
      super.init(on: world)
    }

    @available(*, unavailable) required init() {
      fatalError("An Impatient counts, and was given no counters: call init(on:_:until:).")
    }

    override func registerEventListeners() {
      addEventCallback { [unowned self] (_: Next) in
        if handled.value < 8, turns.add() < 100_000 { queueEvent(Next()) }
      }
    }
  }

  @Test("on a deterministic central a draining pool has its turns beside others that have events", arguments: balances)
  func beside(_ kind: (EventCentral.Core, Balance)) async {
    for seed in 1...5 as ClosedRange<UInt64> {
      let world = EventCentral(deterministic: seed, core: kind.0)
      let (turns, handled) = (Counter(), Counter())
      let pool = EventPool(capacity: 2, balancer: kind.1.make(), on: world) { _ in
        let thread = EventThread()
        thread.addEventCallback { (_: Job) in _ = handled.add() }
        return thread
      }
      let impatient = Impatient(on: world, turns, until: handled)
      for number in 0..<8 { Job(number: number, key: number).queue(on: world) }
      impatient.queueEvent(Next())
      #expect(await pool.drain())
      #expect(handled.value == 8 && turns.value < 1_000)
    }
  }

  @Test(
    "on a deterministic central retired and drained threads end while somebody else always has an event",
    arguments: balances)
  func besideTheEndless(_ kind: (EventCentral.Core, Balance)) {
    let (world, turns, limit) = (EventCentral(deterministic: 7, core: kind.0), Counter(), 10_000)
    let endless = EventThread(on: world)
    endless.addEventCallback { [unowned endless] (_: Next) in
      if turns.add() < limit { endless.queueEvent(Next()) }
    }
    let pool = EventPool<EventThread>(capacity: 2, balancer: kind.1.make(), on: world) { _ in
      let thread = EventThread()
      thread.addEventCallback { (_: Job) in }
      return thread
    }
    endless.queueEvent(Next())
    for _ in 0..<3 {
      pool.capacity = 1
      world.run(limit: 3)
      #expect(!pool.statistics.threads.contains { $0.isRetiring })
      pool.capacity = 2
    }
    #expect(pool.withThreads { $0[1] }.drain())
    #expect(pool.drain())
    #expect(turns.value < 100)
    endless.cancel()
  }

  @Test(
    "a drain ends a queue that is never served, and of which another thread frees handlers meanwhile", arguments: cores)
  func lentPlace(core: EventCentral.Core) async {
    let queue = DispatchQueue(label: "not served")
    queue.suspend()
    for _ in 0..<shortened(100) {
      let central = EventCentral(core: core)
      let handles = (0..<100).map { _ in
        Next.addListener(nil, executeOn: .dispatchQueue(queue), on: central) { _ in }
      }
      let done = Gate()
      runThread {
        for handle in handles.dropFirst() { handle.remove() }
        done.open()
      }
      // The time is for a failure alone.
      #expect(await central.drain(until: .now() + .seconds(60)))
      await offThePool { done.pass() }
    }
    queue.resume()
  }

  @Test("an idle queue or task that a drain ends has handled what it accepted", arguments: cores)
  func idlePlaces(core: EventCentral.Core) async {
    let places: [@Sendable () -> ExecuteEventOn] = [
      { .dispatchQueue(DispatchQueue(label: "drained")) }, { .taskThread },
    ]
    for round in 0..<shortened(100) {
      let (central, accepted, called) = (EventCentral(core: core), Counter(), Counter())
      Next.addListener(nil, executeOn: places[round % 2](), on: central) { _ in _ = called.add() }
      let ends = (0..<2).map { _ in
        let end = Gate()
        runThread {
          while Next().queue(on: central) > 0 { _ = accepted.add() }
          end.open()
        }
        return end
      }
      #expect(await yieldUntil { called.value > 10 })
      #expect(await central.drain())
      await offThePool { for end in ends { end.pass() } }
      // The C core may free the one event that a thread was accepting as the place ended.
      let mayBeFreed = core == .locking ? 0 : ends.count
      #expect((0...mayBeFreed).contains(accepted.value - called.value))
    }
  }
}
