// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Synchronization
import Testing

@Suite("D9: a listener dies with its requester")
struct RequesterTests {
  @Test(
    "before an event: the handler is not called, and what it held is freed at that event",
    arguments: cores, TestedContext.allCases)
  func goneBefore(core: EventCentral.Core, place: TestedContext) async {
    await offThePool {
      let central = EventCentral(core: core)
      let context = place.open(on: central)
      defer { context.close() }
      let (owner, closure, log) = (Lifetime(), Lifetime(), Log<Int>())
      let box = Box(Requester(owner.token(), log))
      let token = closure.token()
      let (method, captured) = context.register { isolation in
        (
          Ping.addListener(
            box.value!, Requester.onPing, executeOn: context.executeOn, on: central),
          Ping.addListener(
            box.value!, { _ in withExtendedLifetime(token) { log.append(-1) } },
            executeOn: context.executeOn, on: central)
        )
      }
      box.value = nil
      #expect(owner.alive == 0)
      #expect(!method.isActive)
      #expect(!captured.isActive)
      // Both are registered still: nothing has told them.
      #expect(Ping().queue(on: central) >= 1)
      #expect(waitUntil { Ping().queue(on: central) == 0 })
      #expect(log.entries.isEmpty)
      #expect(waitUntil { central.listener.listenerCount == 0 })
      #expect(!captured.remove())
    }
  }

  @Test(
    "before an event: the closure's own captures are freed at that event", arguments: cores,
    TestedContext.allCases)
  func capturesFreed(core: EventCentral.Core, place: TestedContext) async {
    await offThePool {
      let central = EventCentral(core: core)
      let context = place.open(on: central)
      defer { context.close() }
      let (owner, closure) = (Lifetime(), Lifetime())
      let box = Box(Requester(owner.token()))
      context.register { isolation in
        let token = closure.token()
        Ping.addListener(
          box.value!, { _ in withExtendedLifetime(token) {} }, executeOn: context.executeOn,
          on: central)
      }
      box.value = nil
      #expect(closure.alive == 1)
      Ping().queue(on: central)
      #expect(closure.waitUntilNone())
    }
  }

  @Test(
    "during a handler: it is kept alive over the call, and ends after it", arguments: cores,
    TestedContext.allCases)
  func goneDuring(core: EventCentral.Core, place: TestedContext) async {
    await offThePool {
      let central = EventCentral(core: core)
      let context = place.open(on: central)
      defer { context.close() }
      let (owner, log) = (Lifetime(), Log<Int>())
      let (entered, leave) = (Gate(), Gate())
      let box = Box<Requester>(nil)
      box.value = Requester(owner.token(), log) { _ in
        entered.open()
        leave.pass()
      }
      context.register { isolation in
        Ping.addListener(
          box.value!, Requester.onPing, executeOn: context.executeOn, on: central)
      }
      for number in 0..<5 { Ping(number: number).queue(on: central) }
      entered.pass()
      box.value = nil
      #expect(owner.alive == 1)
      leave.open()
      #expect(owner.waitUntilNone())
      #expect(waitUntil { central.listener.listenerCount == 0 })
      #expect(log.entries == [0])
    }
  }

  @Test(
    "its last reference may go inside its own handler, and its end may wait for its listener",
    arguments: cores, TestedContext.allCases)
  func endingInside(core: EventCentral.Core, place: TestedContext) async {
    /// Removes its listener as it ends.
    final class Careful: Sendable {
      let handle = Box<HandleBox>(nil)
      let ended: Gate
      let box: Box<Careful>
      init(_ ended: Gate, _ box: Box<Careful>) { (self.ended, self.box) = (ended, box) }
      func onPing(_ event: Ping) { box.value = nil }
      deinit {
        handle.value?.handle.removeAndWait()
        ended.open()
      }
    }
    final class HandleBox: Sendable {
      let handle: any EventListenerHandling
      init(_ handle: any EventListenerHandling) { self.handle = handle }
    }
    await offThePool {
      let central = EventCentral(core: core)
      let context = place.open(on: central)
      defer { context.close() }
      let (ended, box) = (Gate(), Box<Careful>(nil))
      box.value = Careful(ended, box)
      box.value!.handle.value = context.register { isolation in
        HandleBox(
          Ping.addListener(box.value!, Careful.onPing, executeOn: context.executeOn, on: central))
      }
      Ping().queue(on: central)
      #expect(ended.pass())
      #expect(Ping().queue(on: central) == 0)
    }
  }

  @Test(
    "after the handlers: while other threads dispatch, it ends once and nothing is left",
    arguments: cores, TestedContext.allCases)
  func goneUnderFire(core: EventCentral.Core, place: TestedContext) async {
    await offThePool {
      let central = EventCentral(core: core)
      let context = place.open(on: central)
      defer { context.close() }
      let (owner, payloads, over) = (Lifetime(), Lifetime(), Box<Gate>(Gate()))
      onThreads(3) { thread in
        if thread == 0 {
          for _ in 0..<300 {
            context.register { isolation in
              let requester = Requester(owner.token())
              Carrying.addListener(
                requester, { _ in }, executeOn: context.executeOn, on: central)
              Carrying.addListener(
                requester, { [weak requester] _ in #expect(requester != nil) },
                executeOn: context.executeOn, on: central)
            }
          }
          over.value = nil
        } else {
          while over.value != nil { Carrying(token: payloads.token()).queue(on: central) }
        }
      }
      #expect(waitUntil { Carrying(token: payloads.token()).queue(on: central) == 0 })
      #expect(owner.waitUntilNone())
      #expect(payloads.waitUntilNone())
      central.listener.sweep()
      #expect(central.listener.listenerCount == 0)
    }
  }

  @Test(
    "with several listeners in one place, none is called any more once the last reference is gone",
    arguments: cores, TestedContext.allCases)
  func severalListeners(core: EventCentral.Core, place: TestedContext) async {
    await offThePool {
      if case .place(.task) = place { return }  // One place each.
      let central = EventCentral(core: core)
      let context = place.open(on: central)
      defer { context.close() }
      let (owner, log) = (Lifetime(), Log<Int>())
      let box = Box<Requester>(nil)
      // The last reference goes inside the first handler for the 100th event.
      box.value = Requester(owner.token(), log) { event in
        if event.number == 100 { box.value = nil }
      }
      context.register { isolation in
        for _ in 0..<3 {
          Ping.addListener(
            box.value!, Requester.onPing, executeOn: context.executeOn, on: central)
        }
      }
      let held = HeldPlace(context, on: central)
      for number in 0..<200 { Ping(number: number).queue(on: central) }
      held.letGo()
      #expect(owner.waitUntilNone())
      #expect(waitUntil { central.listener.listenerCount == 0 })
      #expect(log.entries == (0..<100).flatMap { [$0, $0, $0] } + [100])
    }
  }

  // place A                              test                                place B
  // calls the requester's listener
  // stands in a handler that is not its  lets the last reference go
  //                                      sends events                        does not call it
  // leaves that handler
  @Test(
    "a handler that is not the requester's, and takes long, keeps no other place calling it",
    arguments: cores, ListenerPlace.allCases)
  func strangerTakesLong(core: EventCentral.Core, place: ListenerPlace) async {
    await offThePool {
      guard place != .task else { return }  // One place each.
      // The other handler is for the next event, or for the same one.
      for isSameEvent in [false, true] {
        let central = EventCentral(core: core)
        let (owner, log, seen) = (Lifetime(), Log<Int>(), Log<Int>())
        let (entered, leave) = (Gate(), Gate())
        let other = EventListener(on: central, name: "place B")
        let box = Box<Requester>(Requester(owner.token(), log))
        let executeOn = place.executeOn
        let here = Ping.addListener(
          box.value!, Requester.onPing, executeOn: executeOn, on: central)
        let stand: @Sendable (Int) -> Void = { number in
          guard number == 0 else { return }
          entered.open()
          leave.pass()
        }
        let held = HeldPlace(executeOn, on: central)
        let strangers: any EventListenerHandling =
          isSameEvent
          ? Ping.addListener(nil, { stand($0.number) }, executeOn: executeOn, on: central)
          : Pong.addListener(nil, { stand($0.number) }, executeOn: executeOn, on: central)
        Ping(number: 0).queue(on: central)
        Pong(number: 0).queue(on: central)
        held.letGo()
        entered.pass()
        #expect(log.entries(atLeast: 1) == [0])
        let there = other.addListener(
          box.value!, Requester.onPing, executeOn: .listenerThread)
        let captured = other.addListener(
          box.value!, { (_: Ping) in log.append(-1) }, executeOn: .listenerThread)
        let all = other.addListener(
          nil, { (event: Ping) in seen.append(event.number) }, executeOn: .listenerThread)
        Ping(number: 1).queue(on: central)
        #expect(seen.entries(atLeast: 1) == [1])
        #expect(log.entries == [0, 1, -1])
        box.value = nil
        #expect(![here, there, captured].contains { $0.isActive })
        for number in 2...11 { Ping(number: number).queue(on: central) }
        #expect(seen.entries(atLeast: 11) == Array(1...11))
        #expect(log.entries == [0, 1, -1])
        leave.open()
        #expect(owner.waitUntilNone())
        #expect(waitUntil { central.listener.listenerCount == 1 })
        #expect(log.entries == [0, 1, -1])
        strangers.remove()
        all.remove()
      }
    }
  }

  // place A                              test                                place B
  // calls the requester's listener
  // stands in a handler that is not its  removes that listener, adds one ──►
  //                                      lets the last reference go
  //                                      sends events                        does not call it
  @Test(
    "a place that holds it for a listener which has ended keeps no later one callable", arguments: cores)
  func laterListener(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (owner, log, seen) = (Lifetime(), Log<Int>(), Log<Int>())
      let (entered, leave) = (Gate(), Gate())
      let other = EventListener(on: central, name: "place B")
      let box = Box<Requester>(Requester(owner.token(), log))
      let first = Ping.addListener(
        box.value!, Requester.onPing, executeOn: .listenerThread, on: central)
      let stranger = Pong.addListener(
        nil,
        { _ in
          entered.open()
          leave.pass()
        }, executeOn: .listenerThread, on: central)
      let held = HeldPlace(.listenerThread, on: central)
      Ping(number: 0).queue(on: central)
      Pong(number: 0).queue(on: central)
      held.letGo()
      entered.pass()
      #expect(log.entries(atLeast: 1) == [0])
      first.remove()
      let later = other.addListener(box.value!, Requester.onPing, executeOn: .listenerThread)
      let all = other.addListener(
        nil, { (event: Ping) in seen.append(event.number) }, executeOn: .listenerThread)
      box.value = nil
      for number in 1...5 { Ping(number: number).queue(on: central) }
      #expect(seen.entries(atLeast: 5) == Array(1...5))
      #expect(log.entries == [0])
      #expect(!later.isActive)
      leave.open()
      #expect(owner.waitUntilNone())
      stranger.remove()
      all.remove()
    }
  }

  @Test(
    "with listeners in several busy places it ends soon, and none is called any more",
    arguments: cores, [2, 3])
  func severalBusyPlaces(core: EventCentral.Core, count: Int) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (owner, over) = (Lifetime(), Box<Gate>(Gate()))
      let (log, seen) = (Log<Int>(), (0..<count).map { _ in Log<Int>() })
      let others = (0..<count).map { EventListener(on: central, name: "busy \($0)") }
      let box = Box<Requester>(Requester(owner.token(), log))
      // The last ones go on, so that the threads hardly ever run dry.
      let handles = zip(others, seen).map { other, seen in
        other.addListener(box.value!, Requester.onPing, executeOn: .listenerThread)
        other.addListener(box.value!, { (_: Ping) in log.append(-1) }, executeOn: .listenerThread)
        return other.addListener(
          nil, { (ping: Ping) in if ping.number > 0 { seen.append(ping.number) } },
          executeOn: .listenerThread)
      }
      let ended = Gate()
      runThread {
        #expect(owner.waitUntilNone())
        over.value = nil
        ended.open()
      }
      let stopped = Gate()
      runThread {
        // Bounded, so that a slow consumer gets no unbounded backlog.
        while over.value != nil {
          Ping().queue(on: central)
          _ = waitUntil { handles.allSatisfy { $0.waitingEventCount < 1000 } }
        }
        stopped.open()
      }
      box.value = nil
      #expect(ended.pass())
      let calls = log.entries.count
      stopped.pass()
      for number in 1...100 { Ping(number: number).queue(on: central) }
      for seen in seen { #expect(seen.entries(atLeast: 100) == Array(1...100)) }
      #expect(log.entries.count == calls)
    }
  }

  @Test(
    "D6: removeAndWait leaves no call of a requester's listener running, under fire",
    arguments: cores, TestedContext.allCases)
  func removeAndWaitUnderFire(core: EventCentral.Core, place: TestedContext) async {
    await offThePool {
      let central = EventCentral(core: core)
      let context = place.open(on: central)
      defer { context.close() }
      let lifetime = Lifetime()
      for round in 0..<10 {
        let inside = Log<Int>()
        let requester = Requester(lifetime.token()) { _ in inside.append(1) }
        let handle = context.register { isolation in
          Ping.addListener(
            requester, Requester.onPing, executeOn: context.executeOn, on: central)
        }
        for number in 0..<(500 + round * 100) { Ping(number: number).queue(on: central) }
        _ = inside.entries(atLeast: 200 + 50 * round)
        handle.removeAndWait()
        // `onPing` appends to both; a call that runs has done the first alone.
        let (begun, done) = (inside.entries.count, requester.log.entries.count)
        #expect(begun == done)
        #expect(requester.log.entries.count == done)
      }
    }
  }

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

  @Test("a nil requester: until it is removed", arguments: cores, TestedContext.allCases)
  func noRequester(core: EventCentral.Core, place: TestedContext) async {
    await offThePool {
      let central = EventCentral(core: core)
      let context = place.open(on: central)
      defer { context.close() }
      let (closure, log) = (Lifetime(), Log<Int>())
      let handle = context.register { isolation in
        let token = closure.token()
        return Ping.addListener(
          nil, { event in withExtendedLifetime(token) { log.append(event.number) } },
          executeOn: context.executeOn, on: central)
      }
      central.listener.sweep()
      Ping(number: 1).queue(on: central)
      #expect(log.entries(atLeast: 1) == [1])
      handle.remove()
      #expect(closure.waitUntilNone())
      #expect(central.listener.listenerCount == 0)
    }
  }

  @Test(
    "a bound method, as the documents of EventDrivenSwift print it, retains its object until the listener is removed",
    arguments: cores)
  func boundMethodRetains(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (owner, log) = (Lifetime(), Log<Int>())
      let handles: [any EventListenerHandling]
      do {
        let requester = Requester(owner.token(), log)
        handles = [
          Ping.addListener(requester, requester.onPing, executeOn: .listenerThread, on: central),
          Ping.addListener(
            requester, requester.onTimedPing, executeOn: .listenerThread, on: central),
        ]
      }
      Ping(number: 3).queue(on: central)
      #expect(log.entries(atLeast: 2) == [3, 3])
      #expect(owner.alive == 1)
      handles[0].remove()
      Ping(number: 4).queue(on: central)
      #expect(log.entries(atLeast: 3) == [3, 3, 4])
      handles[1].remove()
      #expect(owner.waitUntilNone())
    }
  }

  @Test(
    "a filter that is a method of the requester retains nothing and is not asked without it",
    arguments: cores)
  func methodFilter(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (owner, log) = (Lifetime(), Log<Int>())
      var requester: Requester? = Requester(owner.token(), log)
      let handle = Ping.addListener(
        requester!, Requester.onPing, executeOn: .listenerThread, interestedIn: .custom,
        customFilter: Requester.isEven, on: central)
      for number in 0..<10 { Ping(number: number).queue(on: central) }
      #expect(log.entries(atLeast: 5) == [0, 2, 4, 6, 8])
      #expect(waitUntil { handle.skippedCount == 5 })
      requester = nil
      #expect(owner.waitUntilNone())
      #expect(waitUntil { Ping().queue(on: central) == 0 })
    }
  }
}
