// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Synchronization
import Testing

@Suite("Stress: posts against everything that changes", .serialized)
struct StressTests {
  struct Numbered: Eventable {
    var producer: Int
    var number: Int
    var token: Lifetime.Token
  }

  @Test(
    "D2, D4, D6: posts that race with registrations, removals and ends keep every promise",
    arguments: cores)
  func churn(core: EventCentral.Core) {
    var random = SeededRandom(seed: announcedSeed("churn, \(core)"))
    let (producers, each) = (3, 3_000 * stressFactor)
    let (central, lifetime) = (EventCentral(core: core), Lifetime())
    let permanent = EventThread(on: central)
    let stay = Order(producers: producers)
    permanent.addEventCallback { (event: Numbered) in stay.note(event.producer, event.number) }
    let running = Atomic<Int>(producers)
    let seeds = (0..<2).map { _ in random.next() }
    onThreads(producers + 2) { index in
      if index < producers {
        for number in 0..<each {
          Numbered(producer: index, number: number, token: lifetime.token()).queue(on: central)
        }
        running.wrappingSubtract(1, ordering: .releasing)
        return
      }
      // Two threads register, remove and end while the producers run.
      var random = SeededRandom(seed: seeds[index - producers])
      while running.load(ordering: .acquiring) > 0 {
        let thread = EventThread(on: central)
        let order = Order(producers: producers)
        let handle = thread.addEventCallback { (event: Numbered) in
          order.note(event.producer, event.number)
        }
        for _ in 0..<Int.random(in: 0..<200, using: &random) { spinALittle() }
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
          handle.removeAndWait()
          let calls = order.calls
          for _ in 0..<50 { spinALittle() }
          #expect(order.calls == calls, "a call began after removeAndWait returned")
        case 1: thread.cancel()
        case 2: thread.drain()
        default: break
        }
        #expect(order.disorder == 0)
      }
    }
    #expect(permanent.drain())
    #expect(stay.disorder == 0)
    #expect(stay.calls == producers * each)
    #expect(lifetime.waitUntilNone())
    #expect(lifetime.total == producers * each)
  }

  @Test("D9: threads that are released at any moment end, and free what they were sent", arguments: cores)
  func release(core: EventCentral.Core) {
    let (central, lifetime) = (EventCentral(core: core), Lifetime())
    final class Receiver: EventThread, @unchecked Sendable {
      // It adds no state.
      override func registerEventListeners() { addEventCallback(Receiver.onEvent) }
      func onEvent(_ event: Numbered) { withExtendedLifetime(event) {} }
    }
    let running = Atomic<Int>(2)
    onThreads(4) { index in
      if index < 2 {
        for number in 0..<(2_000 * stressFactor) {
          Numbered(producer: index, number: number, token: lifetime.token())
            .dispatch(TestLane.all[number % 10], on: central)
        }
        running.wrappingSubtract(1, ordering: .releasing)
      } else {
        while running.load(ordering: .acquiring) > 0 {
          let threads = (0..<3).map { _ in Receiver(on: central) }
          for _ in 0..<20 { spinALittle() }
          withExtendedLifetime(threads) {}
        }
      }
    }
    #expect(lifetime.waitUntilNone())
    #expect(waitUntil { self.nobodyListens(central, lifetime) })
  }

  private func nobodyListens(_ central: EventCentral, _ lifetime: Lifetime) -> Bool {
    Numbered(producer: 0, number: 0, token: lifetime.token()).queue(on: central) == 0
  }

  @Test(
    "D4: every event of many producers on all lanes comes once, through parks and wake-ups",
    arguments: cores, [EventWaitStrategy.park, .spinThenPark(.microseconds(20)), .yield])
  func parksAndWakeUps(core: EventCentral.Core, strategy: EventWaitStrategy) {
    var random = SeededRandom(seed: announcedSeed("parks, \(core), \(strategy)"))
    let (central, lifetime) = (EventCentral(core: core), Lifetime())
    let thread = EventThread(on: central, waitStrategy: strategy)
    let calls = Atomic<Int>(0)
    thread.addEventCallback { (_: Numbered) in calls.wrappingAdd(1, ordering: .releasing) }
    let (producers, rounds) = (3, 300 * stressFactor)
    let seeds = (0..<producers).map { _ in random.next() }
    onThreads(producers) { index in
      var random = SeededRandom(seed: seeds[index])
      for number in 0..<rounds {
        Numbered(producer: index, number: number, token: lifetime.token())
          .dispatch(TestLane.all[Int.random(in: 0..<10, using: &random)], on: central)
        // So that the thread goes to sleep now and then.
        for _ in 0..<Int.random(in: 0..<60, using: &random) { spinALittle() }
      }
    }
    #expect(waitUntil { calls.load(ordering: .acquiring) == producers * rounds })
    #expect(lifetime.waitUntilNone())
    thread.cancel()
  }
}

/// Checks that numbers of one producer come in order. The event thread's handler writes, anybody
/// reads.
final class Order: Sendable {
  private let state: Guarded<(last: [Int], calls: Int, disorder: Int)>

  init(producers: Int) {
    state = Guarded((Array(repeating: -1, count: producers), 0, 0))
  }

  func note(_ producer: Int, _ number: Int) {
    state.withLock { state in
      if number <= state.last[producer] { state.disorder += 1 }
      state.last[producer] = number
      state.calls += 1
    }
  }

  var calls: Int { state.withLock { $0.calls } }
  var disorder: Int { state.withLock { $0.disorder } }
}

/// About a microsecond of work.
func spinALittle() {
  var random = SeededRandom(seed: 1)
  var sum: UInt64 = 0
  for _ in 0..<50 { sum &+= random.next() }
  precondition(sum != 0)
}
