// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

@Suite("Pools: the dynamic scaler")
struct DynamicScalerTests {
  /// The hands of a clock that the test turns.
  final class Hands: Sendable {
    private let time = Guarded<Duration>(.zero)
    var now: Duration { time.withLock { $0 } }
    func turn(_ span: Duration) { time.withLock { $0 += span } }
  }

  let hands = Hands()

  func scaler(_ minimum: Int, _ maximum: Int) -> EventPoolDynamicScaler {
    EventPoolDynamicScaler(
      minimum: minimum, maximum: maximum, interval: nil, now: { [hands] in hands.now })
  }

  func reading(_ capacity: Int, busy: Int, waiting: Int, handled: UInt64 = 0) -> EventPoolReading {
    EventPoolReading(
      capacity: capacity, threads: capacity, busyThreads: busy, waiting: waiting, handled: handled)
  }

  @Test("a depth above the limit adds one thread each time it has lasted long enough")
  func growsByDepth() {
    let scaler = scaler(1, 3)
    var capacity = 1
    var steps: [Int] = []
    for _ in 0..<14 {
      // 33 events for each thread, handled fast enough.
      capacity = scaler.capacity(
        for: reading(
          capacity, busy: capacity, waiting: 33 * capacity, handled: UInt64(steps.count) << 20))
      steps.append(capacity)
      hands.turn(.milliseconds(25))
    }
    // 100 ms after the first look, and again 100 ms after the change was seen; never beyond the
    // maximum.
    #expect(steps == [1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3])
  }

  @Test("events that wait too long add a thread, whatever their number")
  func growsByWaitingTime() {
    let scaler = scaler(1, 2)
    var handled: UInt64 = 0
    for step in 0..<6 {
      // Two events wait, 25 ms for each: 50 ms.
      let capacity = scaler.capacity(for: reading(1, busy: 1, waiting: 2, handled: handled))
      #expect(capacity == (step < 5 ? 1 : 2))
      handled += 1
      hands.turn(.milliseconds(25))
    }
  }

  @Test("a handler that never ends adds a thread, if something waits behind it")
  func growsForStuck() {
    let scaler = scaler(1, 2)
    var capacities: [Int] = []
    for _ in 0..<6 {
      capacities.append(scaler.capacity(for: reading(1, busy: 1, waiting: 1)))
      hands.turn(.milliseconds(25))
    }
    #expect(capacities == [1, 1, 1, 1, 1, 2])
    for _ in 0..<300 {
      #expect(scaler.capacity(for: reading(2, busy: 2, waiting: 0)) == 2)
      hands.turn(.milliseconds(25))
    }
  }

  @Test("a reading that comes after a newer one, from another thread, does not begin the time for growing again")
  func olderReadings() {
    let scaler = scaler(1, 2)
    var capacities: [Int] = []
    for step in 0..<6 {
      // Two events wait, 25 ms for each: 50 ms.
      capacities.append(scaler.capacity(for: reading(1, busy: 1, waiting: 2, handled: UInt64(10 + step))))
      hands.turn(.milliseconds(1))
      if step == 2 { #expect(scaler.capacity(for: reading(1, busy: 1, waiting: 2, handled: 11)) == 1) }
      hands.turn(.milliseconds(24))
    }
    #expect(capacities == [1, 1, 1, 1, 1, 2])
  }

  @Test("idle threads are retired one by one, down to the minimum")
  func shrinks() {
    let scaler = scaler(2, 4)
    var capacity = 4
    var changes: [Duration] = []
    for _ in 0..<800 {
      let next = scaler.capacity(for: reading(capacity, busy: 1, waiting: 0))
      if next != capacity { changes.append(hands.now) }
      capacity = next
      hands.turn(.milliseconds(25))
    }
    #expect(capacity == 2)
    #expect(changes == [.seconds(5), .milliseconds(10_025)])
  }

  @Test("a load that goes up and down leaves the number of threads alone")
  func doesNotFlap() {
    let scaler = scaler(1, 8)
    // 75 ms of too much, then 75 ms of idling, for a minute: neither lasts.
    for step in 0..<2400 {
      let isHigh = step / 3 % 2 == 0
      let capacity = scaler.capacity(
        for: reading(
          4, busy: isHigh ? 4 : 0, waiting: isHigh ? 1000 : 0, handled: UInt64(step) << 20))
      #expect(capacity == 4)
      hands.turn(.milliseconds(25))
    }
    // A load between the limits changes nothing either, however long it lasts.
    for step in 2400..<4800 {
      #expect(
        scaler.capacity(for: reading(4, busy: 4, waiting: 100, handled: UInt64(step) << 20)) == 4)
      hands.turn(.milliseconds(25))
    }
  }

  @Test("a capacity outside of minimum and maximum is brought inside at once")
  func limitsHold() {
    let scaler = scaler(2, 4)
    #expect(scaler.capacity(for: reading(1, busy: 0, waiting: 0)) == 2)
    #expect(scaler.capacity(for: reading(9, busy: 9, waiting: 10_000)) == 4)
  }

  @Test("D4: a pool follows a scaler that is asked by hand, and loses no event", arguments: balances)
  func poolFollows(_ kind: (EventCentral.Core, Balance)) {
    let jobs = JobPool(kind.0, 1, kind.1.make(), scaler: scaler(1, 3))
    let held = jobs.holdAll()
    for number in 0..<100 { Job(number: number, key: number).queue(on: jobs.central) }
    for _ in 0..<5 {
      jobs.pool.rescale()
      hands.turn(.milliseconds(25))
    }
    #expect(jobs.pool.capacity == 2)
    for _ in 0..<5 {
      jobs.pool.rescale()
      hands.turn(.milliseconds(25))
    }
    held.forEach { $0.letGo() }
    #expect(jobs.log.entries(atLeast: 100).map(\.number).sorted() == Array(0..<100))
    // The log has the event before the pool's figures show that its handler has returned.
    #expect(waitUntil { jobs.pool.statistics.threads.allSatisfy { $0.runningFor == nil } })
    for _ in 0..<3 {
      jobs.pool.rescale()
      hands.turn(.seconds(5))
      jobs.pool.rescale()
    }
    #expect(jobs.pool.capacity == 1)
    #expect(waitUntil { jobs.pool.statistics.threads.count == 1 })
    jobs.pool.cancel()
  }

  @Test("a pool asks its scaler by itself while it is busy, and rests", arguments: balances)
  func asksByItself(_ kind: (EventCentral.Core, Balance)) {
    /// Wants a thread for each event that waits or is handled, up to four, and keeps each reading.
    final class Counting: EventPoolScaling {
      let readings = Log<EventPoolReading>()
      var interval: Duration? { .milliseconds(1) }
      var restingCapacity: Int { 1 }
      func capacity(for reading: EventPoolReading) -> Int {
        readings.append(reading)
        return min(4, max(1, reading.waiting + reading.busyThreads))
      }
    }
    let scaler = Counting()
    let jobs = JobPool(kind.0, 1, kind.1.make(), scaler: scaler)
    for round in 1...3 {
      let (entered, leave) = (Gate(), Gate())
      // The one thread never returns, and what waits behind it makes the pool grow.
      Job(number: -1, entered: entered, leave: leave).queue(on: jobs.central)
      entered.pass()
      for number in 0..<20 { Job(number: number, key: number).queue(on: jobs.central) }
      // Judged by the readings: in a shared pool the other threads are soon done and retired again.
      #expect(waitUntil { scaler.readings.entries.contains { $0.capacity > 1 } })
      leave.open()
      #expect(jobs.log.entries(atLeast: round * 21).count == round * 21)
      // Back at one thread the pool rests: at last nobody asks during twenty intervals.
      #expect(waitUntil { jobs.pool.statistics.threads.count == 1 })
      #expect(
        waitUntil {
          let (asked, end) = (scaler.readings.entries.count, DispatchTime.now() + .milliseconds(20))
          while DispatchTime.now() < end {}
          return scaler.readings.entries.count == asked
        })
      _ = scaler.readings.take()
    }
    jobs.pool.cancel()
  }

  @Test("times pass on the clock of the pool's central", arguments: cores)
  func clockOfCentral(core: EventCentral.Core) {
    let world = EventCentral(deterministic: 1, core: core)
    let pool = EventPool(capacity: 2, scaler: .dynamic(1...4), on: world) { _ in
      let thread = EventThread()
      thread.addEventCallback { (_: Job) in }
      return thread
    }
    Job().queue(on: world)
    #expect(world.run() == 1)
    _ = world.run(for: .milliseconds(4_900), until: { false })
    #expect(pool.capacity == 2)
    _ = world.run(for: .milliseconds(200), until: { false })
    #expect(pool.capacity == 1)
    pool.cancel()
  }

  @Test("a limit that no depth reaches makes no pool grow or shrink")
  func unreachableDepth() {
    // Nothing but the depth decides, and at once.
    let scaler = EventPoolDynamicScaler(
      minimum: 1, maximum: 4, growWait: .seconds(Int64.max), growDepth: .max, growAfter: .zero,
      shrinkDepth: .max, interval: nil, now: { [hands] in hands.now })
    for _ in 0..<10 {
      #expect(scaler.capacity(for: reading(3, busy: 3, waiting: .max)) == 3)
      hands.turn(.milliseconds(1))
    }
  }
}
