// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

@Suite("Listeners with an interest")
struct ListenerInterestTests {
  @Test(
    "D4: .latestOnly handles the newest of what waits, in constant memory, and counts the rest",
    arguments: cores, ListenerPlace.allCases)
  func latestOnly(core: EventCentral.Core, place: ListenerPlace) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (log, payloads) = (Log<Int>(), Lifetime())
      let (entered, leave) = (Gate(), Gate())
      let requester = Requester(payloads.token(), log) { event in
        if event.number == 0 {
          entered.open()
          leave.pass()
        }
      }
      let handle = Ping.addListener(
        requester, Requester.onPing, executeOn: place.executeOn, interestedIn: .latestOnly,
        on: central)
      Ping(number: 0).queue(on: central)
      entered.pass()
      for number in 1...10_000 { Ping(number: number).queue(on: central) }
      #expect(handle.waitingEventCount == 1)
      leave.open()
      #expect(log.entries(atLeast: 2) == [0, 10_000])
      #expect(waitUntil { handle.skippedCount == 9_999 })
      handle.remove()
    }
  }

  @Test("D4: .youngerThan judges when the handler would run", arguments: cores, ListenerPlace.allCases)
  func youngerThan(core: EventCentral.Core, place: ListenerPlace) async {
    await offThePool {
      let central = EventCentral(core: core)
      let log = Log<Int>()
      let executeOn = place.executeOn
      let never = Ping.addListener(
        nil, { _ in log.append(-1) }, executeOn: executeOn, interestedIn: .youngerThan,
        maximumAge: 1, on: central)
      let always = Ping.addListener(
        nil, { log.append($0.number) }, executeOn: executeOn, interestedIn: .youngerThan,
        maximumAge: 3_600 * 1_000_000_000, on: central)
      for number in 0..<10 { Ping(number: number).queue(on: central) }
      #expect(log.entries(atLeast: 10) == Array(0..<10))
      #expect(waitUntil { never.skippedCount == 10 })
      #expect(always.skippedCount == 0)
      never.remove()
      always.remove()
    }
  }

  @Test("D4: several interests are met together", arguments: cores)
  func several(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (log, lifetime) = (Log<Int>(), Lifetime())
      let requester = Requester(lifetime.token(), log)
      let queue = DispatchQueue(label: "held")
      queue.suspend()
      let handle = Ping.addListener(
        requester, Requester.onPing, executeOn: .dispatchQueue(queue),
        interestedIn: [.latestOnly, .youngerThan, .custom], maximumAge: 3_600 * 1_000_000_000,
        customFilter: { $0.isEven($1, $2, $3) }, on: central)
      // The newest is odd, and none of the older ones is handled in its place.
      for number in 0..<10 { Ping(number: number).queue(on: central) }
      queue.resume()
      #expect(waitUntil { handle.skippedCount == 10 })
      // Waits for the end of the job that counted: it could still take the next event otherwise.
      queue.sync {}
      queue.suspend()
      for number in 0...10 { Ping(number: number).queue(on: central) }
      queue.resume()
      #expect(log.entries(atLeast: 1) == [10])
      handle.remove()
    }
  }

  @Test(
    "D6, D7: after a filter has removed its own listener nothing more of it is called",
    arguments: cores)
  func filterRemoves(core: EventCentral.Core) {
    final class Judge: Sendable {
      let handle = Log<any EventListenerHandling>()
      let log = Log<Int>()
      func onPing(_ event: Ping) { log.append(event.number) }
      func judge(_ event: Ping, _ priority: EventPriority, _ time: DispatchTime) -> Bool {
        handle.entries[0].remove()
        return true
      }
    }
    let central = EventCentral(core: core)
    let (judge, once, closure) = (Judge(), Judge(), Judge())
    let last = Log<Int>()
    judge.handle.append(
      Ping.addListener(
        judge, Judge.onPing, executeOn: .listenerThread, interestedIn: .custom,
        customFilter: { $0.judge($1, $2, $3) }, on: central))
    closure.handle.append(
      Ping.addListener(
        nil, { closure.onPing($0) }, executeOn: .listenerThread, interestedIn: .custom,
        customFilter: { closure.judge($0, $1, $2) }, on: central))
    once.handle.append(
      Ping.addListener(
        once, { [log = once.log] in log.append($0.number) }, executeOn: .listenerThread,
        interestedIn: .custom, customFilter: { [unowned once] in once.judge($0, $1, $2) },
        once: true, on: central))
    Ping.addListener(nil, { last.append($0.number) }, executeOn: .listenerThread, on: central)
    for number in 0..<2 { Ping(number: number).queue(on: central) }
    #expect(last.entries(atLeast: 2) == [0, 1])
    for judge in [judge, closure, once] {
      #expect(judge.log.entries.isEmpty)
      #expect(!judge.handle.entries[0].isActive)
    }
  }
}
