// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("Sequences: events for await")
struct EventSequenceTests {
  @Test("D4: a sequence gets what is dispatched from its making on, before the loop begins", arguments: cores)
  func registration(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    Ping(number: 0).queue(on: central)
    let sequence = Ping.events(on: central)
    #expect(Ping(number: 1).queue(on: central) == 1)
    Ping(number: 2).queue(on: central)
    #expect(sequence.waitingEventCount == 2)
    var iterator = sequence.makeAsyncIterator()
    #expect(await iterator.next()?.number == 1)
    Ping(number: 3).queue(on: central)
    #expect(await iterator.next()?.number == 2)
    #expect(await iterator.next()?.number == 3)
    sequence.end()
    #expect(await iterator.next() == nil)
    #expect(Ping().queue(on: central) == 0)
  }

  @Test("D1 to D3: each step takes the most urgent event, also of those that came meanwhile", arguments: cores)
  func lanes(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    var random = SeededRandom(seed: announcedSeed("sequence lanes"))
    let sequence = Ping.events(on: central)
    var iterator = sequence.makeAsyncIterator()
    var model = LaneModel<Int>()
    var waiting = 0
    for number in 0..<5_000 {
      let lane = Int.random(in: 0..<10, using: &random)
      Ping(number: number).dispatch(TestLane.all[lane], on: central)
      model.post(number, lane: lane)
      waiting += 1
      while waiting > 0, Bool.random(using: &random) {
        #expect(await iterator.next()?.number == model.take())
        waiting -= 1
      }
    }
    while let next = model.take() { #expect(await iterator.next()?.number == next) }
  }

  @Test("D2, D4: each of many sequences gets every event once, in each producer's order", arguments: cores)
  func load(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let (producers, events, consumers) = (3, shortened(20_000), 7)
    let sequences = (0..<consumers).map { _ in Ping.events(on: central) }
    let production = Task {
      await offThePool {
        onThreads(producers) { producer in
          for number in 0..<events { Ping(number: producer * events + number).queue(on: central) }
        }
      }
    }
    await withTaskGroup(of: Bool.self) { group in
      for sequence in sequences {
        group.addTask {
          var next = (0..<producers).map { $0 * events }
          var left = producers * events
          for await ping in sequence {
            guard ping.number == next[ping.number / events] else { return false }
            next[ping.number / events] += 1
            left -= 1
            if left == 0 { break }
          }
          return left == 0
        }
      }
      for await isInOrder in group { #expect(isInOrder) }
    }
    await production.value
  }

  @Test("D9: a sequence ends with its last reference, and frees and counts what waits", arguments: cores)
  func references(core: EventCentral.Core) async {
    let (central, lifetime) = (EventCentral(core: core), Lifetime())
    for hasTaken in [false, true] {
      for hasSlept in [false, true] {
        var sequence: EventSequence? = Carrying.events(on: central)
        var iterator = sequence?.makeAsyncIterator()
        if hasSlept {
          // The iterator has found nothing once, and was woken.
          let dispatch = Task { Carrying(token: lifetime.token()).queue(on: central) }
          #expect(await iterator?.next() != nil)
          _ = await dispatch.value
        }
        for _ in 0..<3 { Carrying(token: lifetime.token()).queue(on: central) }
        if hasTaken { #expect(await iterator?.next() != nil) }
        sequence = nil
        #expect(iterator?.mailbox.waitingCount == (hasTaken ? 2 : 3))
        iterator = nil
        #expect(lifetime.waitUntilNone())
        #expect(Carrying(token: lifetime.token()).queue(on: central) == 0)
      }
    }
    #expect(central.listener.statistics.cancelled == 3 + 2 + 3 + 2)
    #expect(central.listener.listenerCount == 0)
  }

  @Test("A task that is cancelled ends its sequence: while it waits, between two events, and before the loop", arguments: cores)
  func cancellation(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    for moment in 0..<3 {
      let sequence = Ping.events(on: central)
      let (entered, leave) = (Gate(), Gate())
      let task = Task {
        var count = 0
        if moment == 0 { await offThePool { leave.pass() } }
        for await _ in sequence {
          count += 1
          entered.open()
          if moment == 1 { await offThePool { leave.pass() } }
        }
        return count
      }
      Ping().queue(on: central)
      if moment > 0 { await offThePool { entered.pass() } }
      if moment == 1 { Ping().queue(on: central) }
      task.cancel()
      leave.open()
      #expect(await task.value == (moment == 0 ? 0 : 1))
      #expect(Ping().queue(on: central) == 0)
    }
  }

  @Test("D10: what waits is freed at the step that a cancelled task takes, while its iterator lives", arguments: cores)
  func cancelledIterator(core: EventCentral.Core) async {
    let (central, lifetime) = (EventCentral(core: core), Lifetime())
    let sequence = Carrying.events(on: central)
    for _ in 0..<3 { Carrying(token: lifetime.token()).queue(on: central) }
    await Task {
      var iterator = sequence.makeAsyncIterator()
      #expect(await iterator.next() != nil)
      withUnsafeCurrentTask { $0?.cancel() }
      #expect(await iterator.next() == nil)
      #expect(lifetime.alive == 0)
      withExtendedLifetime(iterator) {}
    }.value
    #expect(central.listener.statistics.cancelled == 2)
  }

  @Test("D10: the end of a source ends its sequences, with or without a backlog", arguments: cores)
  func sources(core: EventCentral.Core) async {
    for backlog in [0, 3] {
      var central: EventCentral? = EventCentral(core: core)
      let (sequence, handled) = (Ping.events(on: central!), Log<Int>())
      let task = Task { for await ping in sequence { handled.append(ping.number) } }
      for number in 0..<backlog { Ping(number: number).queue(on: central!) }
      await offThePool { _ = handled.entries(atLeast: backlog) }
      central = nil
      await task.value
      #expect(handled.entries == Array(0..<backlog))
      let held = EventCentral(core: core)
      let group = EventListener(on: held)
      let other = Ping.events(on: group)
      group.end()
      var iterator = other.makeAsyncIterator()
      #expect(await iterator.next() == nil)
    }
  }

  @Test("D4: `.latest` keeps one event, the newest, and counts the others", arguments: cores)
  func latest(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let sequence = Ping.events(on: central, buffering: .latest)
    for number in 0..<1_000 { Ping(number: number).queue(on: central) }
    #expect(sequence.waitingEventCount == 1)
    var iterator = sequence.makeAsyncIterator()
    #expect(await iterator.next()?.number == 999)
    #expect(sequence.lag == 999)
  }

  @Test("D4: `.oldest` and `.newest` keep so many, and count the others", arguments: cores)
  func bounded(core: EventCentral.Core) async {
    for limit in [1, 2, 3, 64] {
      for count in [0, 1, limit - 1, limit, limit + 1, 3 * limit] {
        let (central, kept) = (EventCentral(core: core), min(limit, count))
        let oldest = Ping.events(on: central, buffering: .oldest(limit))
        let newest = Ping.events(on: central, buffering: .newest(limit))
        let accepted = (0..<count).reduce(0) { $0 + Ping(number: $1).queue(on: central) }
        #expect(accepted == count + kept)
        #expect(oldest.waitingEventCount == kept && newest.waitingEventCount == kept)
        #expect(oldest.lag == UInt64(count - kept) && newest.lag == UInt64(count - kept))
        var (first, second) = (oldest.makeAsyncIterator(), newest.makeAsyncIterator())
        for number in 0..<kept {
          #expect(await first.next()?.number == number)
          #expect(await second.next()?.number == count - kept + number)
        }
        // D1: an urgent one displaces, and comes first.
        for number in 0..<limit { Ping(number: number).queue(priority: .low, on: central) }
        Ping(number: -1).stack(on: central)
        #expect(await first.next()?.number == 0)
        #expect(await second.next()?.number == -1)
        if limit > 1 { #expect(await second.next()?.number == 1) }
      }
    }
  }

  @Test("D4: a bounded sequence accounts for every event of a flood, and its memory stays flat", arguments: cores)
  func floods(core: EventCentral.Core) async {
    for buffering in [EventBuffering.oldest(8), .newest(8)] {
      let (central, producers, events) = (EventCentral(core: core), 3, 10_000)
      let sequence = Ping.events(on: central, buffering: buffering)
      let consumer = Task {
        var (count, isBounded) = (0, true)
        for await _ in sequence {
          count += 1
          if sequence.waitingEventCount > 8 { isBounded = false }
        }
        return (count, isBounded)
      }
      await offThePool {
        onThreads(producers) { producer in
          for number in 0..<events { Ping(number: producer * events + number).queue(on: central) }
        }
      }
      #expect(await yieldUntil { sequence.waitingEventCount == 0 })
      sequence.end()
      let (count, isBounded) = await consumer.value
      // The loop may have ended between a take and its count.
      #expect((0...1).contains(producers * events - count - Int(sequence.lag)))
      #expect(isBounded)
    }
  }

  @Test("D12: a sequence that is to keep no event traps and says what to do")
  func emptyBuffer() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Ping.events(on: EventCentral(), buffering: .newest(0))
    }
    expectMessage(result, "holds at least one event, and this one was to hold 0")
  }

  @Test("Interests skip and count, as for listeners", arguments: cores)
  func interests(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let sequence = Ping.events(
      on: central, interestedIn: .custom, customFilter: { ping, _, _ in ping.number % 2 == 0 })
    for number in 1...6 { Ping(number: number).queue(on: central) }
    var iterator = sequence.makeAsyncIterator()
    for number in [2, 4, 6] { #expect(await iterator.next()?.number == number) }
    #expect(sequence.skippedCount == 3 && sequence.lag == 0)
  }

  @Test("D4: what the buffering loses and what the interest skips are counted apart", arguments: cores)
  func lagAndSkips(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let even: @Sendable (Ping, EventPriority, DispatchTime) -> Bool = { ping, _, _ in ping.number % 2 == 0 }
    func events(_ buffering: EventBuffering) -> EventSequence<Ping> {
      Ping.events(on: central, buffering: buffering, interestedIn: .custom, customFilter: even)
    }
    // Each keeps some of 1 to 6, and is asked for the first even number of those.
    for (buffering, first, lost, skipped) in [
      (EventBuffering.unbounded, 2, 0, 1), (.oldest(3), 2, 3, 1), (.newest(2), 6, 4, 1), (.newest(1), 6, 5, 0),
      (.latest, 6, 5, 0),
    ] {
      let sequence = events(buffering)
      for number in 1...6 { Ping(number: number).queue(on: central) }
      var iterator = sequence.makeAsyncIterator()
      #expect(await iterator.next()?.number == first)
      #expect(sequence.lag == UInt64(lost) && sequence.skippedCount == UInt64(skipped), "\(buffering)")
    }
    // An interest in the newest alone skips the others: nothing is lost that was asked for.
    let newest = Ping.events(on: central, interestedIn: .latestOnly)
    for number in 1...6 { Ping(number: number).queue(on: central) }
    var iterator = newest.makeAsyncIterator()
    #expect(await iterator.next()?.number == 6)
    #expect(newest.lag == 0 && newest.skippedCount == 5)
  }

  @Test("A sequence that has ended gives any number of iterators, which return nil", arguments: cores)
  func endedIterators(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let sequence = Ping.events(on: central)
    var first = sequence.makeAsyncIterator()
    Ping().queue(on: central)
    #expect(await first.next() != nil)
    Ping().queue(on: central)
    sequence.end()
    var second = sequence.makeAsyncIterator()
    #expect(await second.next() == nil)
    #expect(await first.next() == nil)
    #expect(central.listener.statistics.cancelled == 1)
  }

  @Test("D12: two tasks that wait with copies of one iterator trap")
  func copies() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      await Task { @MainActor in
        let central = EventCentral()
        let iterator = Ping.events(on: central).makeAsyncIterator()
        let tasks = (0..<2).map { _ in
          Task {
            var copy = iterator
            return await copy.next(isolation: #isolation)?.number
          }
        }
        for task in tasks { _ = await task.value }
        withExtendedLifetime(central) {}
      }.value
    }
    expectMessage(result, "An iterator of an EventSequence belongs to one task at a time")
  }

  @Test("D12: a second iterator of one sequence traps and says what to do")
  func secondIterator() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let central = EventCentral()
      let sequence = Ping.events(on: central)
      let first = sequence.makeAsyncIterator()
      let second = sequence.makeAsyncIterator()
      withExtendedLifetime((central, first, second)) {}
    }
    expectMessage(result, "An EventSequence has one iterator at a time")
  }
}
