// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Synchronization
import Testing

@testable import EventCore

@Suite("Handlers that take every event, among others and while the list changes")
struct DirectHandlersTests {
  private struct Number: Eventable {
    let value: Int
  }

  @Test("the list of handlers is laid out as the typed closure reads it")
  func layout() {
    #expect(MemoryLayout<HandlerList.Slot>.stride == DirectHandlers.stride)
    #expect(MemoryLayout<HandlerList.Slot>.offset(of: \.state) == DirectHandlers.state)
    #expect(MemoryLayout<HandlerList.Slot>.offset(of: \.handler) == 0)
  }

  @Test(
    "D4 D6: a handler that ends during an event is not called for it, the others are",
    arguments: cores)
  func endingWhileTheOneBeforeRuns(core: EventCentral.Core) {
    for ended in 0..<4 {
      let central = EventCentral(core: core)
      let thread = EventThread(on: central)
      let calls = Log<Int>()
      let gate = Gate()
      let handles = Log<any EventListenerHandling>()
      for index in 0..<4 {
        let handle = thread.addEventCallback { (event: Number) in
          calls.append(event.value * 10 + index)
          if event.value == 1, index == 1 { handles.entries[ended].remove() }
          if event.value == 2, index == 3 - (ended == 3 ? 1 : 0) { gate.open() }
        }
        handles.append(handle)
      }
      Number(value: 1).queue(on: central)
      Number(value: 2).queue(on: central)
      #expect(gate.pass())
      thread.cancel()
      thread.join()
      // Every handler gets the first event, but for one that was removed before its call.
      let first = (0..<4).filter { $0 <= 1 || $0 != ended }.map { 10 + $0 }
      let second = (0..<4).filter { $0 != ended }.map { 20 + $0 }
      #expect(calls.entries == first + second, "handler \(ended) ended")
    }
  }

  @Test(
    "D4: a handler with a filter changes nothing for the handlers beside it", arguments: cores)
  func filterAmongOthers(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let calls = Log<Int>()
    let gate = Gate()
    thread.addEventCallback { (event: Number) in calls.append(event.value * 10) }
    let filtered = thread.addEventCallback(
      { (event: Number) in calls.append(event.value * 10 + 1) }, interestedIn: .custom,
      customFilter: { event, _, _ in event.value.isMultiple(of: 2) })
    thread.addEventCallback { (event: Number) in
      calls.append(event.value * 10 + 2)
      if event.value == 3 { filtered.remove() }
      if event.value == 5 { gate.open() }
    }
    for value in 1...5 {
      Number(value: value).queue(on: central)
    }
    #expect(gate.pass())
    #expect(calls.entries == [10, 12, 20, 21, 22, 30, 32, 40, 42, 50, 52])
    thread.cancel()
    thread.join()
    #expect(thread.statistics.delivered == 5)
    #expect(thread.statistics.skipped == 0)
  }

  @Test(
    "D1 D4: every payload of a batch is ended once, and urgent events are handled in between",
    arguments: cores)
  func batchesOfReferences(core: EventCentral.Core) {
    final class Payload: Sendable {
      let lifetime: Lifetime.Token
      let value: Int
      init(_ value: Int, _ lifetime: Lifetime) {
        self.value = value
        self.lifetime = lifetime.token()
      }
    }
    struct Event: Eventable {
      let payload: Payload
    }
    let lifetime = Lifetime()
    do {
      let central = EventCentral(core: core)
      let thread = EventThread(on: central)
      let calls = Log<Int>()
      let gate = Gate()
      thread.addEventCallback { (event: Event) in
        calls.append(event.payload.value)
        if event.payload.value == 2 {
          [Event(payload: Payload(100, lifetime)), Event(payload: Payload(101, lifetime))]
            .stack(on: central)
        }
        if event.payload.value == 199 { gate.open() }
      }
      // Two batches: the first one finds the route, the second one uses the route cache.
      (0..<2).map { Event(payload: Payload($0, lifetime)) }.queue(on: central)
      #expect((2..<66).map { Event(payload: Payload($0, lifetime)) }.queue(on: central) == 64)
      [Event(payload: Payload(199, lifetime))].queue(on: central)
      #expect(gate.pass())
      #expect(calls.entries == [0, 1, 2, 101, 100] + Array(3..<66) + [199])
      let held = Gate()
      let entered = Gate()
      thread.addEventCallback { (_: Number) in
        entered.open()
        held.pass()
      }
      Number(value: 0).queue(on: central)
      #expect(entered.pass())
      (300..<364).map { Event(payload: Payload($0, lifetime)) }.queue(on: central)
      #expect(thread.eventCount == 64)
      thread.cancel()
      held.open()
      thread.join()
      #expect(thread.statistics.cancelled == 64)
    }
    #expect(lifetime.waitUntilNone())
  }

  @Test(
    "D4 D6: an event of a batch goes to the handlers of its dispatch that have not ended",
    arguments: cores)
  func handlersChangeInABatch(core: EventCentral.Core) {
    struct Carrying: Eventable {
      let value: Int
      let token: Lifetime.Token
    }
    let lifetime = Lifetime()
    do {
      let central = EventCentral(core: core)
      let thread = EventThread(on: central)
      let calls = Log<Int>()
      let handles = Log<any EventListenerHandling>()
      handles.append(
        thread.addEventCallback { (event: Carrying) in
          calls.append(event.value)
          if event.value == 10 {
            thread.addEventCallback { (event: Carrying) in calls.append(100 + event.value) }
          }
          if event.value == 20 { handles.entries[0].remove() }
        })
      func batch(_ values: Range<Int>) -> Int {
        values.map { Carrying(value: $0, token: lifetime.token()) }.queue(on: central)
      }
      // The first batch finds the route, the second one uses the route cache.
      #expect(batch(0..<2) == 2)
      #expect(batch(2..<66) == 64)
      #expect(thread.drain())
      #expect(calls.entries == Array(0...20))
      #expect(thread.statistics.delivered == 21)
      #expect(thread.statistics.skipped == 45)
      #expect(lifetime.alive == 0)
    }
    #expect(lifetime.waitUntilNone())
  }

  @Test("each handler of a batch sees exactly what still waits and what was delivered before", arguments: cores)
  func countsInABatch(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    let seen = Log<[Int]>()
    pump.addEventCallback { (event: Number) in
      seen.append([event.value, pump.eventCount, Int(pump.statistics.delivered)])
    }
    // More than a consumer counts at once, and more than it handles between two looks at its holds.
    let count = 600
    #expect((0..<count).map(Number.init).queue(on: central) == count)
    #expect(pump.run().handled == count)
    #expect(seen.entries == (0..<count).map { [$0, count - 1 - $0, $0] })
    #expect(pump.statistics.delivered == UInt64(count))
    pump.cancel()
  }

  @Test("D6: no event of a batch is handled after removeAndWait() has returned in the middle of it", arguments: cores)
  func removedInABatch(core: EventCentral.Core) {
    struct Carrying: Eventable { let end: Lifetime.Token }
    final class Calls: Sendable {
      let count = Atomic<Int>(0)
      let late = Atomic<Int>(0)
      let hasEnded = Atomic<Bool>(false)
    }
    let lifetime = Lifetime()
    /// `event` makes one of a batch's; `Number` has no end of its own, `Carrying` has.
    func removeDuring<E: Eventable>(_ type: E.Type, _ event: () -> E) {
      let central = EventCentral(core: core)
      let thread = EventThread(on: central)
      let (calls, begun) = (Calls(), Gate())
      let handles = Log<any EventListenerHandling>()
      handles.append(
        thread.addEventCallback { (_: E) in
          if calls.hasEnded.load(ordering: .sequentiallyConsistent) { calls.late.add(1, ordering: .relaxed) }
          guard calls.count.add(1, ordering: .relaxed).newValue == 3 else { return }
          begun.open()
          // The wait for this call has begun, or begins now, and does not end before the call.
          while handles.entries[0].isActive { yieldThread() }
          for _ in 0..<1_000 { yieldThread() }
          if calls.hasEnded.load(ordering: .sequentiallyConsistent) { calls.late.add(1, ordering: .relaxed) }
        })
      let count = 2_000
      #expect((0..<count).map { _ in event() }.queue(on: central) == count)
      begun.pass()
      handles.entries[0].removeAndWait()
      calls.hasEnded.store(true, ordering: .sequentiallyConsistent)
      #expect(thread.drain())
      #expect(calls.late.load(ordering: .relaxed) == 0)
      let delivered = UInt64(calls.count.load(ordering: .relaxed))
      #expect(thread.statistics.delivered == delivered)
      #expect(thread.statistics.skipped == UInt64(count) - delivered)
    }
    for _ in 0..<shortened(100) {
      removeDuring(Number.self) { Number(value: 1) }
      removeDuring(Carrying.self) { Carrying(end: lifetime.token()) }
    }
    #expect(lifetime.waitUntilNone())
  }

  @Test("D6: the end of a batch's event is outside of its handler, and may wait for it", arguments: cores)
  func endOfAnEventOfABatch(core: EventCentral.Core) {
    final class Removal: Sendable {
      let body: @Sendable () -> Void
      init(_ body: @escaping @Sendable () -> Void) { self.body = body }
      deinit { body() }
    }
    struct Event: Eventable {
      let value: Int
      let atEnd: Removal?
    }
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    let calls = Log<Int>()
    let handles = Log<any EventListenerHandling>()
    handles.append(pump.addEventCallback { (event: Event) in calls.append(event.value) })
    let event = { (value: Int) in
      Event(value: value, atEnd: value == 40 ? Removal { handles.entries[0].removeAndWait() } : nil)
    }
    #expect((0..<100).map(event).queue(on: central) == 100)
    #expect(pump.run().handled == 100)
    #expect(calls.entries == Array(0...40))
    #expect((pump.statistics.delivered, pump.statistics.skipped) == (41, 59))
    pump.cancel()
  }
}
