// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Foundation
import Synchronization
import Testing

/// Each actor has a central of its own, and dispatches the next event for each one that it handles: something waits at all
/// times, until the test ends it.
@Suite("Actors that get events faster than they handle them")
struct OverloadedActorTests {
  actor Model {
    let goesOn: Lasting
    let token: Lifetime.Token

    init(_ goesOn: Lasting, _ token: Lifetime.Token) {
      (self.goesOn, self.token) = (goesOn, token)
    }

    func register(on central: EventCentral) {
      Ping.addListener(
        self,
        { [central, goesOn] (self: isolated Model, event) in
          self.preconditionIsolated()
          goesOn.handled.add(1, ordering: .relaxed)
          if goesOn.value { Ping(number: event.number + 1).queue(on: central) }
        }, on: central)
    }
  }

  final class Lasting: Sendable {
    private let flag = Atomic<Bool>(true)
    let handled = Atomic<Int>(0)
    var value: Bool { flag.load(ordering: .relaxed) }
    func end() { flag.store(false, ordering: .relaxed) }
  }

  @Test("as many as there are processors leave other tasks their turn", arguments: cores)
  func otherTasks(core: EventCentral.Core) async {
    let (goesOn, lifetime) = (Lasting(), Lifetime())
    let count = ProcessInfo.processInfo.activeProcessorCount
    let actors = (0..<count).map { _ in Model(goesOn, lifetime.token()) }
    let centrals = (0..<count).map { _ in EventCentral(core: core) }
    for (actor, central) in zip(actors, centrals) { await actor.register(on: central) }
    await offThePool {
      for central in centrals { Ping(number: 0).queue(on: central) }
      #expect(waitUntil { goesOn.handled.load(ordering: .relaxed) > 1000 * count })
      let begun = Gate()
      Task.detached { begun.open() }
      #expect(begun.pass())
      goesOn.end()
    }
    withExtendedLifetime(actors) {}
  }

  @Test("D9: one that is released ends after the events of two jobs at most, whatever waits for it", arguments: cores)
  func released(core: EventCentral.Core) async {
    let (goesOn, lifetime, central) = (Lasting(), Lifetime(), EventCentral(core: core))
    do {
      let actor = Model(goesOn, lifetime.token())
      await actor.register(on: central)
      Ping(number: 0).queue(on: central)
      await offThePool { #expect(waitUntil { goesOn.handled.load(ordering: .relaxed) > 1000 }) }
    }
    let handled = goesOn.handled.load(ordering: .relaxed)
    await offThePool { #expect(lifetime.waitUntilNone()) }
    #expect(goesOn.handled.load(ordering: .relaxed) - handled <= 128)
    goesOn.end()
    #expect(await yieldUntil { Ping(number: 0).queue(on: central) == 0 })
  }
}
