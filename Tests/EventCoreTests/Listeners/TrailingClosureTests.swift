// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("A handler may be a trailing closure, whatever the other arguments are")
struct TrailingClosureTests {
  @Test("a trailing closure for addListener of an event type", arguments: cores)
  func eventType(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (log, lifetime) = (Log<Int>(), Lifetime())
      let requester = Requester(lifetime.token())
      let handles = [
        Ping.addListener(requester, executeOn: .listenerThread, on: central) { event in
          log.append(event.number)
        },
        Ping.addListener(requester, executeOn: .listenerThread, on: central) { event, priority, _ in
          log.append(10 + event.number + priority.rawValue - EventPriority.normal.rawValue)
        },
        Ping.addListener(nil, executeOn: .listenerThread, once: true, on: central) { event in
          log.append(20 + event.number)
        },
        Ping.addListener(
          nil, executeOn: .listenerThread, interestedIn: .custom,
          customFilter: { event, _, _ in event.number == 2 }, on: central
        ) { event, _, _ in
          log.append(30 + event.number)
        },
      ]
      for handle in handles {
        guard case .listenerThread = handle.executesOn else {
          Issue.record("it runs on \(handle.executesOn)")
          continue
        }
      }
      for number in [1, 2] { Ping(number: number).queue(on: central) }
      #expect(log.entries(atLeast: 6) == [1, 11, 21, 2, 12, 32])
      handles.forEach { $0.removeAndWait() }
      #expect(log.entries == [1, 11, 21, 2, 12, 32])
    }
  }

  @Test("a trailing closure for addListener on a listener", arguments: cores)
  func central(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (log, lifetime) = (Log<Int>(), Lifetime())
      let requester = Requester(lifetime.token())
      let listener = central.listener
      Ping.addListener(requester, executeOn: .listenerThread, on: listener) { event in
        log.append(event.number)
      }
      Ping.addListener(requester, executeOn: .listenerThread, on: listener) { event, _, _ in
        log.append(10 + event.number)
      }
      Ping.addListener(nil, executeOn: .listenerThread, once: true, on: listener) { event in
        log.append(20 + event.number)
      }
      Ping.addListener(
        nil, executeOn: .listenerThread, interestedIn: .custom,
        customFilter: { event, _, _ in event.number == 2 }, on: listener
      ) { event, _, _ in
        log.append(30 + event.number)
      }
      for number in [1, 2] { Ping(number: number).queue(on: central) }
      #expect(log.entries(atLeast: 6) == [1, 11, 21, 2, 12, 32])
      central.listener.end()
    }
  }

  @Test("D9: a trailing closure for a listener that ends with its requester", arguments: cores)
  func requesterThread(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (log, requesters) = (Log<Int>(), Lifetime())
      var requester: Requester? = Requester(requesters.token())
      Ping.addListener(requester!, executeOn: .requesterThread, on: central) { event in
        log.append(event.number)
      }
      Ping(number: 1).queue(on: central)
      #expect(log.entries(atLeast: 1) == [1])
      requester = nil
      #expect(requesters.waitUntilNone())
      Ping(number: 2).queue(on: central)
      #expect(waitUntil { Ping(number: 3).queue(on: central) == 0 })
      #expect(log.entries == [1])
    }
  }

  @Test("a trailing closure for addListener on an event thread", arguments: cores)
  func eventThread(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<Int>()
    let gate = Gate()
    thread.addEventCallback { (event: Pong) in gate.pass() }
    Ping.addListener(nil, executeOn: .listenerThread, interestedIn: .latestOnly, on: thread) { event in
      log.append(event.number)
    }
    Ping.addListener(
      nil, executeOn: .listenerThread, interestedIn: .custom,
      customFilter: { event, _, _ in event.number == 2 }, on: thread
    ) { event, _, _ in
      log.append(10 + event.number)
    }
    Pong().stack(priority: .highest, on: central)
    for number in 1...3 { Ping(number: number).queue(on: central) }
    gate.open()
    #expect(thread.drain())
    #expect(log.entries.sorted() == [3, 12])
  }

  @Test("the filter of a method is a closure that is given the method's object", arguments: cores)
  func methodAndFilter(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (log, lifetime) = (Log<Int>(), Lifetime())
      var requester: Requester? = Requester(lifetime.token(), log)
      Ping.addListener(
        requester!, Requester.onPing, executeOn: .listenerThread, interestedIn: .custom,
        customFilter: { _, event, _, _ in event.number % 2 == 1 }, on: central)
      Ping.addListener(
        requester!, Requester.onPing, executeOn: .listenerThread, interestedIn: .custom,
        customFilter: { _, event, _, _ in event.number == 2 }, on: central)
      for number in 0..<4 { Ping(number: number).queue(on: central) }
      #expect(log.entries(atLeast: 3) == [1, 2, 3])
      requester = nil
      #expect(lifetime.waitUntilNone())
    }
  }
}
