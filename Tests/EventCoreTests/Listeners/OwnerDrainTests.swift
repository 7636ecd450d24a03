// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

@Suite("The drain of a thread or a pool, whose listeners run elsewhere")
struct OwnerDrainTests {
  struct Hit: Eventable { var number = 0 }

  /// What both are here.
  struct Owner {
    let place: any EventListenable
    let drain: @Sendable () async -> Bool
    let drainBlocking: @Sendable () -> Bool
    let cancel: @Sendable () -> Void

    static func all(on central: EventCentral) -> [Owner] {
      let thread = EventThread(on: central)
      let pool = EventPool<EventThread>(capacity: 2, on: central)
      return [
        Owner(
          place: thread, drain: { await thread.drain() }, drainBlocking: { thread.drain() },
          cancel: { thread.cancel() }),
        Owner(
          place: pool, drain: { await pool.drain() }, drainBlocking: { pool.drain() }, cancel: { pool.cancel() }),
      ]
    }
  }

  /// Registers a listener that is held up in the first event, and has 99 others wait.
  private func fill(
    _ owner: Owner, _ numbers: Log<Int>, _ gate: Gate, _ world: EventCentral,
    on queue: DispatchQueue = DispatchQueue(label: "owner")
  ) async {
    let began = Gate()
    Hit.addListener(
      nil, { numbers.append($0.number, heldUpInFirst: gate, began) }, executeOn: .dispatchQueue(queue), on: owner.place)
    (0..<100).map(Hit.init).queue(on: world)
    await offThePool { began.pass() }
  }

  @Test("D10: what waits for listeners on queues is handled before the drain returns", arguments: cores)
  func queues(core: EventCentral.Core) async {
    let world = EventCentral(core: core)
    for owner in Owner.all(on: world) {
      let (numbers, gate) = (Log<Int>(), Gate())
      await fill(owner, numbers, gate, world)
      async let isDrained = owner.drain()
      // The drain has begun when the listener accepts nothing more.
      #expect(await yieldUntil { Hit(number: -1).queue(on: world) == 0 })
      gate.open()
      #expect(await isDrained)
      #expect(numbers.entries.filter { $0 >= 0 } == Array(0..<100))
    }
  }

  @Test("D10: and what waits for `async` listeners, whose last call has returned then", arguments: cores)
  func tasks(core: EventCentral.Core) async {
    let world = EventCentral(core: core)
    for owner in Owner.all(on: world) {
      let returned = Log<Int>()
      let (news, signal) = AsyncStream.makeStream(of: Void.self)
      Hit.addListener(nil, concurrency: .serial, on: owner.place) { hit in
        if hit.number == 0 { for await _ in news { break } }
        await Task.yield()
        returned.append(hit.number)
      }
      (0..<100).map(Hit.init).queue(on: world)
      async let isDrained = owner.drain()
      #expect(await yieldUntil { Hit(number: -1).queue(on: world) == 0 })
      signal.yield()
      #expect(await isDrained)
      #expect(returned.entries.filter { $0 >= 0 } == Array(0..<100))
    }
  }

  @Test("D10: a drain that gives up, or that blocks its thread, frees what waits elsewhere, and says so", arguments: cores)
  func lost(core: EventCentral.Core) async {
    let world = EventCentral(core: core)
    for number in 0..<3 {
      for owner in Owner.all(on: world) {
        let (numbers, gate) = (Log<Int>(), Gate())
        await fill(owner, numbers, gate, world)
        switch number {
        case 0:
          let isDrained = Log<Bool>()
          await offThePool { isDrained.append(owner.drainBlocking()) }
          #expect(isDrained.entries == [false])
        case 1:
          let drain = Task { await owner.drain() }
          #expect(await yieldUntil { Hit(number: -1).queue(on: world) == 0 })
          drain.cancel()
          #expect(await drain.value == false)
        default:
          owner.cancel()
          // It waits for the handler that runs.
          gate.open()
          #expect(await owner.drain() == false)
        }
        gate.open()
        #expect(await yieldUntil { numbers.entries.first == 0 })
        #expect(numbers.entries.allSatisfy { $0 <= 0 })
      }
    }
  }

  @Test("D10: a drain that blocks says true if nothing waited elsewhere", arguments: cores)
  func nothing(core: EventCentral.Core) async {
    let world = EventCentral(core: core)
    for owner in Owner.all(on: world) {
      let numbers = Log<Int>()
      Hit.addListener(
        nil, { numbers.append($0.number) }, executeOn: .dispatchQueue(DispatchQueue(label: "owner")), on: owner.place)
      Hit(number: 1).queue(on: world)
      #expect(await yieldUntil { owner.place.listener.eventCount == 0 && numbers.entries == [1] })
      let isDrained = Log<Bool>()
      await offThePool { isDrained.append(owner.drainBlocking()) }
      #expect(isDrained.entries == [true])
    }
  }

  @Test("D10: a place with nothing to do keeps no drain waiting, though nobody serves it", arguments: cores)
  func unserved(core: EventCentral.Core) async {
    let world = EventCentral(core: core)
    for owner in Owner.all(on: world) {
      let queue = DispatchQueue(label: "owner")
      queue.suspend()
      Hit.addListener(nil, { _ in }, executeOn: .dispatchQueue(queue), on: owner.place)
      let hits = Hit.events(on: owner.place)
      #expect(await owner.drain())
      var iterator = hits.makeAsyncIterator()
      #expect(await iterator.next() == nil)
      queue.resume()
    }
  }

  @Test("a listener that is registered during a drain gets nothing, and costs nothing that waits (D10)", arguments: cores)
  func late(core: EventCentral.Core) async {
    let world = EventCentral(core: core)
    for owner in Owner.all(on: world) {
      let (numbers, gate, queue) = (Log<Int>(), Gate(), DispatchQueue(label: "owner"))
      await fill(owner, numbers, gate, world, on: queue)
      async let isDrained = owner.drain()
      #expect(await yieldUntil { Hit(number: -1).queue(on: world) == 0 })
      Hit.addListener(nil, { numbers.append(-$0.number) }, executeOn: .dispatchQueue(queue), on: owner.place)
      #expect(Hit(number: 1).queue(on: world) == 0)
      gate.open()
      #expect(await isDrained)
      #expect(numbers.entries.filter { $0 >= 0 } == Array(0..<100))
    }
    // None was there before.
    let thread = EventThread(on: world)
    let (began, gate) = (Gate(), Gate())
    thread.addEventCallback { (hit: Hit) in
      guard hit.number == 1 else { return }
      began.open()
      gate.pass()
    }
    thread.queueEvent(Hit(number: 1))
    await offThePool { began.pass() }
    async let isDrained = thread.drain()
    #expect(await yieldUntil { !thread.queueEvent(Hit()) })
    let listener = Hit.addListener(nil, { _ in }, executeOn: .dispatchQueue(DispatchQueue(label: "owner")), on: thread)
    #expect(!listener.isActive)
    #expect(Hit().queue(on: world) == 0)
    gate.open()
    #expect(await isDrained)
  }

  @Test("D10: concurrent `async` listeners make the calls that they have taken and not begun", arguments: cores)
  func concurrent(core: EventCentral.Core) async {
    for round in 0..<20 {
      let world = EventCentral(core: core)
      for owner in Owner.all(on: world) {
        let returned = Log<Int>()
        Hit.addListener(nil, concurrency: .concurrent(100), on: owner.place) { hit in
          await Task.yield()
          returned.append(hit.number)
        }
        (0..<50).map(Hit.init).queue(on: world)
        // Now and then the listener has taken all of them, and begun some.
        if round.isMultiple(of: 2) { #expect(await yieldUntil { owner.place.listener.statistics.delivered > 0 }) }
        #expect(await owner.drain())
        #expect(returned.entries.sorted() == Array(0..<50))
      }
    }
  }

  @Test("D10: a sequence whose loop is over keeps no drain waiting", arguments: cores)
  func brokenLoop(core: EventCentral.Core) async {
    let world = EventCentral(core: core)
    for owner in Owner.all(on: world) {
      let hits = Hit.events(on: owner.place)
      Hit().queue(on: world)
      for await _ in hits { break }
      #expect(await owner.drain())
      #expect(hits.waitingEventCount == 0)
    }
  }
}
