// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

@Suite("Listeners on actors")
struct ActorListenerTests {
  actor Model {
    var numbers: [Int] = []
    let token: Lifetime.Token
    let reached: Gate
    let limit: Int

    init(_ token: Lifetime.Token, _ limit: Int, _ reached: Gate) {
      (self.token, self.limit, self.reached) = (token, limit, reached)
    }

    func append(_ number: Int) {
      preconditionIsolated()
      numbers.append(number)
      if numbers.count == limit { reached.open() }
    }

    func register(on central: EventCentral) -> any EventListenerHandling {
      Ping.addListener(nil, { self.append($0.number) }, on: central)
    }

    /// Says nothing about isolation: a closure that is isolated to the actor must run there.
    func registerByDefault(on central: EventCentral) -> any EventListenerHandling {
      Ping.addListener(self, { self.append($0.number) }, on: central)
    }

    func registerWeakly(on central: EventCentral) -> any EventListenerHandling {
      Ping.addListener(
        self, { (self: isolated Model, event) in self.append(event.number) }, on: central)
    }
  }

  enum Form: CaseIterable {
    case isolation, byDefault, weak
  }

  @Test("D2, D4: all events are handled on the actor, once, in order", arguments: cores, Form.allCases)
  func inOrder(core: EventCentral.Core, form: Form) async {
    let central = EventCentral(core: core)
    let (lifetime, reached) = (Lifetime(), Gate())
    let model = Model(lifetime.token(), 1000, reached)
    let handle =
      switch form {
      case .isolation: await model.register(on: central)
      case .byDefault: await model.registerByDefault(on: central)
      case .weak: await model.registerWeakly(on: central)
      }
    #expect("\(handle.executesOn)" == "actor")
    for number in 0..<1000 { Ping(number: number).queue(on: central) }
    await offThePool { #expect(reached.pass()) }
    #expect(await model.numbers == Array(0..<1000))
    handle.remove()
    #expect(Ping().queue(on: central) == 0)
  }

  actor Shop {
    func open(on central: EventCentral) -> [any EventListenerHandling] {
      [
        Ping.addListener(nil, { _ in }, on: central),
        Pong.answer(executeOn: .requesterThread, on: central) { query in query.number },
      ]
    }
  }

  @Test("D9: a listener or an answerer ends with the actor on which it runs, not with a later event", arguments: cores)
  func endOfTheActor(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    var shop: Shop? = Shop()
    weak let gone = shop
    let handles = await shop!.open(on: central)
    #expect(handles.allSatisfy { $0.isActive })
    shop = nil
    #expect(await yieldUntil { gone == nil })
    #expect(handles.allSatisfy { !$0.isActive })
    // The first event frees the place.
    Ping().queue(on: central)
    await #expect(throws: EventWaitError.self) { try await central.request(Pong(), expecting: Int.self) }
    #expect(await yieldUntil { Ping().queue(on: central) == 0 })
  }

  @Test("D9: a sweep frees the listeners of an actor that is gone, though no event comes", arguments: cores)
  func sweptAfterTheActor(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    var shop: Shop? = Shop()
    weak let gone = shop
    _ = await shop!.open(on: central)
    #expect(central.listener.sweep() == 0)
    shop = nil
    #expect(await yieldUntil { gone == nil })
    #expect(central.listener.sweep() == 2)
    #expect(central.listener.listenerCount == 0)
  }

  enum Caller {
    @TaskLocal static var number = 0
  }

  actor Heard {
    var values: [Int] = []
    var priorities: [TaskPriority] = []
    let reached = Gate()

    func register(on central: EventCentral) -> any EventListenerHandling {
      Ping.addListener(
        nil,
        { _ in
          self.values.append(Caller.number)
          self.priorities.append(Task.currentPriority)
          if self.values.count == 200 { self.reached.open() }
        }, on: central)
    }
  }

  @Test("a handler on an actor has neither the task-local values nor the priority of a dispatcher", arguments: cores)
  func noTaskLocals(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let heard = Heard()
    let handle = await heard.register(on: central)
    await Caller.$number.withValue(7) {
      await Task(priority: .background) { _ = (0..<200).map { Ping(number: $0) }.queue(on: central) }.value
    }
    await offThePool { #expect(heard.reached.pass()) }
    #expect(await heard.values == Array(repeating: 0, count: 200))
    #expect(await heard.priorities.allSatisfy { $0 == .medium })
    handle.remove()
  }

  @Test("D9: a listener whose requester is its actor does not retain it and ends with it", arguments: cores)
  func endsWithTheActor(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let (lifetime, reached) = (Lifetime(), Gate())
    let handle: any EventListenerHandling
    do {
      let model = Model(lifetime.token(), 1, reached)
      handle = await model.registerWeakly(on: central)
      Ping(number: 1).queue(on: central)
      await offThePool { #expect(reached.pass()) }
    }
    await offThePool {
      #expect(lifetime.waitUntilNone())
      #expect(!handle.isActive)
      #expect(waitUntil { Ping().queue(on: central) == 0 })
    }
  }

  @Test(
    "a closure that is isolated to an actor retains it until the listener is removed",
    arguments: cores)
  func isolatedClosureRetains(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let (lifetime, reached) = (Lifetime(), Gate())
    let handle: any EventListenerHandling
    do {
      let model = Model(lifetime.token(), 1, reached)
      handle = await model.register(on: central)
    }
    #expect(lifetime.alive == 1)
    handle.remove()
    await offThePool { #expect(lifetime.waitUntilNone()) }
  }

  @MainActor
  final class Screen {
    var numbers: [Int] = []
    let reached: Gate
    init(_ reached: Gate) { self.reached = reached }

    func onPing(_ event: Ping) {
      MainActor.preconditionIsolated()
      numbers.append(event.number)
      if event.number < 0 { reached.open() }
    }

    func onTimedPing(_ event: Ping, _ priority: EventPriority, _ time: DispatchTime) {
      onPing(event)
    }

    func isEven(_ event: Ping, _ priority: EventPriority, _ time: DispatchTime) -> Bool {
      event.number % 2 == 0
    }
  }

  @Test(
    "bound and unapplied methods and closures of the MainActor run on it, in all forms",
    arguments: cores)
  @MainActor
  func mainActor(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let reached = Gate()
    let screen = Screen(reached)
    let handles: [any EventListenerHandling] = [
      Ping.addListener(screen, screen.onPing, on: central),
      Ping.addListener(screen, screen.onTimedPing, on: central),
      Ping.addListener(screen, Screen.onPing, on: central),
      Ping.addListener(
        screen, Screen.onTimedPing, interestedIn: .custom, customFilter: { $0.isEven($1, $2, $3) },
        on: central),
      Ping.addListener(screen, { event in screen.onPing(event) }, on: central),
      Ping.addListener(nil, { event in screen.onPing(event) }, on: central),
      Ping.addListener(
        nil, { @MainActor event in MainActor.preconditionIsolated() }, on: central),
    ]
    #expect(handles.allSatisfy { "\($0.executesOn)" == "mainQueue" })
    Ping(number: 1).queue(on: central)
    Ping(number: 2).queue(on: central)
    Ping(number: -2).queue(on: central)
    // Another event of the same lane is handled after all calls for the last Ping.
    let last = Gate()
    let end = Pong.addListener(nil, { @MainActor _ in last.open() }, on: central)
    Pong().queue(on: central)
    await offThePool { #expect(last.pass()) }
    #expect(screen.numbers == [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, -2, -2, -2, -2, -2, -2])
    #expect(handles[3].skippedCount == 1)
    for handle in handles + [end] { handle.remove() }
  }
}
