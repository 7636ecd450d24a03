// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("Listeners for one event, and scopes")
struct OnceAndScopeTests {
  @Test(
    "D4: a once listener is called exactly once, whoever dispatches", arguments: cores,
    ListenerPlace.allCases)
  func once(core: EventCentral.Core, place: ListenerPlace) async {
    await offThePool {
      let central = EventCentral(core: core)
      for round in 0..<20 {
        let (log, closure) = (Log<Int>(), Lifetime())
        let handle: any EventListenerHandling
        do {
          let token = closure.token()
          handle = Ping.addListener(
            nil, { event in withExtendedLifetime(token) { log.append(event.number) } },
            executeOn: place.executeOn, once: true, on: central)
        }
        onThreads(3) { _ in
          for _ in 0..<10 { Ping(number: round).queue(on: central) }
        }
        #expect(log.entries(atLeast: 1) == [round])
        #expect(waitUntil { Ping(number: -1).queue(on: central) == 0 })
        #expect(!handle.isActive)
        #expect(!handle.removeAndWait())
        #expect(closure.waitUntilNone())
        #expect(log.entries == [round])
      }
    }
  }

  @Test("a once listener is not used up by events that its interest turns away", arguments: cores)
  func onceWithInterest(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let log = Log<Int>()
      let handle = Ping.addListener(
        nil, { log.append($0.number) }, executeOn: .listenerThread, interestedIn: .custom,
        customFilter: { event, _, _ in event.number >= 5 }, once: true, on: central)
      for number in 0..<10 { Ping(number: number).queue(on: central) }
      #expect(log.entries(atLeast: 1) == [5])
      #expect(waitUntil { !handle.isActive })
      #expect(handle.skippedCount == 5)
    }
  }

  @Test(
    "D6: a once listener that is removed meanwhile is called at most once", arguments: cores)
  func onceAgainstRemove(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      for _ in 0..<200 {
        let log = Log<Int>()
        let handle = Ping.addListener(
          nil, { _ in log.append(1) }, executeOn: .listenerThread, once: true, on: central)
        onThreads(2) { thread in
          if thread == 0 { Ping().queue(on: central) } else { handle.removeAndWait() }
        }
        #expect(log.entries.count <= 1)
      }
      #expect(waitUntil { Ping().queue(on: central) == 0 })
      #expect(waitUntil { central.listener.listenerCount == 0 })
    }
  }

  @Test("D9: a scope removes its listeners when it ends, in whatever way", arguments: cores)
  func scope(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let thread = EventThread(on: central)
      var scope: EventListenerScope? = EventListenerScope()
      func fill(_ scope: EventListenerScope, _ count: Int) {
        for _ in 0..<count {
          Ping.addListener(nil, { _ in }, executeOn: .listenerThread, on: central).stored(in: scope)
        }
      }
      for count in [0, 1, 15, 16, 17, 48] {
        fill(scope!, count)
        #expect(central.listener.listenerCount == count)
        scope!.removeAll()
        #expect(central.listener.listenerCount == 0)
      }
      fill(scope!, 3)
      thread.addEventCallback { (_: Ping) in }.stored(in: scope!)
      #expect(Ping().queue(on: central) == 2)
      scope = nil
      #expect(central.listener.listenerCount == 0)
      #expect(Ping().queue(on: central) == 0)
      let ended = EventListenerScope()
      ended.end()
      fill(ended, 3)
      #expect(central.listener.listenerCount == 0)
    }
  }

  @Test("D9: a scope lets go of listeners that have ended", arguments: cores)
  func scopeForgets(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (scope, lifetime) = (EventListenerScope(), Lifetime())
      for _ in 0..<100 {
        let handle = Marked(lifetime.token())
        scope.add(handle)
        handle.remove()
      }
      #expect(lifetime.alive <= 16)
      scope.end()
      #expect(lifetime.alive == 0)
      withExtendedLifetime(central) {}
    }
  }

  @Test("D7: a scope runs no code of a handle under its lock")
  func scopeIsOpen() async {
    await offThePool {
      let (scope, lifetime) = (EventListenerScope(), Lifetime())
      // The seventeenth makes the scope ask the others whether they have ended, and let go of them.
      for _ in 0..<17 {
        scope.add(Busy(scope, lifetime.token()))
      }
      scope.end()
      #expect(lifetime.alive == 0)
    }
  }

  /// A handle that uses its scope whenever it is asked whether it is active, and when it ends.
  final class Busy: EventListenerHandling {
    private let token: Lifetime.Token
    private let scope: EventListenerScope
    init(_ scope: EventListenerScope, _ token: Lifetime.Token) {
      self.scope = scope
      self.token = token
    }
    deinit { scope.removeAll() }
    var isActive: Bool {
      scope.removeAll()
      return false
    }
    var executesOn: EventListenerContext { .task }
    var waitingEventCount: Int { 0 }
    var skippedCount: UInt64 { 0 }
    @discardableResult
    func remove() -> Bool { true }
    func removeAndWait() -> Bool { true }
    func removed() async -> Bool { true }
  }

  /// A handle whose lifetime the test can see.
  final class Marked: EventListenerHandling {
    private let token: Lifetime.Token
    private let state = Guarded(true)
    init(_ token: Lifetime.Token) { self.token = token }
    var isActive: Bool { state.withLock { $0 } }
    var executesOn: EventListenerContext { .task }
    var waitingEventCount: Int { 0 }
    var skippedCount: UInt64 { 0 }
    @discardableResult
    func remove() -> Bool {
      state.withLock { isActive in
        defer { isActive = false }
        return isActive
      }
    }
    func removeAndWait() -> Bool { remove() }
    func removed() async -> Bool { remove() }
  }
}
