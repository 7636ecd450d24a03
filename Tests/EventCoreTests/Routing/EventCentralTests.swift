// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("Centrals")
struct EventCentralTests {
  struct Ping: Eventable { var number = 0 }
  struct OnlyHere: Eventable {}

  @Test(
    "events of one central never reach another, and the instance verbs do what the event's do",
    arguments: cores)
  func centralsAreWorldsApart(core: EventCentral.Core) {
    let (one, two) = (EventCentral(core: core), EventCentral(core: core))
    #expect(one.core == core)
    let (first, second) = (EventThread(on: one), EventThread(on: two))
    let log = Log<String>()
    first.addEventCallback { (event: Ping) in log.append("one \(event.number)") }
    second.addEventCallback { (event: Ping) in log.append("two \(event.number)") }
    #expect(one.queueEvent(Ping(number: 1)) == 1)
    #expect(two.stackEvent(Ping(number: 2), priority: .high) == 1)
    #expect(first.drain() && second.drain())
    #expect(log.entries.sorted() == ["one 1", "two 2"])
  }

  @Test("the shared central is the default of every verb")
  func sharedIsTheDefault() {
    let thread = EventThread()
    #expect(thread.central === EventCentral.shared)
    thread.addEventCallback { (_: OnlyHere) in }
    #expect(OnlyHere().queue() == 1)
    #expect(OnlyHere().stack() == 1)
    #expect(EventCentral.shared.queueEvent(OnlyHere(), priority: .low) == 1)
    #expect(EventCentral.shared.stackEvent(OnlyHere()) == 1)
    [OnlyHere(), OnlyHere()].queue()
    [OnlyHere(), OnlyHere()].stack(priority: .lowest)
    #expect(thread.drain())
    #expect(thread.statistics.delivered == 8)
  }

  @Test("an event that is posted straight to a thread reaches this one alone", arguments: cores)
  func directPosts(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let (first, second) = (EventThread(on: central), EventThread(on: central))
    let log = Log<String>()
    first.addEventCallback { (_: Ping) in log.append("first") }
    second.addEventCallback { (_: Ping) in log.append("second") }
    #expect(first.queueEvent(Ping(), priority: .high))
    #expect(first.stackEvent(Ping()))
    #expect(first.drain() && second.drain())
    #expect(log.entries == ["first", "first"])
  }

  @Test("D11: many event types have a route each", arguments: cores)
  func manyTypes(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<Int>()
    func add<each T: Sendable>(_ types: repeat (each T).Type) {
      for type in repeat each types { register(type) }
    }
    func register<T: Sendable>(_ type: T.Type) {
      thread.addEventCallback { (_: Of<T>) in log.append(MemoryLayout<T>.size) }
      for _ in 0..<3 { Of<T>().queue(on: central) }
    }
    add(
      Int8.self, Int16.self, Int32.self, Int64.self, UInt8.self, UInt16.self, UInt32.self,
      UInt64.self,
      Float.self, Double.self, Bool.self, Character.self, String.self, Int.self, UInt.self,
      Substring.self, [Int].self, Set<Int>.self, Unicode.Scalar.self, ClosedRange<Int>.self)
    #expect(thread.drain())
    #expect(log.entries.count == 60)
  }

  struct Of<T>: Eventable {}
}

@Suite("Memory ahead of time")
struct ReserveTests {
  struct Ping: Eventable { var number = 0 }

  @Test("What is reserved changes nothing that is delivered", arguments: cores, [0, 1, 5_000])
  func reserve(core: EventCentral.Core, count: Int) {
    let (central, log) = (EventCentral(core: core), Log<Int>())
    let thread = EventThread(on: central)
    thread.addEventCallback { (ping: Ping) in log.append(ping.number) }
    central.reserve(count)
    central.reserve(count)
    for number in 0..<10_000 { Ping(number: number).queue(on: central) }
    #expect(thread.drain())
    #expect(log.entries == Array(0..<10_000))
  }

  @Test("D12: a negative number traps and says the rule")
  func negative() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      EventCentral().reserve(-1)
    }
    expectMessage(result, "takes the number of events that may be under way")
  }
}
