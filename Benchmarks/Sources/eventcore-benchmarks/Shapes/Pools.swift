// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import RawCore
import Synchronization

// Pools, beside two threads that are fed by hand.
//
//     pool-even         producer ──► pool of 2 ──┬──► handler: 1 µs of arithmetic
//                                                └──► the same
//
//     pool-uneven-p99   producer, every 50 µs ──► pool of 4: 1 µs of arithmetic; one in a hundred sleeps
//                                                 for 1 ms. From the dispatch to the handler's start, p99.

private let producerGap: UInt64 = 50_000
private let longHandler: UInt64 = 1_000_000

/// The candidates of both shapes.
func poolCandidates(_ scale: Scale) -> [Candidate] {
  func candidate(_ shape: Shape, _ subject: Subject, _ make: @escaping () -> any Trial) -> Candidate
  {
    Candidate(
      shape: shape, subject: subject, payloadBytes: MemoryLayout<Event24>.size, make: make)
  }
  let balancers: [(Subject, () -> any EventPoolBalancing)] = [
    (.roundRobin, { EventPoolRoundRobinBalancer() }),
    (.lowestLoad, { EventPoolLowestLoadBalancer() }),
    (.shared, { EventPoolSharedBalancer() }),
  ]
  let even = balancers.map { subject, balancer in
    candidate(.poolEven, subject) {
      Even(scale.pooledEvents) { PoolFeed($0, threads: 2, balancer(), $1) }
    }
  }
  let byHand = candidate(.poolEven, .bareThreads) {
    Even(scale.pooledEvents) { HandFeed($0, threads: 2, $1) }
  }
  let uneven = balancers.map { subject, balancer in
    candidate(.poolUnevenP99, subject) {
      Uneven(scale.pacedEvents) { PoolFeed($0, threads: 4, balancer(), $1) }
    }
  }
  return even + [byHand] + uneven
}

/// Where a producer sends to.
private protocol Feed: AnyObject {
  func send(_ event: Event24)
  func end()
}

private typealias Handler = @Sendable (_ event: Event24, _ thread: Int) -> Void

private final class PoolFeed: Feed {
  private let central: EventCentral
  private let pool: EventPool<EventThread>

  init(
    _ core: EventCentral.Core, threads: Int, _ balancer: any EventPoolBalancing,
    _ handler: @escaping Handler
  ) {
    let central = EventCentral(core: core)
    self.central = central
    pool = EventPool(capacity: threads, balancer: balancer, on: central) { index in
      let thread = EventThread()
      thread.addEventCallback({ (event: Event24) in handler(event, index) })
      return thread
    }
  }

  func send(_ event: Event24) { event.queue(on: central) }

  func end() {
    pool.cancel()
    pool.join()
  }
}

/// Threads without a pool, to which the producer sends in turn.
private final class HandFeed: Feed {
  private let threads: [EventThread]
  private var next = 0

  init(_ core: EventCentral.Core, threads: Int, _ handler: @escaping Handler) {
    let central = EventCentral(core: core)
    self.threads = (0..<threads).map { index in
      let thread = EventThread(on: central)
      thread.addEventCallback({ (event: Event24) in handler(event, index) })
      return thread
    }
  }

  func send(_ event: Event24) {
    threads[next].queueEvent(event)
    next = next + 1 == threads.count ? 0 : next + 1
  }

  func end() {
    for thread in threads {
      thread.cancel()
      thread.join()
    }
  }
}

/// About a microsecond of arithmetic that needs the processor, and not only time to pass.
private struct Work: Sendable {
  private let turns: UInt64

  /// Calibrated once for all subjects.
  static let microsecond: Work = {
    let count: UInt64 = 20_000_000
    let start = evb_now()
    let result = Work(turns: count).run(1)
    let nanoseconds = evb_now() - start
    check(result != 0, "The arithmetic of the calibration was optimised away.")
    return Work(turns: count * 1_000 / max(1, nanoseconds))
  }()

  @inline(never)
  func run(_ seed: UInt64) -> UInt64 {
    var value = seed | 1
    for _ in 0..<turns {
      value = value &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    }
    return value
  }
}

/// What each thread of a feed has handled.
private final class Counts: @unchecked Sendable {
  // One line for each thread, written by it; read by the main thread between two runs, after
  // `finish`.
  private let lines: UnsafeMutablePointer<UInt64>
  private let threads: Int
  private let finish = Finish()
  private let step = 8

  init(threads: Int) {
    self.threads = threads
    lines = .allocate(capacity: threads * step)
    lines.initialize(repeating: 0, count: threads * step)
  }

  deinit { lines.deallocate() }

  func expect(_ events: Int) {
    finish.expect(events)
    lines.update(repeating: 0, count: threads * step)
  }

  func receive(_ weight: UInt64, _ work: UInt64, _ thread: Int) {
    lines[thread * step] &+= weight
    lines[thread * step + 1] &+= work
    finish.arrive()
  }

  func wait(_ expected: UInt64) -> UInt64 {
    let end = finish.wait()
    let sum = (0..<threads).reduce(UInt64(0)) { $0 &+ lines[$1 * step] }
    check(sum == expected, "The threads of a pool received the sum \(sum) of \(expected).")
    return end
  }
}

private final class Even: Trial {
  private let events: Int
  private let counts = Counts(threads: 2)
  private let feed: any Feed

  init(_ events: Int, _ make: (EventCentral.Core, @escaping Handler) -> any Feed) {
    self.events = events
    let (counts, work) = (counts, Work.microsecond)
    feed = make(.default) { event, thread in
      counts.receive(event.weight, work.run(event.weight), thread)
    }
  }

  func run() -> Double {
    counts.expect(events)
    let start = evb_now()
    for number in 1...UInt64(events) {
      feed.send(Event24(number: number))
    }
    let end = counts.wait(UInt64(events) * (UInt64(events) + 1) / 2)
    return Double(end - start) / Double(events)
  }

  func end() { feed.end() }
}

private final class Uneven: Trial {
  private let waits: Waits
  private let feed: any Feed

  init(_ events: Int, _ make: (EventCentral.Core, @escaping Handler) -> any Feed) {
    let (waits, work) = (Waits(events), Work.microsecond)
    self.waits = waits
    feed = make(.default) { event, _ in
      let place = waits.begin(evb_now() - event.weight)
      // One in a hundred, spread so that no balancer's turns fall into step with it.
      if ((place &* 0x9E37_79B9_7F4A_7C15) >> 32) % 100 == 0 {
        evb_pause_for(longHandler, false)
      }
      waits.end(work.run(event.weight))
    }
  }

  func run() -> Double {
    waits.expect()
    var next = evb_now()
    for _ in 0..<waits.target {
      next += producerGap
      let now = evb_now()
      // The producer sleeps, since it would keep a processor from the pool if it spun. It makes up for
      // what it oversleeps.
      if now < next { evb_pause_for(next - now, false) }
      feed.send(Event24(number: evb_now()))
    }
    return waits.percentile(0.99)
  }

  func end() { feed.end() }
}

/// How long each event of a run waited.
private final class Waits: @unchecked Sendable {
  // Each place is written by the one thread that took its number; read after `finish`.
  private let values: UnsafeMutablePointer<UInt64>
  private let taken = Atomic<Int>(0)
  private let work = Atomic<UInt64>(0)
  private let finish = Finish()
  let target: Int

  init(_ target: Int) {
    self.target = target
    values = .allocate(capacity: target)
    values.initialize(repeating: 0, count: target)
  }

  deinit { values.deallocate() }

  func expect() {
    taken.store(0, ordering: .relaxed)
    finish.expect(target)
  }

  /// Returns the number of the event in the order in which handlers began.
  func begin(_ wait: UInt64) -> UInt64 {
    let place = taken.wrappingAdd(1, ordering: .relaxed).oldValue
    check(place < target, "More events came than were sent.")
    values[place] = wait
    return UInt64(place)
  }

  func end(_ result: UInt64) {
    // So that the arithmetic is not optimised away.
    work.wrappingAdd(result, ordering: .relaxed)
    finish.arrive()
  }

  func percentile(_ part: Double) -> Double {
    _ = finish.wait()
    let sorted = UnsafeBufferPointer(start: values, count: target).sorted()
    return Double(sorted[min(target - 1, Int(Double(target) * part))])
  }
}
