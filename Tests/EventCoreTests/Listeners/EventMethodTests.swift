// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

@Suite("Event methods are properties that are handlers")
struct EventMethodTests {
  class Base: EventListening, @unchecked Sendable {
    // Constants of Sendable types.
    let token: Lifetime.Token
    let log: Log<String>

    init(_ token: Lifetime.Token, _ log: Log<String>) {
      (self.token, self.log) = (token, log)
    }

    @EventMethod<Base, Ping>(executeOn: .listenerThread)
    private var onPing = {
      (self, event: Ping, priority: EventPriority, dispatchTime: DispatchTime) in
      self.log.append("base ping \(event.number) \(priority)")
    }
  }

  final class Derived: Base, @unchecked Sendable {
    @EventMethod<Derived, Ping>(
      executeOn: .listenerThread, interestedIn: .custom,
      customFilter: { (self, event, _, _) in event.number > 1 })
    private var onPing = {
      (self, event: Ping, priority: EventPriority, dispatchTime: DispatchTime) in
      self.log.append("derived ping \(event.number)")
    }

    @EventMethod<Derived, Pong>(executeOn: .taskThread)
    var onPong = { (self, event, priority, dispatchTime) in
      self.log.append("pong \(event.number)")
    }
  }

  @Test(
    "D9: all event methods are registered, those of base classes first, and end with their object",
    arguments: cores)
  func registered(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (lifetime, log) = (Lifetime(), Log<String>())
      var object: Derived? = Derived(lifetime.token(), log)
      #expect(object!.$onPong == nil)
      object!.registerListeners(on: central)
      // The second call adds nothing.
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
    // Constants of Sendable types.
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
    private var onPing = {
      (self, event: Ping, priority: EventPriority, dispatchTime: DispatchTime) in
      self.log.append("ping \(event.number)")
    }

    @EventMethod<Worker, Pong>(
      interestedIn: .custom, customFilter: { _, event, _, _ in event.number == 1 })
    var onPong = { (self, event, priority, dispatchTime) in
      self.log.append("pong \(event.number)")
    }
  }

  @Test("D9: an event thread registers its event methods itself and is not retained", arguments: cores)
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

  final class Clerk: EventThread, @unchecked Sendable {
    // Constants of Sendable types.
    let token: Lifetime.Token
    let log: Log<String>

    init(_ token: Lifetime.Token, _ log: Log<String>, on central: EventCentral) {
      (self.token, self.log) = (token, log)
      super.init(on: central)
    }

    @available(*, unavailable, message: "needs the test's objects")
    required init() { preconditionFailure("needs the test's objects") }

    @EventMethod<Clerk, Ping>(executeOn: .listenerThread)
    var onPing = { (self, event: Ping, priority: EventPriority, dispatchTime: DispatchTime) in
      self.log.append("ping \(event.number) \(priority)")
    }

    @EventMethod<Clerk, Carrying>(executeOn: .taskThread)
    var onCarrying = { (self, event, priority, dispatchTime) in
      self.log.append("carrying")
    }

    @EventMethod<Clerk, Pong>
    var onPong = { (self, event, priority, dispatchTime) in
      self.log.append("pong \(event.number)")
    }
  }

  @Test(
    "D9: an event method of a thread may run in another context, and ends with the thread object",
    arguments: cores)
  func elsewhereThanOnItsThread(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (lifetime, log) = (Lifetime(), Log<String>())
      var clerk: Clerk? = Clerk(lifetime.token(), log, on: central)
      let payloads = Lifetime()
      // The initialiser has registered them.
      #expect(central.listener.listenerCount == 2)
      #expect("\(clerk!.$onPing!.executesOn)" == "listenerThread")
      #expect("\(clerk!.$onCarrying!.executesOn)" == "task")
      #expect("\(clerk!.$onPong!.executesOn)" == "eventThread")
      let held = HeldThread(clerk!)
      Pong(number: 1).queue(on: central)
      Ping(number: 2).queue(priority: .high, on: central)
      // The thread stands still, and handlers that run elsewhere do not wait for it.
      #expect(log.entries(atLeast: 1) == ["ping 2 high"])
      Carrying(token: payloads.token()).queue(on: central)
      #expect(log.entries(atLeast: 2) == ["ping 2 high", "carrying"])
      #expect(clerk!.eventCount == 1)
      held.letGo()
      #expect(log.entries(atLeast: 3).last == "pong 1")
      // The listeners do not keep the thread object, even while an event is on its way.
      let heldPlace = HeldPlace(.listenerThread, on: central)
      Ping(number: 3).queue(on: central)
      clerk = nil
      #expect(lifetime.waitUntilNone())
      heldPlace.letGo()
      #expect(waitUntil { Ping().queue(on: central) == 0 })
      // The listener of another type is found to be over when its type is dispatched.
      #expect(waitUntil { Carrying(token: payloads.token()).queue(on: central) == 0 })
      // Listeners leave the listener's list after they have left the router.
      #expect(waitUntil { central.listener.listenerCount == 0 })
      #expect(log.entries.count == 3)
      #expect(payloads.waitUntilNone())
    }
  }

  final class Picky: EventListening, @unchecked Sendable {
    // Constants of Sendable types.
    let log: Log<String>

    init(_ log: Log<String>) { self.log = log }

    @EventMethod<Picky, Ping>(
      executeOn: .listenerThread, interestedIn: [.latestOnly, .custom],
      customFilter: { (self, event, _, _) in event.number % 2 == 0 })
    var onPing = { (self, event: Ping, priority: EventPriority, dispatchTime: DispatchTime) in
      self.log.append("ping \(event.number)")
    }

    @EventMethod<Picky, Pong>(executeOn: .listenerThread, interestedIn: .all)
    var onPong = { (self, event, priority, dispatchTime) in
      self.log.append("pong \(event.number)")
    }
  }

  @Test(
    "D4: several interests are met together: the latest event, if the filter lets it pass",
    arguments: cores)
  func severalInterests(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let log = Log<String>()
      let picky = Picky(log)
      picky.registerListeners(on: central)
      let first = HeldPlace(.listenerThread, on: central)
      for number in 1...3 { Ping(number: number).queue(on: central) }
      for number in 1...3 { Pong(number: number).queue(on: central) }
      first.letGo()
      // The latest was odd, and none of the older ones is handled in its place.
      #expect(log.entries(atLeast: 3) == ["pong 1", "pong 2", "pong 3"])
      let second = HeldPlace(.listenerThread, on: central)
      for number in 3...6 { Ping(number: number).queue(on: central) }
      second.letGo()
      #expect(log.entries(atLeast: 4).last == "ping 6")
      #expect(waitUntil { picky.$onPing!.skippedCount == 6 })
      #expect(picky.$onPong!.skippedCount == 0)
      #expect(log.entries.count == 4)
    }
  }

  final class PickyThread: EventThread, @unchecked Sendable {
    // Constants of Sendable types.
    let log: Log<String>

    init(_ log: Log<String>, on central: EventCentral) {
      self.log = log
      super.init(on: central)
    }

    @available(*, unavailable, message: "needs the test's objects")
    required init() { preconditionFailure("needs the test's objects") }

    @EventMethod<PickyThread, Ping>(
      interestedIn: [.youngerThan, .custom], maximumAge: 3_600_000_000_000,
      customFilter: { (self, event, _, _) in event.number % 2 == 0 })
    var onPing = { (self, event: Ping, priority: EventPriority, dispatchTime: DispatchTime) in
      self.log.append("ping \(event.number)")
    }

    // No event is as young as that.
    @EventMethod<PickyThread, Pong>(
      interestedIn: [.youngerThan, .custom], maximumAge: 1, customFilter: { _, _, _, _ in true })
    var onPong = { (self, event, priority, dispatchTime) in
      self.log.append("pong \(event.number)")
    }
  }

  @Test("D4: an event thread's method may have an age limit and a filter", arguments: cores)
  func severalInterestsOfAThread(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let log = Log<String>()
      let thread = PickyThread(log, on: central)
      for number in 1...4 {
        Pong(number: number).queue(on: central)
        Ping(number: number).queue(on: central)
      }
      #expect(thread.drain())
      #expect(log.entries == ["ping 2", "ping 4"])
      #expect(thread.$onPing!.skippedCount == 2)
      #expect(thread.$onPong!.skippedCount == 4)
    }
  }

  final class Filtering: EventThread, @unchecked Sendable {
    // Constants of Sendable types.
    let log = Log<Int>()

    @EventMethod<Filtering, Ping>(
      interestedIn: .custom,
      customFilter: { (self, event, _, _) in
        self.log.append(-event.number)
        self.leave()
        return true
      })
    var onPing = {
      (self, event: Ping, priority: EventPriority, dispatchTime: DispatchTime) in
      self.log.append(event.number)
    }

    func leave() { $onPing?.remove() }
  }

  @Test("D6, D7: a filter that removes its own event method is called no more", arguments: cores)
  func filterRemoves(core: EventCentral.Core) {
    let thread = Filtering(on: EventCentral(core: core))
    for number in 1...2 { thread.queueEvent(Ping(number: number)) }
    #expect(thread.drain())
    #expect(thread.log.entries == [-1])
  }

  final class Both: EventThread, @unchecked Sendable {
    // A constant of a Sendable type.
    let log = Log<String>()

    @EventMethod<Both, Ping>
    var onPing = {
      (self, event: Ping, priority: EventPriority, dispatchTime: DispatchTime) in
      self.log.append("property")
    }

    override func registerEventListeners() {
      addEventCallback { [log] (_: Ping) in log.append("callback") }
    }
  }

  @Test("a thread's properties are called before its callbacks of the same type", arguments: cores)
  func propertiesFirst(core: EventCentral.Core) {
    let thread = Both(on: EventCentral(core: core))
    thread.queueEvent(Ping(number: 1))
    #expect(thread.drain())
    #expect(thread.log.entries == ["property", "callback"])
  }

  final class Elsewhere: EventThread, @unchecked Sendable {
    @EventMethod<Elsewhere, Ping>(executeOn: .listenerThread)
    var onPing = { (self, event: Ping, priority: EventPriority, dispatchTime: DispatchTime) in }
  }

  class Ledger<Entry: Eventable>: EventListening, @unchecked Sendable {
    // `lines` is guarded by the lock; all else is constant.
    private let lock = Guarded(())
    private var lines: [String] = []
    // Of an object that has gone.
    unowned var author: Lifetime
    weak var reader: Lifetime?
    lazy var title = "none"
    let log: Log<Int>

    init(_ author: Lifetime, _ log: Log<Int>) { (self.author, self.log) = (author, log) }

    func write() {
      lock.withLock { _ in lines = ["a line that is too long for the string itself", "and another one of these"] }
    }

    @EventMethod<Ledger, Entry>(executeOn: .listenerThread)
    private var onEntry = { (self, event, priority, dispatchTime) in self.log.append(1) }
  }

  final class SignedLedger: Ledger<Ping>, @unchecked Sendable {
    // Its property is set before others know the object.
    @EventMethod<SignedLedger, Ping>(executeOn: .listenerThread)
    private var onPing = { (self, event, priority, dispatchTime) in self.log.append(2) }
  }

  @Test("a registration reads event methods alone, whatever happens to the other properties", arguments: cores)
  func readsNothingElse(core: EventCentral.Core) async {
    await offThePool {
      for _ in 0..<200 {
        let (central, log) = (EventCentral(core: core), Log<Int>())
        let ledger = SignedLedger(Lifetime(), log)
        onThreads(2) { index in
          for _ in 0..<50 {
            if index == 0 { ledger.write() } else { ledger.registerListeners(on: central) }
          }
        }
        Ping().queue(on: central)
        #expect(log.entries(atLeast: 2) == [1, 2])
      }
    }
  }

  @Test("D12: an event method with executeOn in a pool's thread traps")
  func inPool() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = EventPool<Elsewhere>(capacity: 2, on: EventCentral())
    }
    expectMessage(result, "Each event of a pool comes to one of its threads")
  }
}
