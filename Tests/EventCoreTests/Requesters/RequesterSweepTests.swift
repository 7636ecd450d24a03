// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Synchronization
import Testing

@Suite("D9: a listener whose requester is gone ends without an event")
struct RequesterSweepTests {
  @Test("the sweep ends listeners whose requester is gone", arguments: cores, TestedContext.allCases)
  func sweep(core: EventCentral.Core, place: TestedContext) async {
    await place.run(on: core) { central, context in
      let (owner, closure) = (Lifetime(), Lifetime())
      let living = Requester(owner.token())
      context.register { isolation in
        Ping.addListener(living, Requester.onPing, executeOn: context.executeOn, on: central)
      }
      for count in [0, 1, 5] {
        for _ in 0..<count {
          context.register { isolation in
            let token = closure.token()
            Ping.addListener(
              Requester(owner.token()), { _ in withExtendedLifetime(token) {} },
              executeOn: context.executeOn, on: central)
          }
        }
        // At most, since registrations look for ended listeners as well.
        #expect(central.listener.sweep() <= count)
        #expect(closure.waitUntilNone())
        #expect(central.listener.listenerCount == 1)
      }
      withExtendedLifetime(living) {}
    }
  }

  @Test("registrations end listeners whose requester is gone", arguments: cores)
  func registrationsSweep(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let owner = Lifetime()
      for _ in 0..<1000 {
        Ping.addListener(
          Requester(owner.token()), Requester.onPing, executeOn: .listenerThread, on: central)
      }
      // Each registration looks at four listeners, so that ended ones do not pile up.
      #expect(central.listener.listenerCount < 10)
    }
  }

  @Test(
    "the listener thread ends listeners whose requester is gone, without their event",
    arguments: cores)
  func listenerThreadSweeps(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (closure, log) = (Lifetime(), Log<Int>())
      Pong.addListener(nil, { _ in log.append(0) }, executeOn: .listenerThread, on: central)
      do {
        let token = closure.token()
        Ping.addListener(
          Requester(closure.token()), { _ in withExtendedLifetime(token) {} },
          executeOn: .listenerThread, on: central)
      }
      // Events of another type, so that the thread finds the listener whether it sleeps or not.
      #expect(
        waitUntil {
          Pong().queue(on: central)
          return closure.alive == 0
        })
    }
  }

  // listener thread                        test
  // handles a Pong, which dispatches       registers a listener for Ping; its requester goes
  // the next: it never sleeps              waits until what that listener held is freed
  @Test(
    "a listener thread that never sleeps ends listeners whose requester is gone",
    arguments: cores)
  func busyListenerThreadSweeps(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let closure = Lifetime()
      let isOver = Atomic<Bool>(false)
      let handle = Pong.addListener(
        nil,
        { [weak central] _ in
          if let central, !isOver.load(ordering: .relaxed) { Pong().queue(on: central) }
        }, executeOn: .listenerThread, on: central)
      Pong().queue(on: central)
      for _ in 0..<100 {
        let token = closure.token()
        Ping.addListener(
          nil, { _ in withExtendedLifetime(token) {} }, executeOn: .listenerThread, on: central
        ).remove()
        Ping.addListener(
          Requester(closure.token()), { _ in withExtendedLifetime(token) {} },
          executeOn: .listenerThread, on: central)
      }
      #expect(closure.waitUntilNone())
      #expect(central.listener.listenerCount == 1)
      isOver.store(true, ordering: .relaxed)
      handle.removeAndWait()
    }
  }
}
