// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Synchronization
import Testing

@testable import EventCore

@Suite("Bounded mailboxes: what overflow policies do")
struct BoundedMailboxTests {
  struct Numbered: Eventable {
    var number: Int
    var token: Lifetime.Token?
  }

  private final class Seen {
    var numbers: [Int] = []
  }

  private static let lanes: [(EventDispatchMethod, EventPriority)] = [
    (.stack, .highest), (.stack, .high), (.stack, .normal), (.stack, .low), (.stack, .lowest),
    (.queue, .highest), (.queue, .high), (.queue, .normal), (.queue, .low), (.queue, .lowest),
  ]

  /// What waits in each lane, oldest first, and what became of the rest.
  private struct Model {
    let capacity: Int
    let policy: EventOverflowPolicy
    var lanes = [[Int]](repeating: [], count: 10)
    var statistics = EventMailboxStatistics.none

    mutating func post(_ number: Int, to lane: Int) -> EventDispatchOutcome {
      var outcome = EventDispatchOutcome()
      if statistics.waiting == capacity {
        switch policy {
        case .refuse, .block:
          statistics.refused += 1
          outcome.refused = 1
          return outcome
        case .dropNewest:
          statistics.dropped += 1
        case .dropOldest:
          statistics.dropped += 1
          if let last = lanes.lastIndex(where: { !$0.isEmpty }), last >= lane {
            lanes[last].remove(at: last < 5 ? lanes[last].count - 1 : 0)
            statistics.waiting -= 1
            outcome.displaced = 1
          }
        }
        if outcome.displaced == 0 {
          statistics.accepted += 1
          outcome.dropped = 1
          return outcome
        }
      }
      lanes[lane].append(number)
      statistics.accepted += 1
      statistics.waiting += 1
      statistics.highWaterMark = max(statistics.highWaterMark, statistics.waiting)
      outcome.accepted = 1
      return outcome
    }

    mutating func take() -> Int? {
      guard let lane = lanes.firstIndex(where: { !$0.isEmpty }) else { return nil }
      statistics.waiting -= 1
      return lanes[lane].remove(at: lane < 5 ? lanes[lane].count - 1 : 0)
    }
  }

  static let policies: [EventOverflowPolicy] = [
    .refuse, .dropNewest, .dropOldest, .block(upTo: .zero), .block(upTo: .microseconds(1)),
  ]

  /// A pump and its model, to which the same happens.
  private final class Compared {
    private let central: EventCentral
    private let (lifetime, seen) = (Lifetime(), Seen())
    private let pump: EventPump
    private var model: Model
    /// The most urgent lane that it posts to.
    private let first: Int
    private var random: SeededRandom
    private var number = 0

    init(_ core: EventCentral.Core, _ policy: EventOverflowPolicy, capacity: Int, random: inout SeededRandom) {
      central = EventCentral(core: core)
      pump = EventPump(on: central, mailbox: .bounded(capacity, whenFull: policy))
      pump.addEventCallback { [seen] (event: Numbered) in seen.numbers.append(event.number) }
      model = Model(capacity: capacity, policy: policy)
      first = Int.random(in: 0..<10, using: &random)
      self.random = SeededRandom(seed: random.next())
    }

    /// Posts, or takes.
    func step() {
      number += 1
      if Int.random(in: 0..<5, using: &random) < 3 {
        let lane = Int.random(in: first..<10, using: &random)
        let (method, priority) = BoundedMailboxTests.lanes[lane]
        let event = Numbered(number: number, token: lifetime.token())
        let expected = model.post(number, to: lane)
        if number % 2 == 0 {
          let outcome =
            method == .queue
            ? event.queueWithOutcome(priority: priority, on: central)
            : event.stackWithOutcome(priority: priority, on: central)
          #expect(outcome == expected)
        } else {
          let accepted =
            method == .queue
            ? event.queue(priority: priority, on: central) : event.stack(priority: priority, on: central)
          #expect(accepted == expected.accepted + expected.dropped)
        }
      } else {
        seen.numbers = []
        pump.run(limit: 1)
        #expect(seen.numbers == (model.take().map { [$0] } ?? []))
      }
      #expect(lifetime.alive == model.statistics.waiting)
      if number % 20 == 0 { #expect(pump.mailboxStatistics == model.statistics) }
    }

    func end() {
      #expect(pump.mailboxStatistics == model.statistics)
      #expect(pump.eventCount == model.statistics.waiting)
      pump.cancel()
      pump.run()
      #expect(lifetime.alive == 0)
      #expect(pump.statistics.cancelled == UInt64(model.statistics.waiting))
    }
  }

  @Test("D1 to D4: each event's fate, and each take, is the model's", arguments: cores, policies)
  func model(core: EventCentral.Core, policy: EventOverflowPolicy) {
    var random = SeededRandom(seed: announcedSeed("model, \(core), \(policy)"))
    for round in 0..<20 {
      let capacity = round % 2 == 0 ? Int.random(in: 1...4, using: &random) : Int.random(in: 5...200, using: &random)
      let compared = Compared(core, policy, capacity: capacity, random: &random)
      for _ in 0..<600 { compared.step() }
      compared.end()
    }
  }

  @Test("D1 to D4: so it is when threads post and take by turns, as they come", arguments: cores, policies)
  func modelOnThreads(core: EventCentral.Core, policy: EventOverflowPolicy) {
    var random = SeededRandom(seed: announcedSeed("modelOnThreads, \(core), \(policy)"))
    for capacity in [1, 3, 50] {
      // The lock makes it one thread at a time.
      let guarded = Guarded(Compared(core, policy, capacity: capacity, random: &random))
      onThreads(4) { _ in
        for _ in 0..<shortened(1_000) { guarded.withLock { $0.step() } }
      }
      guarded.withLock { $0.end() }
    }
  }

  @Test("of a sequence the first events that fit are accepted", arguments: cores)
  func sequences(core: EventCentral.Core) {
    for count in [0, 1, 9, 10, 11, 30, 200] {
      let (central, lifetime, seen) = (EventCentral(core: core), Lifetime(), Seen())
      let pump = EventPump(on: central, mailbox: .bounded(10, whenFull: .refuse))
      pump.addEventCallback { (event: Numbered) in seen.numbers.append(event.number) }
      let events = (0..<count).map { Numbered(number: $0, token: lifetime.token()) }
      #expect(events.queue(on: central) == min(count, 10))
      #expect(pump.mailboxStatistics.refused == UInt64(count - min(count, 10)))
      pump.run()
      #expect(seen.numbers == Array(0..<min(count, 10)))
      // Moved out of an iterator, and boxed.
      #expect(AnySequence(events).stack(on: central) == min(count, 10))
      pump.run()
      #expect(seen.numbers.count == 2 * min(count, 10))
    }
  }

  @Test("D4: a bound concerns its own receiver alone", arguments: cores)
  func severalReceivers(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let capacities: [EventMailboxCapacity] = [
      .unbounded, .bounded(1, whenFull: .refuse), .bounded(2, whenFull: .dropNewest),
      .bounded(3, whenFull: .dropOldest),
    ]
    let pumps = capacities.map { EventPump(on: central, mailbox: $0) }
    for pump in pumps { pump.addEventCallback { (_: Numbered) in } }
    var sum = EventDispatchOutcome()
    for number in 0..<4 {
      let outcome = Numbered(number: number).queueWithOutcome(on: central)
      #expect(outcome.accepted + outcome.refused + outcome.dropped + outcome.ended == 4)
      sum.accepted += outcome.accepted
      sum.refused += outcome.refused
      sum.dropped += outcome.dropped
      sum.displaced += outcome.displaced
    }
    #expect(sum.accepted == 4 + 1 + 2 + 4 && sum.refused == 3 && sum.dropped == 2 && sum.displaced == 1)
    #expect(pumps.map { $0.run().handled } == [4, 1, 2, 3])
    #expect(pumps.map(\.mailboxStatistics.highWaterMark) == [0, 1, 2, 3])
  }

  @Test("latest-only events take no place, and a pump's own jobs are never lost", arguments: cores, policies)
  func withoutPlace(core: EventCentral.Core, policy: EventOverflowPolicy) {
    struct Position: Eventable { var x: Int }
    let (central, seen) = (EventCentral(core: core), Seen())
    let pump = EventPump(on: central, mailbox: .bounded(1, whenFull: policy))
    pump.addEventCallback(
      { (position: Position) in seen.numbers.append(position.x) }, interestedIn: .latestOnly)
    pump.addEventCallback { (event: Numbered) in seen.numbers.append(event.number) }
    for number in 0..<3 {
      #expect(Position(x: 100 + number).queue(on: central) == 1)
      Numbered(number: number).queue(on: central)
    }
    let jobs = Atomic<Int>(0)
    for _ in 0..<5 { #expect(pump.consumer.post { jobs.wrappingAdd(1, ordering: .relaxed) }) }
    #expect(pump.run().handled == 7)
    #expect(jobs.load(ordering: .relaxed) == 5)
    #expect(seen.numbers.sorted() == [policy == .dropOldest ? 2 : 0, 102])
    #expect(pump.mailboxStatistics.highWaterMark == 1)
  }

  @Test("with dropOldest, what takes no place comes before the others of its lane", arguments: cores)
  func placelessFirst(core: EventCentral.Core) {
    struct Position: Eventable { var x: Int }
    for method in EventDispatchMethod.allCases {
      let (central, seen) = (EventCentral(core: core), Seen())
      let pump = EventPump(on: central, mailbox: .bounded(4, whenFull: .dropOldest))
      pump.addEventCallback({ (position: Position) in seen.numbers.append(position.x) }, interestedIn: .latestOnly)
      pump.addEventCallback { (event: Numbered) in seen.numbers.append(event.number) }
      func send(_ event: some Eventable) {
        _ = method == .queue ? event.queue(on: central) : event.stack(on: central)
      }
      for number in 0..<3 {
        send(Numbered(number: number))
        send(Position(x: 10 + number))
      }
      #expect(pump.run(limit: 2).handled == 2)
      send(Numbered(number: 3))
      send(Position(x: 13))
      pump.run()
      #expect(seen.numbers == (method == .queue ? [12, 0, 13, 1, 2, 3] : [12, 2, 13, 3, 1, 0]))
    }
    // What a tree hands over waits in the queue of normal priority.
    let (central, log) = (EventCentral(core: core), Log<Int>())
    let pump = EventPump(on: central, mailbox: .bounded(3, whenFull: .dropOldest))
    pump.addEventCallback { (event: Numbered) in log.append(event.number) }
    let node = EventNode(core: core)
    node.addHandler(executeOn: .pump(pump), of: central) { (event: Numbered) in log.append(-event.number) }
    for number in 1...4 {
      Numbered(number: number).queue(priority: number == 1 ? .high : .normal, on: central)
      node.raise(event: Numbered(number: number))
    }
    pump.run()
    #expect(log.entries == [1, -1, -2, -3, -4, 3, 4])
  }

  @Test("D7: a callback that dispatches to its own full mailbox is refused at once", arguments: cores)
  func ownPosts(core: EventCentral.Core) {
    for policy in [EventOverflowPolicy.refuse, .block(upTo: .seconds(1_000_000))] {
      let (central, seen) = (EventCentral(core: core), Seen())
      let pump = EventPump(on: central, mailbox: .bounded(2, whenFull: policy))
      pump.addEventCallback { (event: Numbered) in
        seen.numbers += (0..<4).map { Numbered(number: $0).queue(on: central) }
      }
      // Between two runs the loop is the consumer of what it dispatches to its pump.
      #expect(pump.queueEvent(Numbered(number: 0)) && pump.stackEvent(Numbered(number: 0)))
      #expect(!pump.queueEvent(Numbered(number: 0)) && !pump.stackEvent(Numbered(number: 0)))
      pump.run(limit: 2)
      #expect(seen.numbers == [1, 0, 0, 0, 1, 0, 0, 0])
      pump.cancel()
      pump.run()
    }
  }

  @Test("D7: so is a callback of another pump that runs inside one of the full mailbox", arguments: cores)
  func nestedPosts(core: EventCentral.Core) {
    let (central, accepted) = (EventCentral(core: core), Log<Bool>())
    let outer = EventPump(on: central, mailbox: .bounded(1, whenFull: .block(upTo: .seconds(1_000_000))))
    let inner = EventPump(on: central, mailbox: .bounded(1, whenFull: .block(upTo: .seconds(1_000_000))))
    outer.addEventCallback { (_: Numbered) in inner.run(limit: 1) }
    inner.addEventCallback { (_: Numbered) in
      for pump in [outer, inner] {
        for number in 0..<2 { accepted.append(pump.queueEvent(Numbered(number: number))) }
      }
    }
    #expect(outer.queueEvent(Numbered(number: 0)) && inner.queueEvent(Numbered(number: 0)))
    outer.run(limit: 1)
    #expect(accepted.entries.prefix(4) == [true, false, true, false])
    for pump in [outer, inner] {
      pump.cancel()
      pump.run()
    }
  }

  @Test("a listener's bound is that of each of its places", arguments: cores)
  func listeners(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let listener = EventListener(on: central, mailbox: .bounded(2, whenFull: .refuse))
    let (entered, go, log) = (Gate(), Gate(), Log<Int>())
    let handle = Numbered.addListener(
      nil,
      { (event: Numbered) in
        log.append(event.number)
        if event.number == 0 {
          entered.open()
          go.pass()
        }
      }, executeOn: .listenerThread, on: listener)
    #expect(Numbered(number: 0).queue(on: central) == 1)
    entered.pass()
    #expect((1...4).map { Numbered(number: $0).queue(on: central) } == [1, 1, 0, 0])
    #expect(listener.mailboxStatistics.refused == 2 && listener.mailboxStatistics.highWaterMark == 2)
    go.open()
    #expect(log.entries(atLeast: 3) == [0, 1, 2])
    handle.remove()
    listener.end()
    #expect(listener.mailboxStatistics.accepted == 3)
  }

  @Test("D5: what has no place costs the same however much waits that may be displaced", arguments: cores)
  func costWithoutPlace(core: EventCentral.Core) {
    struct Newest: Eventable { var number: Int }
    // Of a round: an event of each kind is dispatched, one displaces another, and one is handled.
    func cost(waiting: Int) -> Duration {
      let central = EventCentral(core: core)
      let pump = EventPump(on: central, mailbox: .bounded(waiting, whenFull: .dropOldest))
      pump.addEventCallback { (_: Numbered) in }
      pump.addEventCallback({ (_: Newest) in }, interestedIn: .latestOnly)
      for number in 0..<waiting { Numbered(number: number).queue(on: central) }
      return (0..<20).map { _ in
        ContinuousClock().measure {
          for number in 0..<10 {
            Newest(number: number).queue(on: central)
            Numbered(number: number).queue(on: central)
            pump.run(limit: 1)
          }
        }
      }.min()!
    }
    // Each round scanned, and moved, all that waited: forty times as long.
    let (few, many) = (cost(waiting: 100), cost(waiting: 100_000))
    #expect(many < few * 10)
  }
}
