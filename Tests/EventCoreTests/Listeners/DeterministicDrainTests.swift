// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

/// Drains of deterministic centrals, which run no tasks.
extension ListenerDrainTests {
  @Test("a deterministic drain is true when the last call of a removed listener has returned", arguments: cores)
  func removedThenDrained(core: EventCentral.Core) async {
    for _ in 0..<1_000 {
      let world = EventCentral(deterministic: 1, core: core)
      let (entered, leave) = (Gate(), Gate())
      let handle = Hit.addListener(nil, concurrency: .serial, on: world) { _ async in
        entered.open()
        await offThePool { leave.pass() }
      }
      Hit().queue(on: world)
      await offThePool { entered.pass() }
      handle.remove()
      async let isRemoved = handle.removed()
      leave.open()
      _ = await isRemoved
      #expect(await world.drain())
    }
  }

  @Test("a deterministic central runs until its listeners are drained", arguments: cores)
  func deterministic(core: EventCentral.Core) async {
    let world = EventCentral(deterministic: 1, core: core)
    let numbers = Log<Int>()
    Hit.addListener(nil, { numbers.append($0.number) }, executeOn: .listenerThread, on: world)
    Hit.addListener(nil, { numbers.append($0.number) }, executeOn: .taskThread, on: world)
    (0..<3).map(Hit.init).queue(on: world)
    #expect(await world.drain())
    #expect(numbers.entries.sorted() == [0, 0, 1, 1, 2, 2])
    // Its task ends elsewhere, a moment later.
    let removed = EventCentral(deterministic: 1, core: core)
    Hit.addListener(nil, concurrency: .serial, on: removed) { _ async in }.remove()
    #expect(await removed.drain())
    // The tasks of these end because of the drain.
    for number in 0..<200 {
      let asynchronous = EventCentral(deterministic: 1, core: core)
      let handled = Log<Int>()
      Hit.addListener(nil, concurrency: number % 2 == 0 ? .serial : .concurrent(2), on: asynchronous) { hit async in
        await Task.yield()
        handled.append(hit.number)
      }
      (0..<number % 4).map(Hit.init).queue(on: asynchronous)
      #expect(await asynchronous.drain())
      #expect(handled.entries.sorted() == Array(0..<number % 4))
    }
    // Nobody takes from this one, with a limit, and nothing is left to run.
    let other = EventCentral(deterministic: 1, core: core)
    let hits = Hit.events(on: other)
    Hit().queue(on: other)
    #expect(await other.drain(until: other.now + .seconds(1)) == false)
    withExtendedLifetime(hits) {}
  }

  @Test("D10: a deterministic drain waits for loops over sequences", arguments: cores)
  func loops(core: EventCentral.Core) async {
    for round in 0..<200 {
      let world = EventCentral(deterministic: 1, core: core)
      let thread = EventThread(on: world)
      let hits = Hit.events(on: round % 2 == 0 ? world : thread)
      let loop = Task {
        var numbers: [Int] = []
        for await hit in hits {
          numbers.append(hit.number)
          await Task.yield()
        }
        return numbers
      }
      (0..<3).map(Hit.init).queue(on: world)
      let isDrained = round % 2 == 0 ? await world.drain() : await thread.drain()
      #expect(isDrained)
      // Only a drain ends the loop.
      #expect(await loop.value == [0, 1, 2])
      thread.cancel()
    }
  }

  @Test("a deterministic drain without a limit does not wait for ever for a loop that does not go on", arguments: cores)
  func stuckLoop(core: EventCentral.Core) async {
    let world = EventCentral(deterministic: 1, core: core)
    let (begun, never) = (Hit.events(on: world), Hit.events(on: world))
    var iterator = begun.makeAsyncIterator()
    (0..<3).map(Hit.init).queue(on: world)
    #expect(await iterator.next()?.number == 0)
    #expect(await world.drain() == false)
    #expect(await iterator.next() == nil)
    #expect(world.listener.statistics.cancelled == 2 + 3)
    withExtendedLifetime(never) {}
  }

  @Test("D10: a deterministic drain waits for its turn while another thread runs the central", arguments: cores)
  func atOnce(core: EventCentral.Core) async {
    for seed in UInt64(0)..<100 {
      let world = EventCentral(deterministic: seed, core: core)
      let threads = (0..<3).map { _ in EventThread(on: world) }
      let (count, entered, leave) = (Log<Int>(), Gate(), Gate())
      threads[0].addEventCallback { (_: Hit) in
        entered.open()
        leave.pass()
      }
      for thread in threads[1...] { thread.addEventCallback { (hit: Hit) in count.append(hit.number) } }
      Hit().queue(on: world)
      async let run: Void = offThePool { world.run() }
      await offThePool { entered.pass() }
      (1...20).map(Hit.init).queue(on: world)
      for _ in 0..<20 { leave.open() }
      async let isFirstDrained = threads[1].drain()
      async let isSecondDrained = threads[2].drain()
      #expect(await yieldUntil { threads[1...].allSatisfy { $0.queueEvent(Hit()) == false } })
      leave.open()
      #expect(await (isFirstDrained, isSecondDrained) == (true, true))
      await run
      threads[0].cancel()
      async let isFirstOver: Void = threads[0].join()
      async let isWorldDrained = world.drain()
      #expect(await isWorldDrained)
      await isFirstOver
      #expect(count.entries.count(where: { $0 > 0 }) == 40)
    }
  }
}
