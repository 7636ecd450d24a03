// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Synchronization
import Testing

@testable import EventCore

extension BoundedMailboxTests {
  /// Reads the counters of a mailbox all the while that threads send to it, and says what may never be read.
  private final class Readings: Sendable {
    /// Events whose dispatch has begun, and those that were accepted, as their senders know it.
    let begun = Atomic<Int>(0)
    let accepted = Atomic<Int>(0)
    private let isOver = Atomic<Bool>(false)
    private let hasEnded = Gate()

    func send(_ event: Numbered, on central: EventCentral) {
      begun.wrappingAdd(1, ordering: .relaxed)
      // Releases the post to a reader that finds it counted here.
      accepted.wrappingAdd(event.queue(on: central), ordering: .releasing)
    }

    /// - Parameter workers: Each of them may be between the take of an event, which makes room, and its count.
    init(
      _ name: String, capacity: Int, workers: Int = 0, _ read: @escaping @Sendable () -> EventMailboxStatistics
    ) {
      // What moves from one count to the next between two loads is found in both or in neither.
      let apart = capacity + workers
      runThread { [self] in
        var last = EventMailboxStatistics.none
        var count = 0
        while !isOver.load(ordering: .acquiring) || count == 0 {
          let least = accepted.load(ordering: .acquiring)
          let now = read()
          let most = begun.load(ordering: .relaxed)
          #expect(now.refused >= last.refused && now.dropped >= last.dropped, "\(name): \(last), then \(now)")
          #expect(now.highWaterMark >= last.highWaterMark, "\(name): \(last), then \(now)")
          #expect((0...capacity).contains(now.waiting) && now.highWaterMark <= capacity, "\(name): \(now)")
          #expect(Int(now.accepted) >= least - apart, "\(name): \(least), then \(now)")
          #expect(Int(now.accepted) <= most + apart, "\(name): \(now), then \(most)")
          #expect(Int(now.refused) <= most && Int(now.dropped) <= most, "\(name): \(now), then \(most)")
          (last, count) = (now, count + 1)
        }
        hasEnded.open()
      }
    }

    func end() {
      isOver.store(true, ordering: .releasing)
      hasEnded.pass()
    }
  }

  @Test(
    "D2, D4: floods of an event thread are accounted for to the last event, and meanwhile, too",
    arguments: cores, policies)
  func floods(core: EventCentral.Core, policy: EventOverflowPolicy) {
    for capacity in [1, 3, 500] {
      let (central, lifetime) = (EventCentral(core: core), Lifetime())
      let thread = EventThread(on: central, mailbox: .bounded(capacity, whenFull: policy))
      let handled = Atomic<Int>(0)
      let readings = Readings("\(policy) on \(core)", capacity: capacity) { thread.mailboxStatistics }
      let last = Guarded([0, 0, 0])
      thread.addEventCallback { (event: Numbered) in
        handled.wrappingAdd(1, ordering: .relaxed)
        last.withLock {
          #expect($0[event.number % 3] < event.number)
          $0[event.number % 3] = event.number
        }
      }
      let each = policy == .block(upTo: .microseconds(1)) ? 500 : 3_000
      onThreads(3) { index in
        for number in 1...each {
          let event = Numbered(number: 3 * number + index, token: lifetime.token())
          readings.send(event, on: central)
        }
      }
      #expect(thread.drain())
      readings.end()
      let (statistics, total) = (thread.mailboxStatistics, UInt64(readings.accepted.load(ordering: .relaxed)))
      #expect(statistics.accepted == total && statistics.waiting == 0)
      #expect(statistics.accepted + statistics.refused == UInt64(3 * each))
      #expect(statistics.dropped + UInt64(handled.load(ordering: .relaxed)) == total)
      #expect((1...capacity).contains(statistics.highWaterMark))
      #expect(lifetime.waitUntilNone())
    }
  }

  private final class Worker: EventThread, @unchecked Sendable {
    // Constant, and it has a mutex.
    let handled: Guarded<Int>

    init(_ handled: Guarded<Int>, on central: EventCentral) {
      self.handled = handled
      super.init(on: central)
    }
    @available(*, unavailable) required init() {
      fatalError("A Worker needs the count of what it handles, and none was given: call init(_:on:).")
    }

    override func registerEventListeners() {
      addEventCallback { [handled] (_: Numbered) in handled.withLock { $0 += 1 } }
    }
  }

  @Test(
    "D4: floods of a bounded shared pool are accounted for to the last event, and meanwhile, too",
    arguments: cores, policies)
  func pools(core: EventCentral.Core, policy: EventOverflowPolicy) {
    for capacity in [1, 3, 500] {
      let (central, lifetime, handled) = (EventCentral(core: core), Lifetime(), Guarded(0))
      let pool = EventPool(
        capacity: 2, balancer: .shared, mailbox: .bounded(capacity, whenFull: policy), on: central
      ) { _ in Worker(handled, on: central) }
      let each = policy == .block(upTo: .microseconds(1)) ? 500 : 3_000
      let readings = Readings("\(policy) on \(core)", capacity: capacity, workers: 2) { pool.mailboxStatistics }
      onThreads(2) { _ in
        for number in 1...each {
          readings.send(Numbered(number: number, token: lifetime.token()), on: central)
        }
      }
      #expect(pool.drain())
      readings.end()
      let (statistics, total) = (pool.mailboxStatistics, UInt64(readings.accepted.load(ordering: .relaxed)))
      #expect(statistics.accepted == total && statistics.waiting == 0)
      #expect(statistics.accepted + statistics.refused == UInt64(2 * each))
      #expect(statistics.dropped + UInt64(handled.withLock { $0 }) == total)
      #expect((1...capacity).contains(statistics.highWaterMark))
      #expect(lifetime.waitUntilNone())
    }
  }
}
