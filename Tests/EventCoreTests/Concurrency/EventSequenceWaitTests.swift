// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Testing

@testable import EventCore

extension EventSequenceTests {
  @Test("next(where:) returns the first event that fits", arguments: cores)
  func next(core: EventCentral.Core) async throws {
    let central = EventCentral(core: core)
    let task = Task { try await Ping.next(on: central, where: { $0.number > 2 }) }
    var number = 0
    while Ping(number: number).queue(on: central) == 0 { await Task.yield() }
    while Ping(number: number).queue(on: central) == 1 { number += 1 }
    #expect(try await task.value.number == 3)
  }

  @Test("next(within:) throws when the time of the central's clock is over", arguments: cores)
  func timeout(core: EventCentral.Core) async throws {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock)
    let task = Task { try await Ping.next(on: central, within: .seconds(3)) }
    #expect(await yieldUntil { central.scheduleStatistics.pending == 1 })
    clock.advance(by: .seconds(2))
    #expect(central.scheduleStatistics.pending == 1)
    clock.advance(by: .seconds(1))
    // Counted before it is set: one that was set late is due now.
    #expect(
      await yieldUntil {
        clock.advance(by: .zero)
        return central.scheduleStatistics.pending == 0
      })
    await #expect(throws: EventWaitError.timedOut(.seconds(3))) { try await task.value }
    #expect(Ping().queue(on: central) == 0)
    // One that was in time leaves no timer.
    let other = Task { try await Ping.next(on: central, within: .seconds(3)) }
    while Ping().queue(on: central) == 0 { await Task.yield() }
    _ = try await other.value
    #expect(central.scheduleStatistics.pending == 0)
  }

  @Test("next() throws when its task is cancelled, and when its source ends", arguments: cores)
  func nextEnds(core: EventCentral.Core) async throws {
    let central = EventCentral(core: core)
    let task = Task { try await Ping.next(on: central) }
    #expect(await yieldUntil { central.listener.listenerCount == 1 })
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    let other = Task { try await Ping.next(on: central) }
    #expect(await yieldUntil { central.listener.listenerCount == 1 })
    central.listener.end()
    await #expect(throws: EventWaitError.sourceEnded) { try await other.value }
  }

  @Test("A wait ends at its limit, or when it is cancelled, while other events come without end", arguments: cores)
  func flood(core: EventCentral.Core) async throws {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock)
    let isOver = Latch()
    runThread { while !isOver.isOpen { Ping().queue(on: central) } }
    let late = Task { try await Ping.next(on: central, where: { _ in false }, within: .seconds(3)) }
    #expect(await yieldUntil { central.scheduleStatistics.pending == 1 })
    clock.advance(by: .seconds(3))
    #expect(
      await yieldUntil {
        clock.advance(by: .zero)
        return central.scheduleStatistics.pending == 0
      })
    await #expect(throws: EventWaitError.timedOut(.seconds(3))) { try await late.value }

    let (entered, predicate) = (Latch(), Latch())
    let cancelled = Task {
      try await Ping.next(on: central) { _ in
        predicate.open()
        return false
      }
    }
    await predicate.opened()
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }

    let skipping = Ping.events(
      on: central, interestedIn: .custom,
      customFilter: { _, _, _ in
        entered.open()
        return false
      })
    let loop = Task { await skipping.reduce(0) { count, _ in count + 1 } }
    await entered.opened()
    loop.cancel()
    #expect(await loop.value == 0)
    isOver.open()
  }

  @Test("D8: a limit on the clock of a central that has ended does not let the wait go on", arguments: cores)
  func orphan(core: EventCentral.Core) async {
    var central: EventCentral? = EventCentral(core: core)
    let listener = EventListener(on: central!)
    let late = Task { try await Ping.next(on: listener, within: .seconds(1_000)) }
    #expect(await yieldUntil { central!.scheduleStatistics.pending == 1 })
    central = nil
    await #expect(throws: EventWaitError.sourceEnded) { try await late.value }
    await #expect(throws: EventWaitError.sourceEnded) {
      try await Ping.next(on: listener, within: .seconds(1_000))
    }
    // Of a central that nobody has scheduled anything on.
    central = EventCentral(core: core)
    let orphan = EventListener(on: central!)
    central = nil
    await #expect(throws: EventWaitError.sourceEnded) { try await Ping.next(on: orphan, within: .seconds(1_000)) }
  }

  /// Has the thread wait for the test.
  private struct Stop: Eventable {}

  /// Waits where a test decides when it goes on.
  private actor Waiter {
    let thread: EventThread
    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    init(_ thread: EventThread) { self.thread = thread }

    func next(on central: EventCentral) async throws -> Int {
      try await Ping.next(on: central, where: { $0.number > 0 }, within: .seconds(1)).number
    }
  }

  @Test("An event that came in time is returned, however late the task goes on", arguments: cores, [false, true])
  func busy(core: EventCentral.Core, drains: Bool) async throws {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock)
    let thread = EventThread(on: EventCentral(core: core))
    let (entered, leave) = (Gate(), Gate())
    thread.addEventCallback { (_: Stop) in
      entered.open()
      leave.pass()
    }
    let waiter = Waiter(thread)
    let wait = Task { try await waiter.next(on: central) }
    #expect(await yieldUntil { central.scheduleStatistics.pending == 1 })
    // Behind the job that has set the limit: the task is suspended when its thread gets here.
    thread.queueEvent(Stop())
    await offThePool { entered.pass() }
    // Behind one that does not fit.
    for number in [0, 7] { #expect(Ping(number: number).queue(on: central) == 1) }
    if drains {
      let drain = Task { await central.drain() }
      // It has begun when nobody gets events any more.
      #expect(await yieldUntil { Ping(number: 1).queue(on: central) == 0 })
      leave.open()
      #expect(try await wait.value == 7)
      #expect(await drain.value)
    } else {
      clock.advance(by: .seconds(2))
      #expect(
        await yieldUntil {
          clock.advance(by: .zero)
          return central.scheduleStatistics.pending == 0
        })
      leave.open()
      #expect(try await wait.value == 7)
    }
  }

  private struct Taken: Eventable {}

  @Test("D10: a drain ends with a loop that takes no more, though its sequence lives on", arguments: cores)
  func loopHasEnded(core: EventCentral.Core) async {
    let world = EventCentral(core: core)
    let sequence = Taken.events(on: world)
    Taken().queue(on: world)
    var iterator: EventSequence<Taken>.Iterator? = sequence.makeAsyncIterator()
    #expect(await iterator?.next() != nil)
    // As `drain` begins, which finds the sequence in use: from outside nothing shows that it has.
    let ends = world.listener.contexts.closeWhenEmpty()
    var waiting = ends.filter { !$0.isOpen }.count
    #expect(waiting == 1)
    iterator = nil
    waiting = ends.filter { !$0.isOpen }.count
    #expect(waiting == 0)
    #expect(await world.drain())
    withExtendedLifetime(sequence) {}
  }
}
