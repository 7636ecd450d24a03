// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("D2, D3: long lanes of events of several sizes")
struct LongLaneTests {
  struct Small: Eventable {
    var number: Int
  }
  struct Kilobyte: Sendable {
    var a = Quarter()
    var b = Quarter()
    var c = Quarter()
    var d = Quarter()
  }
  struct Quarter: Sendable {
    var a = (1, 2, 3, 4, 5, 6, 7, 8)
    var b = (1, 2, 3, 4, 5, 6, 7, 8)
    var c = (1, 2, 3, 4, 5, 6, 7, 8)
    var d = (1, 2, 3, 4, 5, 6, 7, 8)
  }
  struct Large: Eventable {
    var number: Int
    var body = Kilobyte()
  }
  /// Too large for a record of the locking core, so that it lies in a box.
  struct Huge: Eventable {
    var number: Int
    var bodies = (Kilobyte(), Kilobyte(), Kilobyte(), Kilobyte(), Kilobyte())
  }

  private func send(_ number: Int, _ method: EventDispatchMethod, _ central: EventCentral) {
    switch (number % 5, method) {
    case (1, .queue): Large(number: number).queue(on: central)
    case (1, .stack): Large(number: number).stack(on: central)
    case (3, .queue): Huge(number: number).queue(on: central)
    case (3, .stack): Huge(number: number).stack(on: central)
    case (_, .queue): Small(number: number).queue(on: central)
    case (_, .stack): Small(number: number).stack(on: central)
    }
  }

  @Test("a queue is first in, first out, a stack last in, first out", arguments: cores)
  func mixed(core: EventCentral.Core) {
    for method in [EventDispatchMethod.queue, .stack] {
      let central = EventCentral(core: core)
      let thread = EventThread(on: central)
      let log = Log<Int>()
      thread.addEventCallback { (event: Small) in log.append(event.number) }
      thread.addEventCallback { (event: Large) in log.append(event.number) }
      thread.addEventCallback { (event: Huge) in log.append(event.number) }
      let held = HeldThread(thread)
      for number in 0..<1_000 { send(number, method, central) }
      held.letGo()
      let entries = log.entries(atLeast: 1_000)
      #expect(entries == (method == .queue ? Array(0..<1_000) : (0..<1_000).reversed()))
      thread.cancel()
    }
  }

  @Test("D10: a cancel frees and counts the events that wait in queues and stacks", arguments: cores)
  func cancelled(core: EventCentral.Core) {
    struct Carrying: Eventable {
      var token: Lifetime.Token
      var body = Kilobyte()
    }
    let lifetime = Lifetime()
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    thread.addEventCallback { (_: Carrying) in }
    let held = HeldThread(thread)
    for number in 0..<500 {
      let event = Carrying(token: lifetime.token())
      if number.isMultiple(of: 2) { event.queue(on: central) } else { event.stack(on: central) }
    }
    thread.cancel()
    held.letGo()
    thread.join()
    #expect(thread.statistics.cancelled == 500)
    #expect(lifetime.alive == 0)
  }
}

@Suite("The locking core: a dispatch inside a dispatch, and the snapshots that threads remember")
struct LockingDispatchTests {
  struct Outer: Eventable { var number: Int }
  struct Inner: Eventable { var number: Int }

  final class DispatchingBalancer: EventPoolBalancing {
    let central: EventCentral
    init(_ central: EventCentral) { self.central = central }

    func chooseThread(for choice: borrowing EventPoolChoice) -> Int {
      let number = choice.withEvent(of: Outer.self) { $0.number } ?? 0
      [Inner(number: number), Inner(number: -number)].queue(on: central)
      return number % choice.count
    }
  }

  @Test("D7: a balancer may dispatch; the event that it chooses a thread for stays as it is")
  func balancerDispatches() {
    let central = EventCentral(core: .locking)
    let (outer, inner) = (Log<Int>(), Log<Int>())
    let pool = EventPool(
      capacity: 2, balancer: DispatchingBalancer(central), on: central
    ) { _ in
      let thread = EventThread()
      thread.addEventCallback { (event: Outer) in outer.append(event.number) }
      return thread
    }
    let thread = EventThread(on: central)
    thread.addEventCallback { (event: Inner) in inner.append(event.number) }
    for number in 1...50 { #expect(Outer(number: number).queue(on: central) == 1) }
    (51...100).map { Outer(number: $0) }.queue(on: central)
    #expect(outer.entries(atLeast: 100).sorted() == Array(1...100))
    #expect(inner.entries(atLeast: 200) == (1...100).flatMap { [$0, -$0] })
    pool.cancel()
    thread.cancel()
  }

  @Test("D9: a snapshot that a thread remembers keeps nothing that a handler held")
  func remembered() {
    let lifetime = Lifetime()
    let central = EventCentral(core: .locking)
    for _ in 0..<20 {
      let token = lifetime.token()
      let thread = EventThread(on: central)
      thread.addEventCallback { (_: Outer) in withExtendedLifetime(token) {} }
      #expect(Outer(number: 0).queue(on: central) == 1)
      #expect(thread.drain())
    }
    #expect(lifetime.waitUntilNone())
    #expect(Outer(number: 0).queue(on: central) == 0)
  }

  @Test("a dispatch whose only receiver has closed since it was found is counted once")
  func countedOnce() {
    struct Late: Eventable {}
    let central = EventCentral(core: .locking)
    let inbox = LockingInbox()
    let subscription = LockingSubscription(nil, drop: nil, inbox)
    central.router.subscribe(eventKey(Late.self), subscription.name, generation: 0, timed: false)
    let observation = central.observe()
    // As at a receiver that ends: it refuses, and the dispatch has found it already.
    inbox.close(drops: true)
    #expect(Late().queue(on: central) == 0)
    #expect(central.statistics.dispatched(Late.self) == 1)
    observation.end()
    central.router.unsubscribe(eventKey(Late.self), subscription.name)
  }

  @Test("D8: a dispatch whose only receiver has ended since it was found leaves nothing to the thread's next one")
  func nothingIsLeft() {
    struct Late: Eventable {}
    struct Timed: Eventable {}
    let router = EventCentral(core: .locking).router
    let closed = LockingInbox()
    let late = LockingSubscription(nil, drop: nil, closed)
    router.subscribe(eventKey(Late.self), late.name, generation: 0, timed: false)
    closed.close(drops: true)
    let lane = Lane(.queue, EventPriority.normal)
    #expect(router.beginOne(key: eventKey(Late.self), lane: lane.index, size: 0, alignment: 1) == nil)
    router.unsubscribe(eventKey(Late.self), late.name)
    #expect(dispatchToAll(Late(), lane: lane, through: router) == 0)
    // The long way, to a handler that needs the time.
    let open = LockingInbox()
    let timed = LockingSubscription(nil, drop: nil, open)
    router.subscribe(eventKey(Timed.self), timed.name, generation: 0, timed: true)
    var state = DispatchState()
    router.begin(key: eventKey(Timed.self), lane: lane.index, size: 0, alignment: 1, events: 1, &state)
    #expect(state.first.map { LockingRecord(address: $0).header.pointee.time > 0 } == true)
    #expect(router.commit(&state) == 1)
    open.forgetAll()
    router.unsubscribe(eventKey(Timed.self), timed.name)
  }

  @Test("the header of a record has the layout of an envelope's")
  func header() {
    typealias Header = LockingRecord.Header
    #expect(MemoryLayout<Header>.offset(of: \.link) == EnvelopeLayout.next)
    #expect(MemoryLayout<Header>.offset(of: \.subscription) == EnvelopeLayout.subscription)
    #expect(MemoryLayout<Header>.offset(of: \.time) == EnvelopeLayout.time)
    #expect(MemoryLayout<Header>.offset(of: \.generation) == EnvelopeLayout.generation)
    #expect(MemoryLayout<Header>.offset(of: \.lane) == EnvelopeLayout.lane)
    #expect(MemoryLayout<Header>.offset(of: \.flags) == EnvelopeLayout.flags)
    #expect(MemoryLayout<Header>.size == EnvelopeLayout.payload)
  }
}
