// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

@Suite("What is registered on an actor is called on that actor")
struct ActorRegistrationTests {
  /// An object of the actor's that checks in each call that it runs on the actor.
  final class Model: EventListening {
    // Unowned, since the actor keeps this object.
    unowned let home: any Actor
    let log: Log<Int>

    init(_ home: any Actor, _ log: Log<Int>) { (self.home, self.log) = (home, log) }

    func onPing(_ event: Ping) {
      home.preconditionIsolated()
      log.append(event.number)
    }

    func onTimedPing(_ event: Ping, _ priority: EventPriority, _ dispatchTime: DispatchTime) {
      onPing(event)
    }

    @EventMethod<Model, Ping>
    var ping = { (self, event, priority, dispatchTime) in self.onPing(event) }
  }

  /// Registers its listener in a `registerListeners` of its own, and has no event methods.
  class Overriding: EventListening {
    struct Heard: Eventable { let number: Int }
    // Unowned for the same reason.
    unowned let home: any Actor
    let log: Log<Int>
    var handle: (any EventListenerHandling)?

    init(_ home: any Actor, _ log: Log<Int>) { (self.home, self.log) = (home, log) }

    func registerListeners() {
      handle = Heard.addListener(self, Overriding.onHeard)
    }

    func onHeard(_ event: Heard) {
      home.preconditionIsolated()
      log.append(event.number)
    }
  }

  actor Home {
    let log = Log<Int>()
    var kept: [AnyObject] = []

    /// Registers a listener in each form and returns their handles.
    func register(on central: EventCentral) -> [any EventListenerHandling] {
      let model = Model(self, log)
      kept.append(model)
      let onPing: @Sendable (Ping) -> Void = { [log] event in
        self.preconditionIsolated()
        log.append(event.number)
      }
      let onTimedPing: @Sendable (Ping, EventPriority, DispatchTime) -> Void = { event, _, _ in
        onPing(event)
      }
      return [
        Ping.addListener(nil, onPing, on: central),
        Ping.addListener(nil, onTimedPing, on: central),
        Ping.addListener(nil, on: central) { onPing($0) },
        Ping.addListener(nil, onPing, interestedIn: [.all], on: central),
        Ping.addListener(model, Model.onPing, on: central),
        Ping.addListener(model, Model.onTimedPing, on: central),
        Ping.addListener(model, Model.onPing, interestedIn: [.all], on: central),
        Ping.addListener(model, model.onPing, on: central),
        Ping.addListener(nil, onTimedPing, interestedIn: .all, on: central.listener),
        Ping.addListener(nil, onTimedPing, executeOn: .requesterThread, on: central),
        Ping.addListener(nil, executeOn: .requesterThread, on: central) { onPing($0) },
      ]
    }

    func registerProperties(on central: EventCentral?) -> (any EventListenerHandling)? {
      let model = Model(self, log)
      kept.append(model)
      if let central {
        model.registerListeners(on: central)
      } else {
        model.registerListeners()
      }
      return model.$ping
    }

    func registerOverriding() -> [(any EventListenerHandling)?] {
      func registerGenerically<Some: EventListening>(_ some: Some) { some.registerListeners() }
      let models = (0..<2).map { _ in Overriding(self, log) }
      kept += models
      (models[0] as any EventListening).registerListeners()
      registerGenerically(models[1])
      return models.map(\.handle)
    }
  }

  @Test("listeners of every form of addListener are called on the actor that adds them", arguments: cores)
  func everyForm(core: EventCentral.Core) async {
    let (central, home) = (EventCentral(core: core), Home())
    let handles = await home.register(on: central)
    #expect(handles.map { "\($0.executesOn)" } == handles.map { _ in "actor" })
    for number in 0..<10 { Ping(number: number).queue(on: central) }
    await offThePool { _ = home.log.entries(atLeast: 10 * handles.count) }
    #expect(home.log.entries == (0..<10).flatMap { number in handles.map { _ in number } })
    for handle in handles { handle.remove() }
  }

  @Test("event methods that registerListeners(on:) finds are called on the actor", arguments: cores)
  func properties(core: EventCentral.Core) async throws {
    let (central, home) = (EventCentral(core: core), Home())
    let handle = try #require(await home.registerProperties(on: central))
    #expect("\(handle.executesOn)" == "actor")
    for number in 0..<10 { Ping(number: number).queue(on: central) }
    await offThePool { _ = home.log.entries(atLeast: 10) }
    #expect(home.log.entries == Array(0..<10))
    handle.remove()
  }

  @Test("event methods on the shared central are called on the actor")
  func sharedCentral() async throws {
    let home = Home()
    let handle = try #require(await home.registerProperties(on: nil))
    #expect("\(handle.executesOn)" == "actor")
    handle.remove()
  }

  @Test("listeners of a registerListeners() of the user's own are called on the actor")
  func overriding() async {
    let home = Home()
    let handles = await home.registerOverriding()
    #expect(handles.map { $0.map { "\($0.executesOn)" } } == ["actor", "actor"])
    Overriding.Heard(number: 7).queue()
    await offThePool { _ = home.log.entries(atLeast: 2) }
    #expect(home.log.entries == [7, 7])
    for handle in handles { handle?.remove() }
  }

  /// Registers in its initialiser, which does not run on the actor yet.
  actor Listening: EventListening {
    struct Told: Eventable { let number: Int }
    nonisolated let log = Log<Int>()
    var numbers: [Int] = []

    @EventMethod<Listening, Told>
    var told = { (self, event, priority, dispatchTime) in
      self.assumeIsolated { $0.numbers.append(event.number) }
      self.log.append(event.number)
    }

    init() { registerListeners() }

    var handle: (any EventListenerHandling)? { $told }
  }

  @Test("D9: an actor's own event methods are called on it, and do not retain it")
  func actorOfItsOwn() async {
    let log: Log<Int>
    let handle: (any EventListenerHandling)?
    do {
      let listening = Listening()
      log = listening.log
      handle = await listening.handle
      #expect(handle.map { "\($0.executesOn)" } == "actor")
      for number in 0..<10 { Listening.Told(number: number).queue() }
      await offThePool { _ = log.entries(atLeast: 10) }
      #expect(await listening.numbers == Array(0..<10))
    }
    await offThePool { #expect(waitUntil { handle?.isActive == false }) }
    #expect(log.entries == Array(0..<10))
  }
}
