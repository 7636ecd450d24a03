// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

/// A loop on the main thread: its handlers are in the loop's place, and not on the main queue.
@MainActor
@Suite("Registrations without executeOn: in handlers of a loop on the main thread")
struct LoopPlaceTests {
  struct Call: Eventable { let body: @Sendable () -> Void }

  @Test("D2 D10: in a handler of an event thread of a deterministic central, a listener is on that thread", arguments: cores)
  func deterministic(core: EventCentral.Core) {
    let world = EventCentral(deterministic: 7, core: core)
    let home = EventThread(on: world)
    let (places, log) = (Log<String>(), Log<Int>())
    home.addEventCallback { (call: Call) in call.body() }
    home.queueEvent(Call { places.append("\(Ping.addListener(nil, { log.append($0.number) }, on: world).executesOn)") })
    world.run()
    #expect(places.entries == ["eventThread"])
    for number in 0..<3 { Ping(number: number).queue(on: world) }
    #expect(home.drain())
    #expect(log.entries == [0, 1, 2])
  }

  @Test("in a handler that a pump calls for another central, a listener is in that pump", arguments: cores)
  func guests(core: EventCentral.Core) {
    let (home, world) = (EventCentral(core: core), EventCentral(core: core))
    let pump = EventPump(on: home)
    let (places, log) = (Log<String>(), Log<Int>())
    Call.addListener(nil, { $0.body() }, executeOn: .pump(pump.place), on: world)
    Call { places.append("\(Ping.addListener(nil, { log.append($0.number) }, on: world).executesOn)") }.queue(on: world)
    pump.run()
    #expect(places.entries == ["pump"])
    Ping(number: 1).queue(on: world)
    pump.run()
    #expect(log.entries == [1])
  }

  @Test("in a handler of a listener thread, a listener of another source is on that thread", arguments: cores)
  func listenerThread(core: EventCentral.Core) {
    let world = EventCentral(deterministic: 7, core: core)
    let other = EventListener(on: world)
    let (places, log) = (Log<String>(), Log<Int>())
    Call.addListener(nil, { $0.body() }, executeOn: .listenerThread, on: world)
    Call { places.append("\(Ping.addListener(nil, { log.append($0.number) }, on: other).executesOn)") }.queue(on: world)
    world.run()
    #expect(places.entries == ["listenerThread"])
    Ping(number: 1).queue(on: world)
    world.run()
    #expect(log.entries == [1])
  }

  @Test("what belongs to the main queue of a deterministic central registers there", arguments: cores)
  func mainQueue(core: EventCentral.Core) {
    let world = EventCentral(deterministic: 7, core: core)
    let places = Log<String>()
    Call.addListener(nil, { $0.body() }, executeOn: .main, on: world)
    Call { places.append("\(Ping.addListener(nil, { _ in }, on: world).executesOn)") }.queue(on: world)
    world.run()
    #expect(places.entries == ["mainQueue"])
  }

  @Test("D12: in a task of a deterministic central it traps, as in another one", .timeLimit(.minutes(1)))
  func tasks() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      await MainActor.run {
        let world = EventCentral(deterministic: 7)
        Call.addListener(nil, { $0.body() }, executeOn: .taskThread, on: world)
        Call { Ping.addListener(nil, { _ in }, on: world) }.queue(on: world)
        world.run()
      }
    }
    expectMessage(result, "Without executeOn: a callback is called where it is registered")
  }
}
