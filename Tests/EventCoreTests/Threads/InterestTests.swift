// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("D4: interests that judge an event when its handler would run")
struct InterestTests {
  struct Ping: Eventable { var number = 0 }

  final class Owner: EventThread, @unchecked Sendable {
    // A constant of a Sendable type.
    let log = Log<Int>()
    func onPing(_ event: Ping) { log.append(event.number) }
    func onTimedPing(_ event: Ping, _ priority: EventPriority, _ dispatchTime: DispatchTime) {
      log.append(event.number * 10 + priority.rawValue)
    }
  }

  @Test(
    "an event is young if its age is below the limit",
    arguments: [0, 1, 2, 1_000_000_000, .max] as [UInt64])
  func ages(now: UInt64) {
    #expect(isYounger(than: 1, dispatched: now, now: now))
    #expect(isYounger(than: .max, dispatched: 1, now: now))
    if now > 0, now < .max {
      #expect(!isYounger(than: 1, dispatched: now - 1, now: now))
      #expect(isYounger(than: 2, dispatched: now - 1, now: now))
      #expect(isYounger(than: 1, dispatched: now + 1, now: now))
    }
  }

  @Test("youngerThan lets young events pass and counts old ones", arguments: cores)
  func youngerThan(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<String>()
    thread.addEventCallback { (event: Ping) in log.append("all \(event.number)") }
    let young = thread.addEventCallback(
      { (event: Ping) in log.append("young \(event.number)") }, interestedIn: .youngerThan,
      maximumAge: 3_600_000_000_000)
    // The clock goes on between the dispatch and the call, so that no event is as young as that.
    let old = thread.addEventCallback(
      { (event: Ping, _: EventPriority, _: DispatchTime) in log.append("never") },
      forEventType: Ping.self, interestedIn: .youngerThan, maximumAge: 1)
    for number in 0..<3 { Ping(number: number).queue(on: central) }
    #expect(thread.drain())
    #expect(log.entries == ["all 0", "young 0", "all 1", "young 1", "all 2", "young 2"])
    #expect(young.skippedCount == 0)
    #expect(old.skippedCount == 3)
    #expect(thread.statistics == .init(delivered: 3, skipped: 0, cancelled: 0))
  }

  @Test("the age is judged when the handler would run, not at the dispatch", arguments: cores)
  func judgedLate(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<Int>()
    let age: UInt64 = 20_000_000
    let handle = thread.addEventCallback(
      { (event: Ping) in log.append(event.number) }, interestedIn: .youngerThan, maximumAge: age)
    let held = HeldThread(thread)
    Ping(number: 1).queue(on: central)
    let end = monotonicNanoseconds() + age
    #expect(waitUntil { monotonicNanoseconds() > end })
    held.letGo()
    #expect(thread.drain())
    #expect(log.entries.isEmpty)
    #expect(handle.skippedCount == 1)
    #expect(thread.statistics.skipped == 1)
  }

  @Test("custom asks the filter on the thread, with event, priority and time", arguments: cores)
  func custom(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<Int>()
    let asked = Log<(Int, EventPriority, UInt64)>()
    let before = DispatchTime.now().uptimeNanoseconds
    let handle = thread.addEventCallback(
      { (event: Ping) in log.append(event.number) }, interestedIn: .custom,
      customFilter: { event, priority, time in
        asked.append((event.number, priority, time.uptimeNanoseconds))
        return event.number % 2 == 0
      })
    let everything = thread.addEventCallback { (_: Ping) in }
    for number in 0..<5 { Ping(number: number).queue(priority: .low, on: central) }
    #expect(thread.drain())
    let after = DispatchTime.now().uptimeNanoseconds
    #expect(log.entries == [0, 2, 4])
    #expect(asked.entries.map(\.0) == [0, 1, 2, 3, 4])
    #expect(asked.entries.allSatisfy { $0.1 == .low && $0.2 >= before && $0.2 <= after })
    #expect(handle.skippedCount == 2)
    #expect(everything.skippedCount == 0)
    #expect(thread.statistics == .init(delivered: 5, skipped: 0, cancelled: 0))
  }

  @Test("an event that every interest turns away counts as skipped", arguments: cores)
  func allTurnedAway(core: EventCentral.Core) {
    let thread = EventThread(on: EventCentral(core: core))
    for _ in 0..<2 {
      thread.addEventCallback(
        { (_: Ping) in }, interestedIn: .custom, customFilter: { _, _, _ in false })
    }
    for _ in 0..<3 { thread.queueEvent(Ping()) }
    #expect(thread.drain())
    #expect(thread.statistics == .init(delivered: 0, skipped: 3, cancelled: 0))
  }

  @Test("methods without their object take every interest", arguments: cores)
  func methods(core: EventCentral.Core) {
    let owner = Owner(on: EventCentral(core: core))
    let even: @Sendable (Ping, EventPriority, DispatchTime) -> Bool = { event, _, _ in
      event.number % 2 == 0
    }
    owner.addEventCallback(Owner.onPing, interestedIn: .custom, customFilter: even)
    owner.addEventCallback(Owner.onTimedPing, interestedIn: .custom, customFilter: even)
    owner.addEventCallback(
      Owner.onPing, interestedIn: [.custom, .youngerThan], maximumAge: 1, customFilter: even)
    owner.addEventCallback(
      Owner.onTimedPing, forEventType: Ping.self, interestedIn: [.custom, .youngerThan],
      maximumAge: .max, customFilter: even)
    for number in 1...3 { owner.queueEvent(Ping(number: number)) }
    #expect(owner.drain())
    #expect(owner.log.entries == [2, 22, 22])
  }

  @Test("several interests have to be met together, and of two ages the lower one", arguments: cores)
  func together(core: EventCentral.Core) {
    let thread = EventThread(on: EventCentral(core: core))
    let log = Log<String>()
    thread.addEventCallback(
      { (event: Ping) in log.append("young") }, interestedIn: .youngerThan(.seconds(3_600)))
    thread.addEventCallback({ (event: Ping) in log.append("all") }, interestedIn: [.all])
    thread.addEventCallback(
      { (event: Ping) in log.append("both") }, interestedIn: [.custom, .youngerThan],
      maximumAge: .max, customFilter: { event, _, _ in event.number == 1 })
    thread.addEventCallback(
      { (event: Ping, _: EventPriority, _: DispatchTime) in log.append("too old") },
      interestedIn: [.custom, .youngerThan], maximumAge: 1, customFilter: { _, _, _ in true })
    thread.addEventCallback(
      { (event: Ping) in log.append("too old") },
      interestedIn: [.youngerThan(.seconds(3_600)), .youngerThan(.nanoseconds(1))])
    thread.queueEvent(Ping(number: 1))
    thread.queueEvent(Ping(number: 2))
    #expect(thread.drain())
    #expect(log.entries == ["young", "all", "both", "young", "all"])
  }

  @Test("an age stays with its interest through every operation of a set", arguments: cores)
  func ageStays(core: EventCentral.Core) {
    let young = EventListenerInterest.youngerThan(.nanoseconds(1))
    var taken: EventListenerInterest = [.latestOnly, .youngerThan(.nanoseconds(1))]
    #expect(taken.contains(.youngerThan) && taken.isSuperset(of: .latestOnly))
    #expect(taken.remove(.latestOnly) == .latestOnly)
    let interests = [
      taken, young.union(.all), young.intersection([.youngerThan, .all]),
      young.symmetricDifference(.all), young.union(.custom).subtracting(.custom),
    ]
    let thread = EventThread(on: EventCentral(core: core))
    let log = Log<Int>()
    for interest in interests {
      // Without its age the registration would trap; with it every event is too old.
      thread.addEventCallback({ (event: Ping) in log.append(event.number) }, interestedIn: interest)
    }
    var none = young
    none.remove(.youngerThan)
    none.insert(.all)
    thread.addEventCallback({ (event: Ping) in log.append(-1) }, interestedIn: none)
    thread.queueEvent(Ping(number: 1))
    #expect(thread.drain())
    #expect(log.entries == [-1])
  }

  @Test(
    "D6, D7: a handler is not called for the event at which its filter removes it", arguments: cores)
  func filterRemoves(core: EventCentral.Core) {
    let owner = Owner(on: EventCentral(core: core))
    let (log, asked) = (Log<Int>(), Log<Int>())
    let handles = Log<any EventListenerHandling>()
    let remove: @Sendable (Int, Ping) -> Bool = { index, event in
      asked.append(index)
      // The first filter lets one event pass.
      if index != 0 || event.number == 2 { handles.entries[index].remove() }
      return true
    }
    handles.append(
      owner.addEventCallback(
        { (event: Ping) in log.append(event.number) }, interestedIn: .custom,
        customFilter: { event, _, _ in remove(0, event) }))
    handles.append(
      owner.addEventCallback(
        { (event: Ping, _: EventPriority, _: DispatchTime) in log.append(-1) },
        interestedIn: .custom, customFilter: { event, _, _ in remove(1, event) }))
    handles.append(
      owner.addEventCallback(
        Owner.onPing, interestedIn: .custom, customFilter: { event, _, _ in remove(2, event) }))
    handles.append(
      owner.addEventCallback(
        Owner.onTimedPing, interestedIn: [.custom, .latestOnly],
        customFilter: { event, _, _ in remove(3, event) }))
    for number in 1...3 {
      owner.queueEvent(Ping(number: number))
      // One event at a time, since for the latest-only handler only one can wait.
      #expect(waitUntil { owner.eventCount == 0 })
    }
    #expect(owner.drain())
    #expect(asked.entries.sorted() == [0, 0, 1, 2, 3])
    #expect(log.entries == [1])
    #expect(owner.log.entries.isEmpty)
  }

  @Test("D6: a handler that another one removes during an event is not called for it", arguments: cores)
  func removesTheNext(core: EventCentral.Core) {
    let thread = EventThread(on: EventCentral(core: core))
    let (log, handles) = (Log<String>(), Log<any EventListenerHandling>())
    thread.addEventCallback { (event: Ping) in
      log.append("first \(event.number)")
      if event.number == 2 { handles.entries[0].remove() }
    }
    handles.append(thread.addEventCallback { (event: Ping) in log.append("next \(event.number)") })
    thread.addEventCallback { (event: Ping) in log.append("last \(event.number)") }
    for number in 1...3 { thread.queueEvent(Ping(number: number)) }
    #expect(thread.drain())
    #expect(
      log.entries == [
        "first 1", "next 1", "last 1", "first 2", "last 2", "first 3", "last 3",
      ])
  }
}
