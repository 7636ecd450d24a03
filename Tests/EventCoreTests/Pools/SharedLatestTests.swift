// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

@Suite("D4: latest-only callbacks of a shared pool")
struct SharedLatestTests {
  struct Ping: Eventable { var number = 0 }
  struct Other: Eventable { var number = 0 }
  struct Tracked: Eventable {
    var number = 0
    let token: Lifetime.Token
  }
  struct Large: Eventable {
    var numbers: (Int, Int, Int, Int, Int, Int)
    let token: Lifetime.Token
  }

  /// Makes a shared pool. The closure prepares each of its threads.
  private static func pool(
    _ core: EventCentral.Core, _ capacity: Int,
    _ prepare: @escaping @Sendable (EventThread, Int) -> Void
  ) -> EventPool<EventThread> {
    EventPool(
      capacity: capacity, balancer: EventPoolSharedBalancer(), on: EventCentral(core: core)
    ) { index in
      let thread = EventThread()
      prepare(thread, index)
      return thread
    }
  }

  @Test("of 0, 1, 2 and more waiting events the newest is handled, by one thread", arguments: cores)
  func newest(core: EventCentral.Core) {
    for count in [0, 1, 2, 3, 4, 5, 100] {
      let log = Log<Int>()
      let pool = Self.pool(core, 3) { thread, _ in
        thread.addEventCallback(
          { (event: Ping) in log.append(event.number) }, interestedIn: .latestOnly)
      }
      let held = pool.holdAll()
      for number in 0..<count { #expect(Ping(number: number).queue(on: pool.central) == 1) }
      #expect(pool.eventCount == min(count, 1))
      held.forEach { $0.letGo() }
      #expect(pool.drain())
      #expect(log.entries == (count == 0 ? [] : [count - 1]))
      #expect(pool.statistics.skipped == UInt64(max(0, count - 1)))
      #expect(pool.statistics.delivered == UInt64(3 + min(count, 1)))
    }
  }

  @Test("D1: the newest waits on its own lane, whatever lanes the others were on", arguments: cores)
  func lanes(core: EventCentral.Core) {
    for (index, last) in TestLane.all.enumerated() {
      let log = Log<String>()
      let pool = Self.pool(core, 2) { thread, _ in
        thread.addEventCallback(
          { (event: Ping) in log.append("latest \(event.number)") }, interestedIn: .latestOnly)
        thread.addEventCallback { (event: Other) in log.append("lane \(event.number)") }
      }
      let held = pool.holdAll()
      for (number, lane) in TestLane.all.enumerated() {
        Ping(number: number).dispatch(lane, on: pool.central)
        Other(number: number).dispatch(lane, on: pool.central)
      }
      Ping(number: 99).dispatch(last, on: pool.central)
      // One thread alone takes them all, in order.
      held[0].letGo()
      var expected = (0..<10).map { "lane \($0)" }
      expected.insert("latest 99", at: last.method == .queue ? index : index + 1)
      #expect(log.entries(atLeast: 11) == expected)
      held[1].letGo()
      #expect(pool.drain())
      #expect(log.entries.count == 11)
    }
  }

  // thread A              thread B             test
  // handles 1             in another handler   queue 1
  //   stands still                             queue 2, 3
  //                       handles 3            let B go
  @Test("the next event is handled while another thread still handles the one before", arguments: cores)
  func sideBySide(core: EventCentral.Core) {
    let log = Log<Int>()
    let (entered, leave) = (Gate(), Gate())
    let pool = Self.pool(core, 2) { thread, _ in
      thread.addEventCallback(
        { (event: Ping) in
          if event.number == 1 {
            entered.open()
            leave.pass()
          }
          log.append(event.number)
        }, interestedIn: .latestOnly)
    }
    let held = pool.holdAll()
    Ping(number: 1).queue(on: pool.central)
    held[0].letGo()
    entered.pass()
    Ping(number: 2).queue(on: pool.central)
    Ping(number: 3).queue(on: pool.central)
    held[1].letGo()
    #expect(log.entries(atLeast: 1) == [3])
    leave.open()
    #expect(log.entries(atLeast: 2) == [3, 1])
    #expect(pool.drain())
    #expect(pool.statistics.skipped == 1)
  }

  @Test("each callback of a thread has its own latest event, and others get all", arguments: cores)
  func severalCallbacks(core: EventCentral.Core) {
    let (all, first, second) = (Log<Int>(), Log<Int>(), Log<Int>())
    let times = Log<UInt64>()
    let pool = Self.pool(core, 2) { thread, _ in
      thread.addEventCallback { (event: Ping) in all.append(event.number) }
      thread.addEventCallback(
        { (event: Ping) in first.append(event.number) }, interestedIn: .latestOnly)
      thread.addEventCallback(
        { (event: Ping, _: EventPriority, time: DispatchTime) in
          times.append(time.uptimeNanoseconds)
          second.append(event.number)
        }, interestedIn: [.latestOnly, .custom], customFilter: { event, _, _ in event.number != 3 })
    }
    let held = pool.holdAll()
    for number in 1...3 { #expect(Ping(number: number).queue(on: pool.central) == 3) }
    held.forEach { $0.letGo() }
    #expect(all.entries(atLeast: 3).sorted() == [1, 2, 3])
    #expect(first.entries(atLeast: 1) == [3])
    // The newest was turned away, and none of the older ones is handled in its place.
    #expect(waitUntil { pool.statistics.skipped == 5 })
    #expect(second.entries == [])
    let again = pool.holdAll()
    let before = DispatchTime.now().uptimeNanoseconds
    Ping(number: 4).queue(on: pool.central)
    let after = DispatchTime.now().uptimeNanoseconds
    again.forEach { $0.letGo() }
    #expect(pool.drain())
    #expect(first.entries == [3, 4])
    #expect(second.entries == [4])
    // D8: the time is that of the dispatch.
    #expect(times.entries.map { (before...after).contains($0) } == [true])
  }

  @Test("an event that is sent to one thread does not replace an event of the pool", arguments: cores)
  func straightToOne(core: EventCentral.Core) {
    let log = Log<Int>()
    let pool = Self.pool(core, 2) { thread, index in
      thread.addEventCallback(
        { (event: Ping) in log.append(100 * index + event.number) }, interestedIn: .latestOnly)
    }
    let held = pool.holdAll()
    pool.withThreads { threads in
      for number in 1...3 { #expect(threads[1].queueEvent(Ping(number: number))) }
      threads[1].stackEvent(Ping(number: 4))
    }
    for number in 5...7 { Ping(number: number).queue(on: pool.central) }
    held[0].letGo()
    #expect(log.entries(atLeast: 1) == [7])
    held[1].letGo()
    #expect(log.entries(atLeast: 2) == [7, 104])
    #expect(pool.drain())
    #expect(pool.statistics.skipped == 5)
  }

  @Test("a flood that nobody handles keeps one event of each type", arguments: cores)
  func flood(core: EventCentral.Core) {
    let (small, large) = (Lifetime(), Lifetime())
    let pool = Self.pool(core, 2) { thread, _ in
      thread.addEventCallback({ (_: Tracked) in }, interestedIn: .latestOnly)
      thread.addEventCallback({ (_: Large) in }, interestedIn: .latestOnly)
    }
    let held = pool.holdAll()
    var most = 0
    for number in 0..<10_000 {
      Tracked(number: number, token: small.token()).queue(on: pool.central)
      Large(numbers: (1, 2, 3, 4, 5, 6), token: large.token()).stack(on: pool.central)
      most = max(most, small.alive, large.alive)
    }
    #expect(most == 1)
    #expect(small.total == 10_000)
    held.forEach { $0.letGo() }
    #expect(pool.drain())
    #expect(small.waitUntilNone() && large.waitUntilNone())
  }

  @Test("D10: cancel frees the event that waits, and counts it", arguments: cores)
  func cancel(core: EventCentral.Core) {
    let lifetime = Lifetime()
    let pool = Self.pool(core, 2) { thread, _ in
      thread.addEventCallback({ (_: Tracked) in }, interestedIn: .latestOnly)
    }
    let held = pool.holdAll()
    for number in 0..<10 {
      Tracked(number: number, token: lifetime.token()).dispatch(
        TestLane.all[number], on: pool.central)
    }
    pool.withThreads { threads in
      _ = threads[0].queueEvent(Tracked(token: lifetime.token()))
      _ = threads[0].queueEvent(Tracked(token: lifetime.token()), priority: .low)
    }
    #expect(lifetime.alive == 2)
    pool.cancel()
    held.forEach { $0.letGo() }
    pool.join()
    #expect(lifetime.waitUntilNone())
    #expect(Tracked(token: lifetime.token()).queue(on: pool.central) == 0)
    #expect(waitUntil { pool.statistics.cancelled == 2 })
    #expect(pool.statistics.skipped == 10)
  }

  @Test("D9: a pool that is released frees the event that waits", arguments: cores)
  func release(core: EventCentral.Core) {
    let lifetime = Lifetime()
    var pool: EventPool<EventThread>? = Self.pool(core, 2) { thread, _ in
      thread.addEventCallback({ (_: Tracked) in }, interestedIn: .latestOnly)
    }
    let held = pool!.holdAll()
    let central = pool!.central
    for _ in 0..<3 { Tracked(token: lifetime.token()).queue(on: central) }
    #expect(lifetime.alive == 1)
    pool = nil
    held.forEach { $0.letGo() }
    #expect(lifetime.waitUntilNone())
  }

  @Test("no event is lost with threads that come and go", arguments: cores)
  func capacity(core: EventCentral.Core) {
    let log = Log<Int>()
    let pool = Self.pool(core, 3) { thread, _ in
      thread.addEventCallback(
        { (event: Ping) in log.append(event.number) }, interestedIn: .latestOnly)
    }
    let held = pool.holdAll()
    for number in 0..<10 { Ping(number: number).queue(on: pool.central) }
    pool.capacity = 1
    held.forEach { $0.letGo() }
    #expect(log.entries(atLeast: 1) == [9])
    pool.capacity = 4
    let again = pool.holdAll()
    for number in 10..<20 { Ping(number: number).stack(on: pool.central) }
    again.forEach { $0.letGo() }
    #expect(pool.drain())
    #expect(log.entries == [9, 19])
  }

  @Test(
    "a callback that is removed on every thread is no receiver, and may come back",
    arguments: cores)
  func removal(core: EventCentral.Core) {
    let log = Log<Int>()
    let handles = Log<any EventListenerHandling>()
    let add: @Sendable (EventThread) -> Void = { thread in
      handles.append(
        thread.addEventCallback(
          { (event: Ping) in log.append(event.number) }, interestedIn: .latestOnly))
    }
    let pool = Self.pool(core, 2) { thread, _ in add(thread) }
    for round in 0..<20 {
      #expect(Ping(number: round).queue(on: pool.central) == 1)
      #expect(log.entries(atLeast: round + 1).last == round)
      for handle in handles.take() { #expect(handle.removeAndWait()) }
      #expect(Ping(number: -1).queue(on: pool.central) == 0)
      pool.withThreads { $0.forEach(add) }
    }
    #expect(pool.drain())
    #expect(log.entries == Array(0..<20))
  }

  // test                              threads of the pool     producers
  // adds and removes on one thread    handle                  dispatch on any lane
  @Test("D4 D6: callbacks may come and go while events pass", arguments: cores)
  func underFire(core: EventCentral.Core) {
    let lifetime = Lifetime()
    let handled = Log<Int>()
    let pool = Self.pool(core, 2) { thread, _ in
      thread.addEventCallback(
        { (event: Tracked) in handled.append(event.number) }, interestedIn: .latestOnly)
    }
    let seed = announcedSeed("SharedLatestTests.underFire")
    onThreads(3) { index in
      if index == 2 {
        for _ in 0..<300 {
          let thread = pool.withThreads { $0[0] }
          let handle = thread.addEventCallback(
            { (event: Tracked) in withExtendedLifetime(event) {} }, interestedIn: .latestOnly)
          handle.remove()
        }
      } else {
        var random = SeededRandom(seed: seed &+ UInt64(index))
        for number in 1...5_000 {
          let lane = TestLane.all[Int.random(in: 0..<10, using: &random)]
          Tracked(number: number, token: lifetime.token()).dispatch(lane, on: pool.central)
        }
      }
    }
    #expect(pool.drain())
    // The newest event of all was the last one of one of the producers.
    #expect(handled.entries.contains(5_000))
    #expect(lifetime.waitUntilNone())
  }

  @Test("D4: a callback that takes the place of another one gets the next event", arguments: cores)
  func replaced(core: EventCentral.Core) {
    /// Replaces a callback and dispatches an event, on the thread, between two events.
    final class Parting: Sendable {
      let body: @Sendable () -> Void
      init(_ body: @escaping @Sendable () -> Void) { self.body = body }
      deinit { body() }
    }
    let pool = Self.pool(core, 1) { _, _ in }
    let thread = pool.withThreads { $0[0] }
    let log = Log<String>()
    let old = thread.addEventCallback(
      { (event: Ping) in log.append("old \(event.number)") }, interestedIn: .latestOnly)
    Ping(number: 1).queue(on: pool.central)
    #expect(log.entries(atLeast: 1) == ["old 1"])
    let handle = { (parting: Parting) in
      thread.addEventCallback { (_: Other) in withExtendedLifetime(parting) {} }
    }(
      Parting { [unowned thread] in
        old.remove()
        thread.addEventCallback(
          { (event: Ping) in log.append("new \(event.number)") }, interestedIn: .latestOnly)
        Ping(number: 2).queue(on: thread.central)
      })
    handle.remove()
    #expect(log.entries(atLeast: 2) == ["old 1", "new 2"])
    #expect(pool.drain())
    #expect(pool.statistics.skipped == 0)
  }

  @Test("D4: callbacks for the newest event, and for the newest of each key, do not take each other's place", arguments: cores)
  func twoKinds(core: EventCentral.Core) {
    struct Moved: Conflatable {
      var conflationKey: Int
      var number: Int
    }
    for isPerKey in [false, true] {
      let pool = Self.pool(core, 1) { _, _ in }
      let thread = pool.withThreads { $0[0] }
      thread.addEventCallback({ (_: Moved) in }, interestedIn: isPerKey ? .latestOnly : .latestPerKey).removeAndWait()
      let log = Log<[Int]>()
      thread.addEventCallback(
        { (event: Moved) in log.append([event.conflationKey, event.number]) },
        interestedIn: isPerKey ? .latestPerKey : .latestOnly)
      let held = pool.holdAll()
      for key in 0..<3 {
        for number in 0..<2 { Moved(conflationKey: key, number: number).queue(on: pool.central) }
      }
      held.forEach { $0.letGo() }
      #expect(pool.drain())
      #expect(log.entries == (isPerKey ? [[0, 1], [1, 1], [2, 1]] : [[2, 1]]))
    }
  }
}
