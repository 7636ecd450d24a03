// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("D4: handlers of the newest event of each key")
struct ConflationTests {
  struct Moved: Conflatable {
    var entity: Int
    var number: Int
    var conflationKey: Int { entity }
  }
  /// A key that is hashed and compared, and owns memory.
  struct Named: Conflatable {
    var entity: Int
    var number: Int
    var conflationKey: String { "an entity with a name that needs memory: \(entity)" }
  }
  /// Keys of which many have the same hash.
  struct Colliding: Conflatable {
    struct Key: Hashable {
      var entity: Int
      func hash(into hasher: inout Hasher) { hasher.combine(entity % 3) }
    }
    var entity: Int
    var number: Int
    var conflationKey: Key { Key(entity: entity) }
  }
  struct Tracked: Conflatable {
    var entity: Int8
    let token: Lifetime.Token
    var conflationKey: Int8 { entity }
  }
  struct Large: Conflatable {
    var entity: UInt64
    var numbers: (Int, Int, Int, Int, Int) = (1, 2, 3, 4, 5)
    let token: Lifetime.Token
    var conflationKey: UInt64 { entity }
  }

  private static func thread<E: Conflatable>(
    _ central: EventCentral, _ log: Log<[Int]>, _ entry: @escaping @Sendable (E) -> [Int]
  ) -> (EventThread, any EventListenerHandling) {
    let thread = EventThread(on: central)
    let handle = thread.addEventCallback(
      { (event: E) in log.append(entry(event)) }, interestedIn: .latestPerKey)
    return (thread, handle)
  }

  /// Random events on one queue, beside a model: of each key the newest, in the order of the first ones.
  private func compare<E: Conflatable>(
    _ core: EventCentral.Core, _ seed: UInt64, _ make: @Sendable (Int, Int) -> E,
    _ entry: @escaping @Sendable (E) -> [Int]
  ) {
    var random = SeededRandom(seed: seed)
    for keys in [1, 2, 3, 7, 100] {
      let central = EventCentral(core: core)
      let log = Log<[Int]>()
      let (thread, handle) = Self.thread(central, log, entry)
      var (expected, skipped) = ([[Int]](), 0)
      for round in 0..<5 {
        let held = HeldThread(thread)
        var order: [Int] = []
        var newest: [Int: Int] = [:]
        for number in 0..<(keys * round) {
          let key = Int.random(in: 0..<keys, using: &random) - keys / 2
          #expect(make(key, number).queue(on: central) == 1)
          if newest[key] == nil { order.append(key) } else { skipped += 1 }
          newest[key] = number
        }
        #expect(thread.eventCount == order.count)
        held.letGo()
        expected += order.map { [$0, newest[$0]!] }
        #expect(log.entries(atLeast: expected.count) == expected)
      }
      #expect(thread.drain())
      #expect(log.entries == expected)
      #expect(handle.skippedCount == UInt64(skipped))
    }
  }

  @Test("of each key the newest is handled, in the place of the first", arguments: cores)
  func order(core: EventCentral.Core) {
    let seed = announcedSeed("ConflationTests.order")
    compare(core, seed, { Moved(entity: $0, number: $1) }) { [$0.entity, $0.number] }
    compare(core, seed, { Named(entity: $0, number: $1) }) { [$0.entity, $0.number] }
    compare(core, seed, { Colliding(entity: $0, number: $1) }) { [$0.entity, $0.number] }
  }

  @Test("keys that are the largest and the smallest integers are told apart", arguments: cores)
  func extremes(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let log = Log<[Int]>()
    let (thread, _) = Self.thread(central, log) { (event: Moved) in [event.entity] }
    let held = HeldThread(thread)
    let keys = [Int.min, -1, 0, 1, Int.max, 1 << 32, -1 << 32, 1 << 58]
    for number in 0..<3 { for key in keys { Moved(entity: key, number: number).queue(on: central) } }
    held.letGo()
    #expect(thread.drain())
    #expect(log.entries == keys.map { [$0] })
  }

  @Test("events that are sent together supersede one another", arguments: cores)
  func together(core: EventCentral.Core) {
    for count in [1, 2, 3, 63, 64, 65, 200] {
      let central = EventCentral(core: core)
      let log = Log<[Int]>()
      let (thread, handle) = Self.thread(central, log) { (event: Moved) in [event.entity, event.number] }
      let held = HeldThread(thread)
      (0..<count).map { Moved(entity: $0 % 3, number: $0) }.queue(on: central)
      held.letGo()
      #expect(thread.drain())
      let keys = min(3, count)
      #expect(log.entries == (0..<keys).map { [$0, (count - 1 - $0) / 3 * 3 + $0] })
      #expect(handle.skippedCount == UInt64(count - keys))
    }
  }

  @Test("D1: the newest of a key waits on its own lane", arguments: cores)
  func lanes(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let log = Log<[Int]>()
    let (thread, _) = Self.thread(central, log) { (event: Moved) in [event.entity, event.number] }
    let held = HeldThread(thread)
    for (number, lane) in TestLane.all.enumerated() {
      for key in 0..<10 { Moved(entity: key, number: number).dispatch(lane, on: central) }
    }
    // Each key ends on a lane of its own.
    for (key, lane) in TestLane.all.enumerated().reversed() {
      Moved(entity: key, number: 99).dispatch(lane, on: central)
    }
    held.letGo()
    #expect(thread.drain())
    #expect(log.entries == (0..<10).map { [$0, 99] })
  }

  @Test("other handlers get every event, and each has its own newest ones", arguments: cores)
  func severalHandlers(core: EventCentral.Core) {
    let thread = EventThread(on: EventCentral(core: core))
    let (all, perKey, latest) = (Log<Int>(), Log<Int>(), Log<Int>())
    thread.addEventCallback { (event: Moved) in all.append(event.number) }
    let handle = thread.addEventCallback(
      { (event: Moved) in perKey.append(event.number) }, interestedIn: .latestPerKey)
    thread.addEventCallback(
      { (event: Moved) in latest.append(event.number) }, interestedIn: .latestOnly)
    let held = HeldThread(thread)
    for number in 0..<6 { thread.queueEvent(Moved(entity: number % 2, number: number)) }
    held.letGo()
    #expect(all.entries(atLeast: 6) == [0, 1, 2, 3, 4, 5])
    #expect(perKey.entries(atLeast: 2) == [4, 5])
    #expect(latest.entries(atLeast: 1) == [5])
    handle.removeAndWait()
    thread.queueEvent(Moved(entity: 0, number: 6))
    #expect(thread.drain())
    #expect(perKey.entries == [4, 5])
    #expect(handle.skippedCount == 4)
  }

  @Test("a filter judges the newest of a key", arguments: cores)
  func filtered(core: EventCentral.Core) {
    let thread = EventThread(on: EventCentral(core: core))
    let log = Log<Int>()
    let handle = thread.addEventCallback(
      { (event: Moved) in log.append(event.number) }, interestedIn: [.latestPerKey, .custom],
      customFilter: { event, _, _ in event.number % 2 == 0 })
    let held = HeldThread(thread)
    for number in 0..<7 { thread.queueEvent(Moved(entity: number % 3, number: number)) }
    held.letGo()
    #expect(thread.drain())
    // The newest ones are 6, 4 and 5.
    #expect(log.entries == [6, 4])
    #expect(handle.skippedCount == 5)
  }

  @Test("a flood that nobody handles keeps one event of each key", arguments: cores)
  func flood(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let (small, large) = (Lifetime(), Lifetime())
    thread.addEventCallback({ (_: Tracked) in }, interestedIn: .latestPerKey)
    thread.addEventCallback({ (_: Large) in }, interestedIn: .latestPerKey)
    let held = HeldThread(thread)
    var most = 0
    for number in 0..<20_000 {
      Tracked(entity: Int8(number % 100), token: small.token()).queue(on: central)
      Large(entity: UInt64(number % 100), token: large.token()).stack(on: central)
      most = max(most, small.alive, large.alive)
    }
    #expect(most == 100)
    held.letGo()
    #expect(thread.drain())
    #expect(small.waitUntilNone() && large.waitUntilNone())
    #expect(thread.statistics.skipped == 2 * 19_900)
  }

  @Test("D10: what waits is freed with its thread", arguments: cores)
  func cancelled(core: EventCentral.Core) {
    let lifetime = Lifetime()
    do {
      let central = EventCentral(core: core)
      let thread = EventThread(on: central)
      thread.addEventCallback({ (_: Tracked) in }, interestedIn: .latestPerKey)
      let held = HeldThread(thread)
      for number in 0..<500 {
        Tracked(entity: Int8(number % 100), token: lifetime.token()).queue(on: central)
      }
      thread.cancel()
      held.letGo()
      thread.join()
      #expect(thread.statistics.cancelled == 100)
      #expect(thread.statistics.skipped == 400)
      #expect(Tracked(entity: 0, token: lifetime.token()).queue(on: central) == 0)
    }
    #expect(lifetime.waitUntilNone())
  }

  @Test("D6: a handler is removed while events of its keys wait and arrive", arguments: cores)
  func removal(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let lifetime = Lifetime()
    let isDone = Gate()
    runThread {
      for number in 0..<20_000 {
        Tracked(entity: Int8(number % 64), token: lifetime.token()).queue(on: central)
      }
      isDone.open()
    }
    for _ in 0..<200 {
      let log = Log<Int>()
      let handle = thread.addEventCallback(
        { (event: Tracked) in log.append(Int(event.entity)) }, interestedIn: .latestPerKey)
      handle.removeAndWait()
      let count = log.entries.count
      thread.queueEvent(Tracked(entity: 0, token: lifetime.token()))
      #expect(log.entries.count == count)
    }
    isDone.pass()
    #expect(thread.drain())
    #expect(lifetime.waitUntilNone())
  }

  @Test("several producers: each key's last event is handled, each producer's in order", arguments: cores)
  func producers(core: EventCentral.Core) {
    let seed = announcedSeed("ConflationTests.producers")
    let (producers, events, keys) = (3, 5_000, 50)
    let central = EventCentral(core: core)
    let log = Log<[Int]>()
    let (thread, handle) = Self.thread(central, log) { (event: Named) in [event.entity, event.number] }
    onThreads(producers) { index in
      var random = SeededRandom(seed: seed &+ UInt64(index))
      for number in 0..<events {
        let key = number < events - keys ? Int.random(in: 0..<keys, using: &random) : number % keys
        Named(entity: key, number: index * events + number).queue(on: central)
      }
    }
    #expect(thread.drain())
    let handled = log.entries
    #expect(UInt64(handled.count) + handle.skippedCount == UInt64(producers * events))
    for key in 0..<keys {
      let own = handled.filter { $0[0] == key }.map { $0[1] }
      // Each producer's last events are one of each key.
      let last = (events - keys..<events).first { $0 % keys == key }!
      #expect((0..<producers).contains { own.last == $0 * events + last })
      for index in 0..<producers {
        let ofOne = own.filter { $0 / events == index }
        #expect(ofOne == ofOne.sorted() && Set(ofOne).count == ofOne.count)
      }
    }
  }

  @Test("a pump, a listener in each place, and an event method may ask for it", arguments: cores)
  func otherPlaces(core: EventCentral.Core) {
    final class Receiver: EventThread, @unchecked Sendable {
      // The log has a lock, and the method is registered by the thread itself.
      let log = Log<Int>()
      @EventMethod<Receiver, Moved>(interestedIn: .latestPerKey)
      private var onMoved = { (self, event, _, _) in self.log.append(event.number) }
    }
    let central = EventCentral(core: core)
    let (pump, receiver, listener) = (EventPump(on: central), Receiver(on: central), EventListener(on: central))
    let (ofPump, inPump, inThread) = (Log<Int>(), Log<Int>(), Log<Int>())
    pump.addEventCallback(
      { (event: Moved) in ofPump.append(event.number) }, interestedIn: .latestPerKey)
    let handles = [
      Moved.addListener(
        nil, { event, _, _ in inPump.append(event.number) }, executeOn: .pump(pump),
        interestedIn: .latestPerKey, on: central),
      Moved.addListener(
        nil, { event, _, _ in inThread.append(event.number) }, executeOn: .listenerThread,
        interestedIn: .latestPerKey, on: listener),
    ]
    let (entered, leave) = (Gate(), Gate())
    let hold = HeldThread.Hold.addListener(
      nil, { hold, _, _ in hold.stand() }, executeOn: .listenerThread, on: listener)
    HeldThread.Hold(entered: entered, leave: leave).queue(on: central)
    entered.pass()
    let held = HeldThread(receiver)
    for number in 0..<6 { #expect(Moved(entity: number % 2, number: number).queue(on: central) == 4) }
    leave.open()
    held.letGo()
    pump.run()
    for log in [ofPump, inPump, inThread, receiver.log] { #expect(log.entries(atLeast: 2) == [4, 5]) }
    #expect(receiver.drain())
    for handle in handles {
      #expect(handle.skippedCount == 4)
      handle.remove()
    }
    hold.remove()
    listener.end()
    for log in [inThread, receiver.log] { #expect(log.entries == [4, 5]) }
    pump.cancel()
    pump.run()
  }

  @Test("a pool whose threads ask for it, balanced and shared", arguments: cores)
  func pools(core: EventCentral.Core) {
    for isShared in [false, true] {
      let central = EventCentral(core: core)
      let log = Log<[Int]>()
      let balancer: any EventPoolBalancing =
        isShared
        ? EventPoolSharedBalancer()
        : EventPoolKeyedBalancer { (event: Moved) in event.entity }
      let pool = EventPool(capacity: 3, balancer: balancer, on: central) { _ in
        let thread = EventThread()
        thread.addEventCallback(
          { (event: Moved) in log.append([event.entity, event.number]) },
          interestedIn: .latestPerKey)
        return thread
      }
      let held = pool.holdAll()
      for number in 0..<1_000 { #expect(Moved(entity: number % 50, number: number).queue(on: central) == 1) }
      held.forEach { $0.letGo() }
      #expect(pool.drain())
      #expect(Set(log.entries) == Set((950..<1_000).map { [$0 % 50, $0] }))
      #expect(log.entries.count == 50)
      #expect(pool.statistics.skipped == 950)
    }
  }

  @Test("a thread of a pool retires while events of keys wait", arguments: cores)
  func retiring(core: EventCentral.Core) {
    for round in 0..<20 {
      let central = EventCentral(core: core)
      let log = Log<Int>()
      let pool = EventPool(capacity: 3, on: central) { _ in
        let thread = EventThread()
        thread.addEventCallback(
          { (event: Moved) in log.append(event.number) }, interestedIn: .latestPerKey)
        return thread
      }
      let isDone = Gate()
      runThread {
        for number in 0..<2_000 { Moved(entity: number % 20, number: number).queue(on: central) }
        isDone.open()
      }
      pool.capacity = 1 + round % 2
      pool.capacity = 3
      isDone.pass()
      #expect(pool.drain())
      #expect(UInt64(log.entries.count) + pool.statistics.skipped == 2_000)
    }
  }
}
