// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Synchronization
import Testing

@Suite("D9: a requester that is gone is found without an event")
struct RequesterSweepTests {
  @Test("without an event: the sweep finds it", arguments: cores, TestedContext.allCases)
  func sweep(core: EventCentral.Core, place: TestedContext) async {
    await offThePool {
      let central = EventCentral(core: core)
      let context = place.open(on: central)
      defer { context.close() }
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
        // Registrations sweep as well.
        #expect(central.listener.sweep() <= count)
        #expect(closure.waitUntilNone())
        #expect(central.listener.listenerCount == 1)
      }
      withExtendedLifetime(living) {}
    }
  }

  @Test("without an event and without a call: registrations find it", arguments: cores)
  func registrationsSweep(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let owner = Lifetime()
      for _ in 0..<1000 {
        Ping.addListener(
          Requester(owner.token()), Requester.onPing, executeOn: .listenerThread, on: central)
      }
      // Each looks at four: what is spent does not pile up.
      #expect(central.listener.listenerCount < 10)
    }
  }

  @Test(
    "without an event of its type: the listener thread finds it before it sleeps", arguments: cores)
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
      // A flood: whether the thread comes to sleep or not, it finds them.
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
    "without an event of its type: a listener thread that never sleeps finds it too",
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
