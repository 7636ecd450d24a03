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
        customFilter: { $0.isEven($1, $2, $3) }, on: central)
      for number in 0..<10 { Ping(number: number).queue(on: central) }
      #expect(log.entries(atLeast: 5) == [0, 2, 4, 6, 8])
      #expect(waitUntil { handle.skippedCount == 5 })
      requester = nil
      #expect(owner.waitUntilNone())
      #expect(waitUntil { Ping().queue(on: central) == 0 })
    }
  }
}
