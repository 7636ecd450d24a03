// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Synchronization
import Testing

@Suite("Stress: schedules against cancels, repetitions and the end", .serialized)
struct ScheduleStressTests {
  struct Due: Eventable {
    var producer: Int
    var number: Int
    var deadline: DispatchTime
    var token: Lifetime.Token
  }

  /// How often each number of a producer was handled.
  final class Tally: Sendable {
    private let counts: [[Atomic<Int>.Box]]

    init(producers: Int, each: Int) {
      counts = (0..<producers).map { _ in (0..<each).map { _ in Atomic<Int>.Box() } }
    }

    func note(_ producer: Int, _ number: Int) { counts[producer][number].add() }
    func count(_ producer: Int, _ number: Int) -> Int { counts[producer][number].value }
  }

  @Test(
    "D4, D6: each event is dispatched once or was cancelled in time, and none is early",
    arguments: cores)
  func onceOrCancelled(core: EventCentral.Core) {
    var random = SeededRandom(seed: announcedSeed("schedules, \(core)"))
    let (producers, each) = (3, 2_000 * stressFactor)
    let (central, lifetime) = (EventCentral(core: core), Lifetime())
    let thread = EventThread(on: central)
    let tally = Tally(producers: producers, each: each)
    let early = Atomic<Int>(0)
    thread.addEventCallback { (event: Due, _: EventPriority, time: DispatchTime) in
      if time < event.deadline { early.wrappingAdd(1, ordering: .relaxed) }
      tally.note(event.producer, event.number)
    }
    let cancelled = (0..<producers).map { _ in Log<Int>() }
    let seeds = (0..<producers).map { _ in random.next() }
    onThreads(producers) { index in
      var random = SeededRandom(seed: seeds[index])
      var handles: [(Int, EventScheduleHandle)] = []
      for number in 0..<each {
        let deadline =
          DispatchTime.now() + .nanoseconds(Int.random(in: 0..<200_000, using: &random))
        let event = Due(
          producer: index, number: number, deadline: deadline, token: lifetime.token())
        let handle =
          number % 2 == 0
          ? event.scheduleQueue(at: deadline, on: central)
          : event.scheduleStack(at: deadline, on: central)
        if Int.random(in: 0..<3, using: &random) == 0 { handles.append((number, handle)) }
        if handles.count > 20 {
          let (number, handle) = handles.remove(
            at: Int.random(in: 0..<handles.count, using: &random))
          if handle.cancel() { cancelled[index].append(number) }
        }
      }
    }
    #expect(waitUntil { central.scheduleStatistics.pending == 0 })
    #expect(thread.drain())
    #expect(early.load(ordering: .relaxed) == 0)
    for producer in 0..<producers {
      let inTime = Set(cancelled[producer].entries)
      for number in 0..<each
      where tally.count(producer, number) != (inTime.contains(number) ? 0 : 1) {
        Issue.record(
          "event \(number) of \(producer) was dispatched \(tally.count(producer, number)) times")
      }
    }
    #expect(lifetime.waitUntilNone())
    let statistics = central.scheduleStatistics
    #expect(statistics.dispatched + statistics.cancelled == producers * each)
  }

  @Test("D6: nothing of a repetition is dispatched after its cancel has returned", arguments: cores)
  func nothingAfterCancel(core: EventCentral.Core) {
    var random = SeededRandom(seed: announcedSeed("repetitions, \(core)"))
    let (central, lifetime) = (EventCentral(core: core), Lifetime())
    let seeds = (0..<3).map { _ in random.next() }
    onThreads(3) { index in
      var random = SeededRandom(seed: seeds[index])
      for number in 0..<(100 * stressFactor) {
        let policy: EventRepeatPolicy = Bool.random(using: &random) ? .skip : .catchUp
        let handle = Due(
          producer: index, number: number, deadline: .now(), token: lifetime.token()
        ).scheduleQueue(
          every: .microseconds(Int.random(in: 1..<20, using: &random)), policy: policy, on: central)
        for _ in 0..<Int.random(in: 0..<100, using: &random) { spinALittle() }
        #expect(handle.cancel())
        let dispatches = handle.dispatches
        for _ in 0..<20 { spinALittle() }
        #expect(handle.dispatches == dispatches)
        #expect(handle.state == .cancelled)
      }
    }
    #expect(waitUntil { central.scheduleStatistics.pending == 0 })
    #expect(lifetime.waitUntilNone())
  }

  @Test("D9: centrals that are released at any moment free what is scheduled", arguments: cores)
  func release(core: EventCentral.Core) {
    var random = SeededRandom(seed: announcedSeed("released centrals, \(core)"))
    let lifetime = Lifetime()
    for round in 0..<(100 * stressFactor) {
      let handles: [EventScheduleHandle]
      do {
        let central = EventCentral(core: core)
        handles = (0..<20).map { number in
          let deadline =
            DispatchTime.now() + .nanoseconds(Int.random(in: 0..<100_000, using: &random))
          return Due(producer: round, number: number, deadline: deadline, token: lifetime.token())
            .scheduleQueue(at: deadline, on: central)
        }
        for _ in 0..<Int.random(in: 0..<100, using: &random) { spinALittle() }
      }
      for handle in handles { handle.cancel() }
      #expect(waitUntil { handles.allSatisfy { $0.state != .waiting } })
    }
    #expect(lifetime.waitUntilNone())
  }
}

extension Atomic where Value == Int {
  /// An atomic in an array.
  final class Box: Sendable {
    private let atomic = Atomic<Int>(0)
    func add() { atomic.wrappingAdd(1, ordering: .releasing) }
    var value: Int { atomic.load(ordering: .acquiring) }
  }
}
