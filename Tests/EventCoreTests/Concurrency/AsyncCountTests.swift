// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("What is counted of events that an async listener has taken, and whose calls have not begun")
struct AsyncCountTests {
  /// A listener whose calls are all made, and held up before they begin.
  private struct HeldCalls {
    let central: EventCentral
    let listener: EventListener
    let handle: any EventListenerHandling
    let observation: EventObservation
    let log = Log<Int>()
    let leave = Latch()

    /// Returns once the listener has taken all events.
    init(_ core: EventCentral.Core, _ count: Int) async {
      let (log, leave, entered) = (log, leave, Log<Int>())
      let carrier = EventCarrier(
        capture: { nil }, restore: { _, _, body in body() },
        restoreInTask: { _, _, body in
          entered.append(1)
          await leave.opened()
          await body()
        })
      central = EventCentral(CentralBasis(core: core, carrier: carrier), seed: nil)
      listener = EventListener(on: central)
      observation = central.observe()
      handle = Ping.addListener(nil, concurrency: .concurrent(100), on: listener) { ping async in
        log.append(ping.number)
      }
      (0..<count).map { Ping(number: $0) }.queue(on: central)
      await offThePool { _ = entered.entries(atLeast: count) }
    }

    /// The statistics of the central have the same figures.
    func expect(delivered: Int, cancelled: Int = 0, waiting: Int = 0, line: Int = #line) {
      let counts = EventThreadStatistics(delivered: UInt64(delivered), skipped: 0, cancelled: UInt64(cancelled))
      let accepted = UInt64(delivered + cancelled + waiting)
      let mailbox = EventMailboxStatistics(
        accepted: accepted, refused: 0, dropped: 0, waiting: waiting, highWaterMark: 0)
      let seen = central.statistics.receivers.first { $0.name.hasPrefix("task") }
      #expect(listener.statistics == counts, "line \(line)")
      #expect(listener.mailboxStatistics == mailbox, "line \(line)")
      #expect(seen?.counts == counts && seen?.mailbox == mailbox, "line \(line): \(String(describing: seen))")
      #expect(listener.eventCount == waiting && listener.waitingEventCount == waiting, "line \(line)")
      #expect(handle.waitingEventCount == waiting, "line \(line)")
    }
  }

  @Test("they wait until they begin", arguments: cores)
  func begun(core: EventCentral.Core) async {
    let calls = await HeldCalls(core, 40)
    calls.expect(delivered: 0, waiting: 40)
    calls.leave.open()
    await offThePool { _ = calls.log.entries(atLeast: 40) }
    calls.expect(delivered: 40)
    await calls.handle.removed()
    #expect(calls.listener.statistics.delivered == 40)
  }

  @Test("D10: at the end they are cancelled, and no figure of what was delivered falls", arguments: cores)
  func ended(core: EventCentral.Core) async {
    let calls = await HeldCalls(core, 40)
    calls.listener.end()
    calls.expect(delivered: 0, cancelled: 40)
    calls.leave.open()
    await calls.handle.removed()
    #expect(calls.log.entries.isEmpty)
    #expect(calls.listener.statistics.cancelled == 40)
  }

  @Test("D10: a drain has them begin, and they are among what it has handled", arguments: cores)
  func drained(core: EventCentral.Core) async {
    let calls = await HeldCalls(core, 40)
    async let isDrained = calls.listener.drain()
    // The drain has begun when the listener takes no others.
    #expect(
      await yieldUntil { !Pong.addListener(nil, { _ in }, executeOn: .listenerThread, on: calls.listener).isActive })
    #expect(calls.listener.statistics == .init(delivered: 0, skipped: 0, cancelled: 0))
    #expect(calls.listener.waitingEventCount == 40)
    calls.leave.open()
    #expect(await isDrained)
    calls.expect(delivered: 40)
  }

  @Test("D6: a scope waits for calls that a drain has left to begin, also if it has swept meanwhile", arguments: cores)
  func drainedInScope(core: EventCentral.Core) async {
    let (calls, scope) = (await HeldCalls(core, 1), EventListenerScope())
    calls.handle.stored(in: scope)
    async let isDrained = calls.listener.drain()
    #expect(
      await yieldUntil { !Pong.addListener(nil, { _ in }, executeOn: .listenerThread, on: calls.listener).isActive })
    #expect(calls.handle.isActive)
    for _ in 0..<100 {
      Pong.addListener(nil, { _ in }, executeOn: .listenerThread, on: calls.central).stored(in: scope).remove()
    }
    // Removed with its scope, it does not make the call that waits; forgotten by the scope, it would.
    await scope.ended()
    calls.leave.open()
    _ = await isDrained
    await calls.handle.removed()
    #expect(calls.log.entries.isEmpty)
  }

  @Test("D10: calls that a drain has left to begin are cancelled by an end, also after a sweep", arguments: cores)
  func endedAfterSweep(core: EventCentral.Core) async {
    let calls = await HeldCalls(core, 1)
    async let isDrained = calls.listener.drain()
    #expect(
      await yieldUntil {
        calls.listener.sweep()
        return calls.listener.listenerCount == 0
      })
    calls.listener.end()
    calls.leave.open()
    #expect(await !isDrained)
    #expect(calls.log.entries.isEmpty)
    calls.expect(delivered: 0, cancelled: 1)
  }

  @Test("D10: what a listener has taken that is removed during a drain does not count as lost", arguments: cores)
  func removedMeanwhile(core: EventCentral.Core) async {
    let calls = await HeldCalls(core, 1)
    async let isDrained = calls.listener.drain()
    #expect(
      await yieldUntil { !Pong.addListener(nil, { _ in }, executeOn: .listenerThread, on: calls.listener).isActive })
    // The drain has most likely ended the mailbox by now; if not, the removal does.
    for _ in 0..<100 { await Task.yield() }
    calls.handle.remove()
    #expect(await isDrained)
    calls.leave.open()
    await calls.handle.removed()
    #expect(calls.log.entries.isEmpty)
    calls.expect(delivered: 0, cancelled: 1)
  }

  @Test("D10: calls that have not begun when the time of a drain is over are cancelled", arguments: cores)
  func drainedTooLate(core: EventCentral.Core) async {
    let calls = await HeldCalls(core, 40)
    #expect(await !calls.listener.drain(until: .now()))
    calls.expect(delivered: 0, cancelled: 40)
    calls.leave.open()
    await calls.handle.removed()
    #expect(calls.log.entries.isEmpty)
    calls.expect(delivered: 0, cancelled: 40)
  }

  @Test("what a task has taken waits before its call is made, too", arguments: cores)
  func taken(core: EventCentral.Core) async {
    /// Stands in its deinit.
    final class Standing: Sendable {
      let (entered, leave): (Gate, Gate)
      init(_ entered: Gate, _ leave: Gate) { (self.entered, self.leave) = (entered, leave) }
      deinit {
        entered.open()
        leave.pass()
      }
    }
    let listener = EventListener(on: EventCentral(core: core))
    let (entered, leave, box) = (Gate(), Gate(), Log<Standing>())
    box.append(Standing(entered, leave))
    let handle = Ping.addListener(
      box.entries[0], interestedIn: .custom,
      customFilter: { _, _, _ in
        // The take has the last reference, and lets go of it after it has counted the event.
        _ = box.take()
        return true
      }, on: listener
    ) { _ async in Issue.record("It was called.") }
    listener.queueEvent(Ping())
    await offThePool { entered.pass() }
    #expect(listener.statistics == .init(delivered: 0, skipped: 0, cancelled: 0))
    #expect(listener.eventCount == 1)
    leave.open()
    #expect(await yieldUntil { listener.eventCount == 0 })
    #expect(listener.statistics == .init(delivered: 0, skipped: 0, cancelled: 1))
    await handle.removed()
  }
}
