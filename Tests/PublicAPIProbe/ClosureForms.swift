// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

// Closures that state few types, with several statements and a parameter that they do not use. They are
// compiled in Swift 5 and in Swift 6 mode.
@Suite("Closures that state few types are not taken for methods")
struct ClosureForms {
  struct Ping: Eventable { var number = 0 }

  final class Owner: Sendable {}

  @Test("handlers with a requester, in each form of addListener")
  func withRequester() {
    let (central, owner, log) = (EventCentral(), Owner(), Log<Int>())
    let gate = Gate()
    Ping.addListener(
      owner,
      { event in
        log.append(1)
        gate.open()
      }, executeOn: .listenerThread, on: central)
    Ping.addListener(
      owner,
      { _ in
        log.append(2)
        gate.open()
      }, executeOn: .listenerThread, interestedIn: .latestOnly, on: central)
    Ping.addListener(
      owner,
      { event in
        log.append(3)
        gate.open()
      }, executeOn: .listenerThread, interestedIn: [.latestOnly, .youngerThan],
      maximumAge: .max, on: central)
    Ping.addListener(
      owner,
      { event in
        log.append(4)
        gate.open()
      }, executeOn: .listenerThread, interestedIn: .custom,
      customFilter: { event, priority, dispatchTime in
        gate.open()
        return true
      }, on: central)
    Ping.addListener(
      owner,
      { event in
        log.append(5)
        gate.open()
      }, executeOn: .listenerThread, on: central.listener)
    #expect(Ping().queue(on: central) > 0)
    #expect(log.entries(atLeast: 5).sorted() == [1, 2, 3, 4, 5])
    withExtendedLifetime(owner) {}
  }

  @Test("callbacks of an event thread, handlers of a node, and interceptors")
  func elsewhere() {
    let (central, gate) = (EventCentral(), Gate())
    let thread = EventThread(on: central)
    thread.addEventCallback(
      { event in
        gate.open()
        gate.open()
      }, forEventType: Ping.self)
    thread.addEventCallback(
      { _ in
        gate.open()
        gate.open()
      }, forEventType: Ping.self, interestedIn: .latestOnly)
    let node = EventNode(core: central.core)
    node.addHandler(for: Ping.self) { event in
      gate.open()
      gate.open()
    }
    node.addHandler(.onRaise, for: Ping.self, executeOn: .listenerThread) { _ in
      gate.open()
      gate.open()
    }
    let coordinator = Coordinator()
    coordinator.intercept(Emitted.self) { event in
      gate.open()
      return .handled
    }
    #expect(coordinator.emitEvent(Emitted.now, includingEmitter: true) == .handled)
    #expect(node.raise(event: Ping()).handlerCount == 2)
    #expect(Ping().queue(on: central) > 0)
    #expect(thread.drain())
  }

  enum Emitted: CoordinateEvents { case now }

  @Test("trailing closures after a requester")
  func trailing() {
    let (owner, gate) = (Owner(), Gate())
    Ping.addListener(owner, executeOn: .listenerThread) { event in
      gate.open()
      gate.open()
    }.remove()
    Ping.addListener(owner, executeOn: .listenerThread) { _ in
      gate.open()
      gate.open()
    }.remove()
    withExtendedLifetime(owner) {}
  }
}
