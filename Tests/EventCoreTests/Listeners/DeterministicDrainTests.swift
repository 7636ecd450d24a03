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
    // Nobody takes from this one, and nothing is left to run.
    let other = EventCentral(deterministic: 1, core: core)
    let hits = Hit.events(on: other)
    Hit().queue(on: other)
    #expect(await other.drain(until: other.now + .seconds(1)) == false)
    withExtendedLifetime(hits) {}
  }
}
