// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

@Suite("D9: a requester that a place holds is not called there or anywhere else once it is gone")
struct RequesterHoldTests {
  // place A                              test                                place B
  // calls the requester's listener
  // stands in a handler that is not its  lets the last reference go
  //                                      sends events                        does not call it
  // leaves that handler
  @Test(
    "another handler that takes long does not make other places go on calling a requester",
    arguments: cores, ListenerPlace.shared)
  func strangerTakesLong(core: EventCentral.Core, place: ListenerPlace) async {
    await offThePool {
      // The handler that takes long is one for the next event, or one for the same event.
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
        let there = Ping.addListener(
          box.value!, Requester.onPing, executeOn: .listenerThread, on: other)
        let captured = Ping.addListener(
          box.value!, { (_: Ping) in log.append(-1) }, executeOn: .listenerThread, on: other)
        let all = Ping.addListener(
          nil, { (event: Ping) in seen.append(event.number) }, executeOn: .listenerThread, on: other)
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
    "a place that holds a requester for an ended listener keeps no later listener callable",
    arguments: cores)
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
      let later = Ping.addListener(box.value!, Requester.onPing, executeOn: .listenerThread, on: other)
      let all = Ping.addListener(
        nil, { (event: Ping) in seen.append(event.number) }, executeOn: .listenerThread, on: other)
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

  // place                                test
  // calls the event thread's listener
  // stands in a handler that is not its  lets the last reference to the thread go: it ends
  //                                      sends events                        no callback of it
  // leaves that handler
  @Test(
    "an event thread with a listener in a busy place ends with its last reference",
    arguments: cores, [false, true])
  func eventThread(core: EventCentral.Core, isSubclass: Bool) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (owner, log) = (Lifetime(), Log<Int>())
      let (entered, leave) = (Gate(), Gate())
      let other = EventListener(on: central, name: "place")
      let box = Box<EventThread>(isSubclass ? Pinger(on: central) : EventThread(on: central))
      box.value!.addEventCallback { [token = owner.token()] (event: Ping) in
        log.append(event.number)
        withExtendedLifetime(token) {}
      }
      let its = Pong.addListener(
        box.value!, { (_: Pong) in log.append(-1) }, executeOn: .listenerThread, on: other)
      let stranger = standing(at: other, entered, leave)
      Ping(number: 0).queue(on: central)
      #expect(log.entries(atLeast: 1) == [0])
      Pong(number: 0).queue(on: central)
      entered.pass()
      #expect(log.entries == [0, -1])
      box.value = nil
      // Its own consumer may hold the thread object until it has run dry, but no longer.
      #expect(owner.waitUntilNone())
      #expect(Ping(number: 1).queue(on: central) == 0)
      #expect(!its.isActive)
      #expect(log.entries == [0, -1])
      leave.open()
      stranger.remove()
    }
  }

  @Test(
    "a requester that was found gone stays gone, even if a weak reference is made strong",
    arguments: cores)
  func foundGone(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (owner, log) = (Lifetime(), Log<Int>())
      let (entered, leave) = (Gate(), Gate())
      let scope = EventListenerScope()
      let box = Box<Requester>(Requester(owner.token(), log))
      let handle = Ping.addListener(
        box.value!, Requester.onPing, executeOn: .listenerThread, on: central)
      handle.stored(in: scope)
      let seen = Log<Int>()
      Ping.addListener(
        nil, { (event: Ping) in seen.append(event.number) }, executeOn: .listenerThread,
        on: central)
      // The place holds the requester from its first event on, since the second one keeps it busy.
      let held = HeldPlace(.listenerThread, on: central)
      let stranger = standing(at: central.listener, entered, leave)
      Ping(number: 0).queue(on: central)
      Pong(number: 0).queue(on: central)
      held.letGo()
      entered.pass()
      #expect(log.entries(atLeast: 1) == [0])
      weak let reference = box.value
      box.value = nil
      #expect(!handle.isActive)
      let again = reference
      #expect(again != nil)
      #expect(!handle.isActive)
      leave.open()
      Ping(number: 1).queue(on: central)
      #expect(seen.entries(atLeast: 2) == [0, 1])
      #expect(log.entries == [0])
      withExtendedLifetime(again) {}
      stranger.remove()
      scope.end()
    }
  }

  /// Registers a listener without a requester that stands in its handler from `entered` until `leave`.
  private func standing(
    at place: EventListener, _ entered: Gate, _ leave: Gate
  ) -> any EventListenerHandling {
    Pong.addListener(
      nil,
      { (_: Pong) in
        entered.open()
        leave.pass()
      }, executeOn: .listenerThread, on: place)
  }

  /// Requesters that have handlers of their own.
  enum Active: CaseIterable {
    case node, pool, coordinator, worker, listener, scope, token, central

    @discardableResult
    private func addListener(
      to source: any EventListenable, _ token: Lifetime.Token
    ) -> any EventListenerHandling {
      Ping.addListener(
        nil, { _ in withExtendedLifetime(token) {} }, executeOn: .listenerThread, on: source)
    }

    /// Returns the object, and a closure that tells whether it is alive and does not retain it.
    func make(
      _ central: EventCentral, _ core: EventCentral.Core, _ token: Lifetime.Token
    ) -> (object: AnyObject, isThere: () -> Bool) {
      switch self {
      case .node:
        let parent = EventNode(core: core)
        let node = EventNode(parent: parent)
        node.addHandler { (_: Ping) in withExtendedLifetime(token) {} }
        return (
          node,
          { parent.raise(event: Ping(number: 0)).handlerCount > 0 || !parent.children.isEmpty }
        )
      case .pool:
        let pool = EventPool(capacity: 2, on: central) { _ in
          let thread = EventThread()
          thread.addEventCallback { (_: Ping) in withExtendedLifetime(token) {} }
          return thread
        }
        return (pool, { Ping(number: 0).queue(on: central) > 0 })
      case .coordinator:
        final class Owning: Coordinator {
          let token: Lifetime.Token
          init(_ token: Lifetime.Token) {
            self.token = token
            super.init()
          }
        }
        let coordinator = Owning(token)
        return (coordinator, { [weak coordinator] in coordinator != nil })
      case .worker:
        let worker = EventWorker(on: central, state: token) { on in on(Ping.self) { _, _ in } }
        return (worker, { Ping(number: 0).queue(on: central) > 0 })
      case .listener:
        let listener = EventListener(on: central, name: "own")
        addListener(to: listener, token)
        return (listener, { Ping(number: 0).queue(on: central) > 0 })
      case .scope:
        let scope = EventListenerScope()
        addListener(to: central, token).stored(in: scope)
        return (scope, { Ping(number: 0).queue(on: central) > 0 })
      case .token:
        let listenerToken = Ping.listen(executeOn: .listenerThread, on: central) { _ in
          withExtendedLifetime(token) {}
        }
        return (listenerToken, { Ping(number: 0).queue(on: central) > 0 })
      case .central:
        let own = EventCentral(core: core)
        addListener(to: own, token)
        return (own, { [weak own] in own != nil })
      }
    }
  }

  @Test("a busy place keeps no object with handlers of its own", arguments: cores, Active.allCases)
  func activeByItself(core: EventCentral.Core, kind: Active) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (owner, log) = (Lifetime(), Log<Int>())
      let (entered, leave) = (Gate(), Gate())
      let other = EventListener(on: central, name: "place")
      var (object, isThere): (AnyObject?, () -> Bool) = kind.make(central, core, owner.token())
      let its = Pong.addListener(
        object, { (_: Pong) in log.append(-1) }, executeOn: .listenerThread, on: other)
      let stranger = standing(at: other, entered, leave)
      Pong(number: 0).queue(on: central)
      entered.pass()
      #expect(log.entries == [-1])
      #expect(isThere())
      object = nil
      #expect(!isThere())
      #expect(owner.waitUntilNone())
      #expect(!its.isActive)
      leave.open()
      stranger.remove()
    }
  }

  @Test(
    "a requester of several busy places ends soon, and none of them calls it any more",
    arguments: cores, [2, 3])
  func severalBusyPlaces(core: EventCentral.Core, count: Int) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (owner, over) = (Lifetime(), Box<Gate>(Gate()))
      let (log, seen) = (Log<Int>(), (0..<count).map { _ in Log<Int>() })
      let others = (0..<count).map { EventListener(on: central, name: "busy \($0)") }
      let box = Box<Requester>(Requester(owner.token(), log))
      // The last listener of each place stays, so that the threads hardly ever run dry.
      let handles = zip(others, seen).map { other, seen in
        Ping.addListener(box.value!, Requester.onPing, executeOn: .listenerThread, on: other)
        Ping.addListener(box.value!, { (_: Ping) in log.append(-1) }, executeOn: .listenerThread, on: other)
        return Ping.addListener(
          nil, { (ping: Ping) in if ping.number > 0 { seen.append(ping.number) } },
          executeOn: .listenerThread, on: other)
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
}

/// An event thread whose callback is a method of its own.
private final class Pinger: EventThread, @unchecked Sendable {
  // It adds no state.
  override func registerEventListeners() {
    addEventCallback(Pinger.onPing, forEventType: Ping.self)
  }

  func onPing(_ event: Ping, _ priority: EventPriority, _ dispatchTime: DispatchTime) {}
}
