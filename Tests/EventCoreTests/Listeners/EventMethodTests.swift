// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

@Suite("Event methods: properties that are handlers")
struct EventMethodTests {
  class Base: EventListening, @unchecked Sendable {
    // Constant.
    let token: Lifetime.Token
    let log: Log<String>

    init(_ token: Lifetime.Token, _ log: Log<String>) {
      (self.token, self.log) = (token, log)
    }

    @EventMethod<Base, Ping>(executeOn: .listenerThread)
    private var onPing = { (self, event: Ping, priority: EventPriority, dispatchTime: DispatchTime) in
      self.log.append("base ping \(event.number) \(priority)")
    }
  }

  final class Derived: Base, @unchecked Sendable {
    @EventMethod<Derived, Ping>(
      executeOn: .listenerThread, interestedIn: .custom,
      customFilter: { (self, event, _, _) in event.number > 1 })
    private var onPing = { (self, event: Ping, priority: EventPriority, dispatchTime: DispatchTime) in
      self.log.append("derived ping \(event.number)")
    }

    @EventMethod<Derived, Pong>(executeOn: .taskThread)
    var onPong = { (self, event, priority, dispatchTime) in
      self.log.append("pong \(event.number)")
    }
  }

  @Test("all properties are registered, those of base classes first, and end with their object", arguments: cores)
  func registered(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (lifetime, log) = (Lifetime(), Log<String>())
      var object: Derived? = Derived(lifetime.token(), log)
      #expect(object!.$onPong == nil)
      object!.registerListeners(on: central)
      // Twice is once.
      object!.registerListeners(on: central)
      #expect(central.listener.listenerCount == 3)
      #expect(object!.$onPong?.isActive == true)
      Ping(number: 1).queue(priority: .high, on: central)
      Ping(number: 2).queue(on: central)
      #expect(
        log.entries(atLeast: 3) == ["base ping 1 high", "base ping 2 normal", "derived ping 2"])
      Pong(number: 7).queue(on: central)
      #expect(log.entries(atLeast: 4).last == "pong 7")
      object!.$onPong?.remove()
      #expect(Pong().queue(on: central) == 0)
      object = nil
      #expect(lifetime.waitUntilNone())
      #expect(waitUntil { Ping().queue(on: central) == 0 })
    }
  }

  final class Worker: EventThread, @unchecked Sendable {
    // Constant.
    let token: Lifetime.Token
    let log: Log<String>

    init(_ token: Lifetime.Token, _ log: Log<String>, on central: EventCentral) {
      (self.token, self.log) = (token, log)
      super.init(on: central)
    }

    @available(*, unavailable, message: "needs the test's objects")
    required init() { preconditionFailure("needs the test's objects") }

    override func registerEventListeners() {
      addEventCallback(Worker.onCarrying)
    }

    func onCarrying(_ event: Carrying) { log.append("carrying") }

    @EventMethod<Worker, Ping>
    private var onPing = { (self, event: Ping, priority: EventPriority, dispatchTime: DispatchTime) in
      self.log.append("ping \(event.number)")
    }

    @EventMethod<Worker, Pong>(
      interestedIn: .custom, customFilter: { _, event, _, _ in event.number == 1 })
    var onPong = { (self, event, priority, dispatchTime) in
      self.log.append("pong \(event.number)")
    }
  }

  @Test("an event thread registers them itself, and is not retained", arguments: cores)
  func eventThread(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (lifetime, log) = (Lifetime(), Log<String>())
      var worker: Worker? = Worker(lifetime.token(), log, on: central)
      let held = HeldThread(worker!)
      Ping(number: 5).queue(on: central)
      Pong(number: 0).queue(on: central)
      Pong(number: 1).queue(on: central)
      Carrying(token: lifetime.token()).queue(on: central)
      #expect(worker!.eventCount == 4)
      held.letGo()
      #expect(log.entries(atLeast: 3) == ["ping 5", "pong 1", "carrying"])
      #expect(worker!.$onPong?.skippedCount == 1)
      #expect("\(worker!.$onPong!.executesOn)" == "eventThread")
      worker = nil
      #expect(lifetime.waitUntilNone())
    }
  }
}
