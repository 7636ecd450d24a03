// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("D9: a listener ends with its requester")
struct RequesterTests {
  @Test(
    "a requester that is gone before an event is not called, and its listeners end at that event",
    arguments: cores, TestedContext.allCases)
  func goneBefore(core: EventCentral.Core, place: TestedContext) async {
    await place.run(on: core) { central, context in
      let (owner, log) = (Lifetime(), Log<Int>())
      let box = Box(Requester(owner.token(), log))
      let (method, captured) = context.register { isolation in
        (
          Ping.addListener(
            box.value!, Requester.onPing, executeOn: context.executeOn, on: central),
          Ping.addListener(
            box.value!, { _ in log.append(-1) }, executeOn: context.executeOn, on: central)
        )
      }
      box.value = nil
      #expect(owner.alive == 0)
      #expect(!method.isActive)
      #expect(!captured.isActive)
      // Both are still registered, since nobody has looked.
      #expect(Ping().queue(on: central) >= 1)
      #expect(waitUntil { Ping().queue(on: central) == 0 })
      #expect(log.entries.isEmpty)
      #expect(waitUntil { central.listener.listenerCount == 0 })
      #expect(!captured.remove())
    }
  }

  @Test(
    "if the requester is gone before an event, what the closure captures is freed at that event",
    arguments: cores, TestedContext.allCases)
  func capturesFreed(core: EventCentral.Core, place: TestedContext) async {
    await place.run(on: core) { central, context in
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
    "a requester whose last reference goes during a call is kept until the call has ended",
    arguments: cores, TestedContext.allCases)
  func goneDuring(core: EventCentral.Core, place: TestedContext) async {
    await place.run(on: core) { central, context in
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
    "the last reference may go inside the handler, and the requester's deinit may wait for it",
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
    await place.run(on: core) { central, context in
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
    "requesters that end while other threads dispatch end once and leave nothing behind",
    arguments: cores, TestedContext.allCases)
  func goneUnderFire(core: EventCentral.Core, place: TestedContext) async {
    await place.run(on: core) { central, context in
      let (owner, payloads, over) = (Lifetime(), Lifetime(), Box<Gate>(Gate()))
      onThreads(3) { thread in
        if thread == 0 {
          for _ in 0..<shortened(300) {
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
    "of several listeners in one place none is called any more once the last reference is gone",
    arguments: cores, TestedContext.shared)
  func severalListeners(core: EventCentral.Core, place: TestedContext) async {
    await place.run(on: core) { central, context in
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
    await place.run(on: core) { central, context in
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
        // `onPing` appends to both logs; a call that still runs has appended to the first one alone.
        let (begun, done) = (inside.entries.count, requester.log.entries.count)
        #expect(begun == done)
        #expect(requester.log.entries.count == done)
      }
    }
  }

  @Test("a listener without a requester stays until removed", arguments: cores, TestedContext.allCases)
  func noRequester(core: EventCentral.Core, place: TestedContext) async {
    await place.run(on: core) { central, context in
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
    "a bound method retains its object until the listener is removed", arguments: cores)
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
