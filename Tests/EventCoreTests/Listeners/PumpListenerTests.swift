// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("Listeners and the handlers of trees in a pump")
struct PumpListenerTests {
  struct Ping: Eventable { var number = 0 }

  @Test("A listener is called inside the runs, in one order with the callbacks", arguments: cores)
  func inOneOrder(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    let log = Log<String>()
    let thread = currentThread()
    pump.addEventCallback { (ping: Ping) in log.append("callback \(ping.number)") }
    let listener = Ping.addListener(nil, executeOn: .pump(pump), on: central) { ping in
      #expect(currentThread() == thread)
      log.append("listener \(ping.number)")
    }
    #expect("\(listener.executesOn)" == "pump")
    for number in 0..<3 { Ping(number: number).queue(on: central) }
    Ping(number: 3).stack(on: central)
    #expect(log.entries == [])
    #expect(listener.waitingEventCount == 4)
    #expect(pump.run(limit: 2).handled == 2)
    #expect(log.take() == ["callback 3", "listener 3", "callback 0", "listener 0"])
    // D6, for events that wait already.
    #expect(listener.remove())
    pump.run()
    #expect(log.take() == ["callback 1", "callback 2"])
  }

  @Test("D9: a listener in a pump ends with its requester, and with the pump", arguments: cores)
  func ends(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let lifetime = Lifetime()
    var pump: EventPump? = EventPump(on: central)
    let place = pump!.place
    var requester: Lifetime.Token? = lifetime.token()
    let log = Log<Int>()
    let first = Ping.addListener(requester, executeOn: .pump(place), on: central) { log.append($0.number) }
    let second = Ping.addListener(nil, executeOn: .pump(place), on: central) { log.append(-$0.number) }
    Ping(number: 1).queue(on: central)
    pump!.run()
    #expect(log.take() == [1, -1])
    requester = nil
    #expect(lifetime.alive == 0)
    #expect(!first.isActive)
    Ping(number: 2).queue(on: central)
    pump!.run()
    #expect(log.take() == [-2])
    pump = nil
    #expect(!second.isActive)
    let third = Ping.addListener(nil, executeOn: .pump(place), on: central) { log.append($0.number) }
    #expect(!third.isActive)
    #expect(Ping().queue(on: central) == 0)
  }

  private struct Held: Eventable { let token: Lifetime.Token }

  @Test(
    "D9, D10: a listener that goes between two runs leaves nothing behind when its pump is cancelled", arguments: cores,
    [EventListenerInterest.all, .latestOnly])
  func goesBetweenRuns(core: EventCentral.Core, interest: EventListenerInterest) {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    let place = pump.place
    let lifetime = Lifetime()
    var source: EventListener? = EventListener(on: central)
    do {
      let token = lifetime.token()
      Held.addListener(nil, executeOn: .pump(place), interestedIn: interest, on: source!) { _ in
        withExtendedLifetime(token) {}
      }
      let removed = Held.addListener(nil, executeOn: .pump(place), interestedIn: interest, on: source!) { _ in
        withExtendedLifetime(token) {}
      }
      Held(token: lifetime.token()).queue(on: central)
      removed.remove()
    }
    #expect(lifetime.alive == 2)
    if interest == .all { source!.end() }
    source = nil
    pump.cancel()
    #expect(lifetime.alive == 0)
  }

  @Test("A limit holds for a listener of another central, too", arguments: cores)
  func limited(core: EventCentral.Core) {
    let (central, other) = (EventCentral(core: core), EventCentral(core: core))
    let pump = EventPump(on: central)
    let log = Log<Int>()
    let listener = Ping.addListener(nil, executeOn: .pump(pump), on: other) { log.append($0.number) }
    for number in 0..<10 { Ping(number: number).queue(on: other) }
    #expect(pump.run(limit: 1).handled == 1)
    #expect(log.take() == [0])
    pump.run()
    #expect(log.take() == Array(1..<10))
    #expect(listener.remove())
  }

  @Test("D6: a listener of another central that is removed elsewhere is freed by the loop", arguments: cores)
  func freedByTheLoop(core: EventCentral.Core) async {
    await offThePool {
      let (central, other) = (EventCentral(core: core), EventCentral(core: core))
      let pump = EventPump(on: central)
      let lifetime = Lifetime()
      let made = Log<any EventListenerHandling>()
      pump.addEventCallback { (_: Ping) in
        made.append(
          Ping.addListener(nil, on: other) { [token = lifetime.token()] _ in withExtendedLifetime(token) {} })
      }
      Ping().queue(on: central)
      pump.run()
      let listener = made.take()[0]
      #expect("\(listener.executesOn)" == "pump")
      let removed = Gate()
      runThread {
        listener.remove()
        removed.open()
      }
      #expect(removed.pass())
      #expect(lifetime.alive == 1)
      pump.run()
      #expect(lifetime.alive == 0)
    }
  }

  /// How the source of a listener ends on another thread than its loop's.
  enum End: String, CaseIterable {
    case ended, released, withItsCentral, removedBefore
  }

  /// What a loop or a thread has registered, and the source that another thread ends.
  final class Source: Sendable {
    private let central: Guarded<EventCentral?>
    private let listener: Guarded<EventListener?>
    private let made = Log<any EventListenerHandling>()

    init(_ core: EventCentral.Core, _ end: End) {
      let central = EventCentral(core: core)
      self.central = Guarded(central)
      listener = Guarded(end == .withItsCentral ? nil : EventListener(on: central))
    }

    /// Of a closure that need not be `Sendable`, called where this is.
    func register(_ callback: @escaping (Ping) -> Void) {
      let source: any EventListenable = listener.withLock { $0 } ?? central.withLock { $0! }
      made.append(Ping.addListener(nil, on: source) { callback($0) })
    }

    func goAway(_ end: End) {
      for handle in made.take() where end == .removedBefore { handle.remove() }
      if end == .ended { listener.withLock { $0 }?.end() }
      // Moved out, so that no deinit runs inside a mutex.
      _ = listener.withLock { $0.take() }
      _ = central.withLock { $0.take() }
    }
  }

  // other thread                            loop
  // ends the source, releases it            has not run meanwhile
  //                                         runs: the closure, which need not be Sendable, is freed here
  @Test("D9: a closure of a source that ends and goes elsewhere is freed by the loop", arguments: cores, End.allCases)
  func sourceGoesElsewhere(core: EventCentral.Core, end: End) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (source, lifetime, gone) = (Source(core, end), Lifetime(), Gate())
      let pump = EventPump(on: central)
      pump.addEventCallback { (_: Ping) in
        source.register { [token = lifetime.token()] _ in withExtendedLifetime(token) {} }
      }
      Ping().queue(on: central)
      pump.run()
      runThread {
        source.goAway(end)
        gone.open()
      }
      #expect(gone.pass())
      #expect(lifetime.alive == 1)
      pump.run()
      #expect(lifetime.alive == 0)
    }
  }

  @Test("D4: a listener that another thread registers and removes while events come", arguments: cores)
  func elsewhere(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let pump = EventPump(on: central)
      let place = pump.place
      let (lifetime, log, over) = (Lifetime(), Log<Int>(), Gate())
      runThread {
        for round in 0..<50 {
          let token = lifetime.token()
          let listener = Ping.addListener(nil, executeOn: .pump(place), on: central) { ping in
            withExtendedLifetime(token) { if ping.number == round { log.append(round) } }
          }
          Ping(number: round).queue(on: central)
          _ = log.entries(atLeast: round + 1)
          listener.removeAndWait()
          Ping(number: round).queue(on: central)
        }
        over.open()
      }
      #expect(waitUntil {
        pump.run()
        return over.passIfOpen()
      })
      pump.run()
      #expect(log.entries == Array(0..<50))
      #expect(lifetime.alive == 0)
    }
  }

  @Test("Without executeOn: inside a callback, a listener is called in that pump", arguments: cores)
  func inside(core: EventCentral.Core) {
    let (central, other) = (EventCentral(core: core), EventCentral(core: core))
    let pump = EventPump(on: central)
    var seen: [String] = []
    var handles: [any EventListenerHandling] = []
    pump.addEventCallback { (_: Ping) in
      guard handles.isEmpty else { return }
      handles.append(Ping.addListener(nil, on: central) { seen.append("own \($0.number)") })
      handles.append(Ping.addListener(nil, on: other) { seen.append("other \($0.number)") })
    }
    Ping(number: 1).queue(on: central)
    pump.run()
    #expect(handles.map { "\($0.executesOn)" } == ["pump", "pump"])
    Ping(number: 2).queue(on: central)
    Ping(number: 3).queue(on: other)
    Ping(number: 4).queue(on: other)
    #expect(seen == [])
    pump.run()
    #expect(seen == ["own 2", "other 3", "other 4"])
    pump.cancel()
    Ping(number: 5).queue(on: other)
    #expect(seen.count == 3)
  }

  @Test("D10: a listener of another central ends with the pump, and frees what waits", arguments: cores)
  func otherCentral(core: EventCentral.Core) {
    struct Held: Eventable { var token: Lifetime.Token }
    let (central, other) = (EventCentral(core: core), EventCentral(core: core))
    let lifetime = Lifetime()
    let pump = EventPump(on: central)
    let handle = Held.addListener(nil, executeOn: .pump(pump), on: other) { _ in }
    #expect("\(handle.executesOn)" == "pump")
    for _ in 0..<3 { Held(token: lifetime.token()).queue(on: other) }
    #expect(lifetime.alive == 3)
    pump.cancel()
    // The pump's end has the other mailbox ended in a task.
    #expect(lifetime.waitUntilNone())
  }

  @Test("What is scheduled on the place of a pump comes to that pump alone, in its runs", arguments: cores)
  func scheduledOnPlace(core: EventCentral.Core) {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock, timers: .pumps)
    let (pump, other) = (EventPump(on: central), EventPump(on: central))
    var seen: [Int] = []
    pump.addEventCallback { (ping: Ping) in seen.append(ping.number) }
    other.addEventCallback { (ping: Ping) in seen.append(-ping.number) }
    Ping(number: 1).scheduleQueue(after: .zero, on: pump.place)
    Ping(number: 2).scheduleQueue(after: .seconds(2), on: pump.place)
    Ping(number: 3).scheduleStack(at: central.now + .seconds(2), on: pump.place)
    Ping(number: 4).scheduleQueue(every: .seconds(2), limit: 2, priority: .high, on: pump.place)
    for _ in 0..<5 {
      other.run()
      pump.run()
      clock.advance(by: .seconds(1))
    }
    #expect(seen == [1, 3, 4, 2, 4])
    // A schedule does not retain the pump.
    Ping(number: 5).scheduleQueue(after: .seconds(1), on: pump.place)
    pump.cancel()
    pump.run()
    clock.advance(by: .seconds(1))
    other.run()
    #expect(seen.count == 5)
  }

  @Test(
    "D9, D10: a listener on the place of a pump gets what is sent to the pump alone, and ends with it",
    arguments: cores)
  func listenersOnPlace(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    var pump: EventPump? = EventPump(on: central)
    let place = pump!.place
    let (inPump, elsewhere) = (Log<Int>(), Log<Int>())
    let thread = currentThread()
    let first = Ping.addListener(
      nil,
      { ping, _, _ in
        #expect(currentThread() == thread)
        inPump.append(ping.number)
      }, executeOn: .listenerThread, interestedIn: .custom, customFilter: { ping, _, _ in ping.number != 2 },
      on: place)
    let second = Ping.addListener(nil, executeOn: .taskThread, on: place) { ping in elsewhere.append(ping.number) }
    #expect("\(first.executesOn)" == "pump")
    Ping(number: 1).queue(on: central)
    for number in 2...3 { #expect(pump!.queueEvent(Ping(number: number), priority: .low)) }
    onThreads(1) { _ in
      #expect(place.listener.queueEvent(Ping(number: 4), priority: .high))
    }
    #expect(elsewhere.entries(atLeast: 4).sorted() == [1, 2, 3, 4])
    #expect(inPump.entries == [])
    pump!.run()
    #expect(inPump.entries == [4, 1, 3])
    #expect(first.skippedCount == 1)
    #expect(place.listener.listenerCount == 2)
    pump = nil
    #expect(!first.isActive && !second.isActive)
    #expect(!Ping.addListener(nil, executeOn: .taskThread, on: place) { _ in }.isActive)
    #expect(Ping().queue(on: central) == 0)
    let cancelled = EventPump(on: central)
    let third = Ping.addListener(nil, executeOn: .taskThread, on: cancelled.place) { _ in }
    cancelled.cancel()
    #expect(!third.isActive)
  }

  @Test("Event methods are registered on the place of a pump", arguments: cores)
  func methodsOnPlace(core: EventCentral.Core) {
    final class Display: EventListening, @unchecked Sendable {
      // The method is registered before others know the object.
      let log = Log<Int>()
      @EventMethod<Display, Ping>(executeOn: .listenerThread)
      private var onPing = { (self, event, _, _) in self.log.append(event.number) }
    }
    let pump = EventPump(on: EventCentral(core: core))
    let display = Display()
    display.registerListeners(on: pump.place)
    #expect(pump.queueEvent(Ping(number: 1)))
    #expect(display.log.entries == [])
    pump.run()
    #expect(display.log.entries == [1])
  }

  @Test("A sequence on the place of a pump gets what is sent to the pump alone", arguments: cores)
  func sequenceOnPlace(core: EventCentral.Core) async {
    let pump = EventPump(on: EventCentral(core: core))
    let sequence = Ping.events(on: pump.place)
    for number in 0..<3 { pump.queueEvent(Ping(number: number)) }
    var seen: [Int] = []
    for await ping in sequence {
      seen.append(ping.number)
      if ping.number == 2 { break }
    }
    #expect(seen == [0, 1, 2])
  }

  @Test("A tree's handler in a pump is called by its runs, in the order of the hand-overs", arguments: cores)
  func treeHandler(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    let node = EventNode()
    let log = Log<Int>()
    let handle = node.addHandler(executeOn: .pump(pump), of: central) { (ping: Ping) in
      log.append(ping.number)
    }
    #expect("\(handle.executesOn!)" == "pump")
    for number in 0..<3 { node.raise(event: Ping(number: number)) }
    #expect(log.entries == [])
    #expect(pump.run(limit: 2).waiting == 1)
    pump.run()
    #expect(log.entries == [0, 1, 2])
    node.raise(event: Ping(number: 4))
    handle.remove()
    pump.run()
    #expect(log.entries == [0, 1, 2])
  }
}
