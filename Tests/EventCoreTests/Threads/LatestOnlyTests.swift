// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

@Suite("D4: latest-only handlers")
struct LatestOnlyTests {
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

  @Test("of 0, 1, 2 and more waiting events the newest is handled", arguments: cores)
  func newest(core: EventCentral.Core) {
    for count in [0, 1, 2, 3, 100] {
      let central = EventCentral(core: core)
      let thread = EventThread(on: central)
      let log = Log<Int>()
      let handle = thread.addEventCallback(
        { (event: Ping) in log.append(event.number) }, interestedIn: .latestOnly)
      let held = HeldThread(thread)
      for number in 0..<count { #expect(Ping(number: number).queue(on: central) == 1) }
      #expect(thread.eventCount == min(count, 1))
      held.letGo()
      #expect(thread.drain())
      #expect(log.entries == (count == 0 ? [] : [count - 1]))
      #expect(handle.skippedCount == UInt64(max(0, count - 1)))
      #expect(
        thread.statistics
          == .init(
            delivered: UInt64(1 + min(count, 1)), skipped: UInt64(max(0, count - 1)), cancelled: 0))
    }
  }

  @Test("a thread that keeps up handles every event", arguments: cores)
  func keepsUp(core: EventCentral.Core) {
    let thread = EventThread(on: EventCentral(core: core))
    let log = Log<Int>()
    let handle = thread.addEventCallback(
      { (event: Ping) in log.append(event.number) }, interestedIn: .latestOnly)
    for number in 1...20 {
      thread.queueEvent(Ping(number: number))
      #expect(log.entries(atLeast: number).last == number)
    }
    #expect(handle.skippedCount == 0)
    thread.cancel()
  }

  @Test("D1: the newest waits on its own lane, whatever lanes the others were on", arguments: cores)
  func lanes(core: EventCentral.Core) {
    for (index, last) in TestLane.all.enumerated() {
      let central = EventCentral(core: core)
      let thread = EventThread(on: central)
      let log = Log<String>()
      thread.addEventCallback(
        { (event: Ping) in log.append("latest \(event.number)") }, interestedIn: .latestOnly)
      thread.addEventCallback { (event: Other) in log.append("lane \(event.number)") }
      let held = HeldThread(thread)
      for (number, lane) in TestLane.all.enumerated() {
        Ping(number: number).dispatch(lane, on: central)
        Other(number: number).dispatch(lane, on: central)
      }
      Ping(number: 99).dispatch(last, on: central)
      held.letGo()
      #expect(thread.drain())
      var expected = (0..<10).map { "lane \($0)" }
      // The newest stands where the superseded event of its lane stood: in a queue before the `Other`
      // of that lane, which was dispatched later, and in a stack behind it.
      expected.insert("latest 99", at: last.method == .queue ? index : index + 1)
      #expect(log.entries == expected)
    }
  }

  @Test("an event of the thread's own may supersede one of the central, and the reverse", arguments: cores)
  func oneStream(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<Int>()
    thread.addEventCallback(
      { (event: Ping) in log.append(event.number) }, interestedIn: .latestOnly)
    let held = HeldThread(thread)
    Ping(number: 1).queue(on: central)
    thread.queueEvent(Ping(number: 2))
    [3, 4, 5].map(Ping.init).queue(on: central)
    thread.stackEvent(Ping(number: 6))
    held.letGo()
    #expect(thread.drain())
    #expect(log.entries == [6])
  }

  @Test("each handler has its own latest event, and others get all", arguments: cores)
  func severalHandlers(core: EventCentral.Core) {
    let thread = EventThread(on: EventCentral(core: core))
    let (all, first, second) = (Log<Int>(), Log<Int>(), Log<Int>())
    thread.addEventCallback { (event: Ping) in all.append(event.number) }
    thread.addEventCallback(
      { (event: Ping) in first.append(event.number) }, interestedIn: .latestOnly)
    let held = HeldThread(thread)
    thread.queueEvent(Ping(number: 1))
    thread.queueEvent(Ping(number: 2))
    // This handler does not get what was dispatched before it was registered.
    thread.addEventCallback(
      { (event: Ping, _: EventPriority, _: DispatchTime) in second.append(event.number) },
      interestedIn: .latestOnly)
    held.letGo()
    #expect(all.entries(atLeast: 2) == [1, 2])
    #expect(first.entries(atLeast: 1) == [2])
    thread.queueEvent(Ping(number: 3))
    #expect(thread.drain())
    #expect(all.entries == [1, 2, 3])
    #expect(first.entries == [2, 3])
    #expect(second.entries == [3])
  }

  @Test("a flood that nobody handles keeps one event of each type", arguments: cores)
  func flood(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let (small, large) = (Lifetime(), Lifetime())
    thread.addEventCallback({ (_: Tracked) in }, interestedIn: .latestOnly)
    thread.addEventCallback({ (_: Large) in }, interestedIn: .latestOnly)
    let held = HeldThread(thread)
    var most = 0
    for number in 0..<10_000 {
      Tracked(number: number, token: small.token()).queue(on: central)
      Large(numbers: (1, 2, 3, 4, 5, 6), token: large.token()).stack(on: central)
      most = max(most, small.alive, large.alive)
    }
    #expect(most == 1)
    #expect(small.total == 10_000)
    held.letGo()
    #expect(thread.drain())
    #expect(small.waitUntilNone() && large.waitUntilNone())
  }

  @Test("D10: cancel frees the event that waits, and counts it", arguments: cores)
  func cancel(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let lifetime = Lifetime()
    let handle = thread.addEventCallback({ (_: Tracked) in }, interestedIn: .latestOnly)
    let held = HeldThread(thread)
    for lane in TestLane.all {
      Tracked(token: lifetime.token()).dispatch(lane, on: central)
    }
    thread.cancel()
    held.letGo()
    thread.join()
    #expect(thread.statistics == .init(delivered: 1, skipped: 9, cancelled: 1))
    #expect(handle.skippedCount == 9)
    #expect(lifetime.waitUntilNone())
    #expect(Tracked(token: lifetime.token()).queue(on: central) == 0)
    #expect(!handle.remove())
    #expect(handle.skippedCount == 9)
  }

  @Test("D6: a handler that is removed is not called for the event that waits", arguments: cores)
  func removedWhileWaiting(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let (log, lifetime, held) = (Log<Int>(), Lifetime(), Lifetime())
    var token: Lifetime.Token? = held.token()
    let handle = thread.addEventCallback(
      { [token] (event: Tracked) in withExtendedLifetime(token) { log.append(event.number) } },
      interestedIn: .latestOnly)
    token = nil
    let stand = HeldThread(thread)
    for number in 0..<3 {
      Tracked(number: number, token: lifetime.token()).queue(on: central)
    }
    #expect(handle.remove())
    #expect(!handle.removeAndWait())
    #expect(handle.skippedCount == 2)
    #expect(Tracked(token: lifetime.token()).queue(on: central) == 0)
    // Another handler begins with no event.
    let next = thread.addEventCallback(
      { (event: Tracked) in log.append(event.number * 10) }, interestedIn: .latestOnly)
    Tracked(number: 5, token: lifetime.token()).queue(on: central)
    stand.letGo()
    #expect(held.waitUntilNone())
    #expect(thread.drain())
    #expect(log.entries == [50])
    #expect(next.skippedCount == 0)
    #expect(handle.skippedCount == 2)
    #expect(lifetime.waitUntilNone())
    #expect(thread.statistics == .init(delivered: 2, skipped: 3, cancelled: 0))
  }

  @Test("D9: a thread whose last reference goes frees the event that waits", arguments: cores)
  func ownerGone(core: EventCentral.Core) {
    final class Watcher: EventThread, @unchecked Sendable {
      // It adds no state.
      func onTracked(_ event: Tracked) {}
    }
    let central = EventCentral(core: core)
    let lifetime = Lifetime()
    var thread: Watcher? = Watcher(on: central)
    thread?.addEventCallback(Watcher.onTracked, interestedIn: .latestOnly)
    let held = HeldThread(thread!)
    for _ in 0..<3 { Tracked(token: lifetime.token()).queue(on: central) }
    thread = nil
    #expect(waitUntil { Tracked(token: lifetime.token()).queue(on: central) == 0 })
    held.letGo()
    #expect(lifetime.waitUntilNone())
  }

  @Test("latest and younger: if the newest is too old, none is handled", arguments: cores)
  func latestAndYounger(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<Int>()
    let old = thread.addEventCallback(
      { (event: Ping) in log.append(event.number) }, interestedIn: [.latestOnly, .youngerThan],
      maximumAge: 1)
    let young = thread.addEventCallback(
      { (event: Ping) in log.append(event.number * 10) },
      interestedIn: [.latestOnly, .youngerThan], maximumAge: .max)
    let held = HeldThread(thread)
    for number in 1...3 { Ping(number: number).queue(on: central) }
    held.letGo()
    #expect(thread.drain())
    #expect(log.entries == [30])
    #expect(old.skippedCount == 3)
    #expect(young.skippedCount == 2)
  }

  @Test("latest and custom: the filter is asked about the newest alone", arguments: cores)
  func latestAndCustom(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let (log, asked) = (Log<Int>(), Log<Int>())
    let handle = thread.addEventCallback(
      { (event: Ping) in log.append(event.number) }, interestedIn: [.latestOnly, .custom],
      customFilter: { event, _, _ in
        asked.append(event.number)
        return event.number != 3
      })
    for numbers in [1...3, 4...6] {
      let held = HeldThread(thread)
      for number in numbers { Ping(number: number).queue(on: central) }
      held.letGo()
      #expect(asked.entries(atLeast: numbers.upperBound / 3).last == numbers.upperBound)
    }
    #expect(thread.drain())
    #expect(log.entries == [6])
    #expect(asked.entries == [3, 6])
    #expect(handle.skippedCount == 5)
  }

  @Test("D7: an event that a superseded one dispatches as it ends arrives", arguments: cores)
  func endDispatches(core: EventCentral.Core) {
    final class Parting: Sendable {
      let number: Int
      let central: EventCentral
      init(_ number: Int, _ central: EventCentral) {
        self.number = number
        self.central = central
      }
      deinit { Other(number: number).queue(on: central) }
    }
    struct Last: Eventable { let parting: Parting }
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<Int>()
    thread.addEventCallback({ (_: Last) in }, interestedIn: .latestOnly)
    thread.addEventCallback { (event: Other) in log.append(event.number) }
    let held = HeldThread(thread)
    for number in 1...3 { Last(parting: Parting(number, central)).queue(on: central) }
    held.letGo()
    #expect(log.entries(atLeast: 3) == [1, 2, 3])
    thread.cancel()
  }

  @Test(
    "D10: a callback that an ending event removes while its thread ends is freed", arguments: cores)
  func removedByAnEndingEvent(core: EventCentral.Core) {
    final class Parting: Sendable {
      let handle: any EventListenerHandling
      init(_ handle: any EventListenerHandling) { self.handle = handle }
      deinit { handle.remove() }
    }
    struct Last: Eventable { let parting: Parting }
    let thread = EventThread(on: EventCentral(core: core))
    let lifetime = Lifetime()
    let handle = { (token: Lifetime.Token) in
      thread.addEventCallback(
        { (_: Other) in withExtendedLifetime(token) {} }, interestedIn: .latestOnly)
    }(lifetime.token())
    thread.addEventCallback { (_: Last) in }
    let held = HeldThread(thread)
    thread.queueEvent(Last(parting: Parting(handle)))
    thread.cancel()
    held.letGo()
    thread.join()
    #expect(!handle.isActive)
    #expect(lifetime.waitUntilNone())
  }

  @Test(
    "D4: everything that is dispatched under fire is handled or counted, once", arguments: cores)
  func underFire(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let lifetime = Lifetime()
    let (log, accepted) = (Log<Int>(), Log<Int>())
    let seed = announcedSeed("LatestOnlyTests.underFire")
    let (producers, events) = (3, 2_000)
    let handle = thread.addEventCallback(
      { (event: Tracked) in log.append(event.number) }, interestedIn: .latestOnly)
    onThreads(producers + 1) { index in
      guard index < producers else {
        // Other handlers come and go meanwhile.
        for _ in 0..<200 {
          thread.addEventCallback({ (_: Tracked) in }, interestedIn: .latestOnly).remove()
        }
        return
      }
      var random = SeededRandom(seed: seed &+ UInt64(index))
      var count = 0
      for number in 0..<events {
        count += Tracked(number: index * events + number, token: lifetime.token())
          .dispatch(TestLane.all.randomElement(using: &random)!, on: central)
      }
      accepted.append(count)
    }
    #expect(thread.drain())
    let handled = log.entries
    #expect(UInt64(handled.count) + handle.skippedCount == UInt64(producers * events))
    for index in 0..<producers {
      let own = handled.filter { $0 / events == index }
      #expect(own == own.sorted())
      #expect(Set(own).count == own.count)
    }
    #expect((0..<producers).contains { handled.last == ($0 + 1) * events - 1 })
    let statistics = thread.statistics
    #expect(statistics.cancelled == 0)
    #expect(statistics.delivered + statistics.skipped == UInt64(accepted.entries.reduce(0, +)))
    #expect(lifetime.waitUntilNone())
  }

  @Test("D10: a drain handles the newest of what was dispatched before it", arguments: cores)
  func drainUnderFire(core: EventCentral.Core) {
    for round in 0..<50 {
      let central = EventCentral(core: core)
      let thread = EventThread(on: central)
      let log = Log<Int>()
      thread.addEventCallback(
        { (event: Ping) in log.append(event.number) }, interestedIn: .latestOnly)
      let noise = Gate()
      runThread {
        // Events of the same lane: the one below may use the token of one of them.
        for _ in 0..<(round % 7) { thread.queueEvent(Ping(number: 0)) }
        noise.open()
      }
      thread.queueEvent(Ping(number: 1))
      #expect(thread.drain())
      #expect(!log.entries.isEmpty)
      noise.pass()
    }
  }
}
