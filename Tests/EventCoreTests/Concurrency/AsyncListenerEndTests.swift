// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("The end of async listeners whose calls have not begun")
struct AsyncListenerEndTests {
  /// An async listener that stands in its filter until `leave` is opened.
  private struct HeldFilter {
    let handle: any EventListenerHandling
    let log = Log<String>()
    let leave = Gate()

    init(_ core: EventCentral.Core) async {
      let central = EventCentral(core: core)
      let (log, leave, entered) = (log, leave, Gate())
      handle = Ping.addListener(
        nil, interestedIn: .custom,
        customFilter: { _, _, _ in
          entered.open()
          leave.pass()
          log.append("filtered")
          return true
        }, on: central
      ) { _ async in log.append("called") }
      Ping().queue(on: central)
      await offThePool { entered.pass() }
    }

    /// The scope's end returns after the filter, and nothing is called.
    func expectWaits(_ scope: EventListenerScope) async {
      let end = Task {
        await scope.ended()
        log.append("ended")
      }
      for _ in 0..<100 { await Task.yield() }
      #expect(log.entries.isEmpty)
      leave.open()
      await end.value
      #expect(log.entries == ["filtered", "ended"])
    }
  }

  @Test("D6: a scope that has ended still waits for the filter that runs", arguments: cores)
  func scopeInFilter(core: EventCentral.Core) async {
    let (filter, scope) = (await HeldFilter(core), EventListenerScope())
    filter.handle.stored(in: scope)
    scope.end()
    await filter.expectWaits(scope)
  }

  @Test("D6: a scope that has swept an ended listener still waits for its filter", arguments: cores)
  func sweepInFilter(core: EventCentral.Core) async {
    let (filter, scope, central) = (await HeldFilter(core), EventListenerScope(), EventCentral(core: core))
    filter.handle.stored(in: scope)
    filter.handle.remove()
    for _ in 0..<100 {
      Ping.addListener(nil, { _ in }, executeOn: .listenerThread, on: central).stored(in: scope).remove()
    }
    await filter.expectWaits(scope)
  }

  /// A central that keeps each call from its beginning until `leave` is opened.
  private struct HeldCalls {
    let central: EventCentral
    let entered = Gate()
    let leave = Latch()

    init(_ core: EventCentral.Core) {
      let (entered, leave) = (entered, leave)
      let carrier = EventCarrier(
        capture: { nil }, restore: { _, _, body in body() },
        restoreInTask: { _, _, body in
          entered.open()
          await leave.opened()
          await body()
        })
      central = EventCentral(CentralBasis(core: core, carrier: carrier), seed: nil)
    }
  }

  @Test("D9: no call begins once the requester has gone, also if its event was taken before", arguments: cores, [1, 2])
  func requesterBeforeCall(core: EventCentral.Core, limit: Int) async {
    let (held, log, lifetime) = (HeldCalls(core), Log<Int>(), Lifetime())
    let listener = EventListener(on: held.central)
    var requester: Requester? = Requester(lifetime.token())
    let concurrency = limit == 1 ? EventConcurrency.serial : .concurrent(limit)
    let handle = Ping.addListener(requester, concurrency: concurrency, on: listener) { ping async in
      log.append(ping.number)
    }
    Ping(number: 1).queue(on: held.central)
    await offThePool { held.entered.pass() }
    requester = nil
    #expect(await yieldUntil { lifetime.alive == 0 })
    held.leave.open()
    #expect(await yieldUntil { listener.eventCount == 0 })
    #expect(listener.statistics == .init(delivered: 0, skipped: 0, cancelled: 1))
    await handle.removed()
    #expect(log.entries.isEmpty)
  }

  @Test("D9: the deinit of a requester may wait for its listener while a call of it waits to begin", arguments: cores)
  func waitingDeinit(core: EventCentral.Core) async {
    /// Removes its listener as it ends.
    final class Careful: Sendable {
      let handle = Log<any EventListenerHandling>()
      deinit { handle.entries[0].removeAndWait() }
    }
    let (held, log) = (HeldCalls(core), Log<Int>())
    var requester: Careful? = Careful()
    let handle = Ping.addListener(requester, concurrency: .concurrent(2), on: held.central) { ping async in
      log.append(ping.number)
    }
    requester?.handle.append(handle)
    Ping(number: 1).queue(on: held.central)
    await offThePool { held.entered.pass() }
    requester = nil
    #expect(!handle.isActive)
    held.leave.open()
    await handle.removed()
    #expect(log.entries.isEmpty)
  }

  @Test("D12: ended() of its scope inside the handler itself traps and says what to do")
  func ownScope() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let (central, scope) = (EventCentral(), EventListenerScope())
      Ping.addListener(nil, on: central) { _ async in await scope.ended() }.stored(in: scope)
      Ping().queue(on: central)
      await offThePool { Gate().pass(within: 60) }
    }
    expectMessage(result, "or end() in place of a scope's ended() or endAndWait()")
  }
}
