// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("Listeners whose handlers are async, or throw")
struct AsyncListenerTests {
  struct Refused: Error, Equatable { var number: Int }

  @Test("D1, D2: calls are made one at a time and in order", arguments: cores)
  func serial(core: EventCentral.Core) async {
    let (central, log, running) = (EventCentral(core: core), Log<Int>(), Log<Int>())
    let handle = Ping.addListener(nil, on: central) { ping async in
      running.append(1)
      await Task.yield()
      log.append(ping.number)
      await Task.yield()
      #expect(running.take() == [1])
    }
    for number in 0..<1_000 { Ping(number: number).queue(on: central) }
    await offThePool { #expect(log.entries(atLeast: 1_000) == Array(0..<1_000)) }
    guard case .task = handle.executesOn else {
      Issue.record("It runs on \(handle.executesOn).")
      return
    }
    #expect(handle.isActive && handle.remove() && !handle.isActive && !handle.remove())
  }

  @Test("As many calls run at the same time as are allowed, and no more", arguments: cores, [1, 2, 3, 9])
  func concurrent(core: EventCentral.Core, limit: Int) async {
    let central = EventCentral(core: core)
    let (entered, leave) = (Log<Int>(), Gate())
    let handle = Ping.addListener(nil, concurrency: .concurrent(limit), on: central) { ping async in
      entered.append(ping.number)
      await offThePool { leave.pass() }
    }
    for number in 0..<(3 * limit) { Ping(number: number).queue(on: central) }
    for round in 1...3 {
      await offThePool { _ = entered.entries(atLeast: round * limit) }
      #expect(handle.waitingEventCount == (3 - round) * limit)
      #expect(entered.entries.count == round * limit)
      for _ in 0..<limit { leave.open() }
    }
    #expect(entered.entries.sorted() == Array(0..<(3 * limit)))
    await handle.removed()
  }

  @Test("D6: removed() waits for the calls that run, and no other begins", arguments: cores)
  func removal(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let (log, entered, leave) = (Log<String>(), Gate(), Gate())
    let handle = Ping.addListener(nil, on: central) { _ async in
      entered.open()
      await offThePool { leave.pass() }
      log.append("left")
    }
    for _ in 0..<3 { Ping().queue(on: central) }
    await offThePool { entered.pass() }
    // In full before the handler returns: an event that its task takes meanwhile is not among the cancelled.
    #expect(handle.remove() && !handle.isActive)
    let removal = Task {
      #expect(await !handle.removed())
      log.append("removed")
    }
    for _ in 0..<100 { await Task.yield() }
    #expect(log.entries.isEmpty)
    leave.open()
    await removal.value
    #expect(log.entries == ["left", "removed"])
    #expect(Ping().queue(on: central) == 0)
    #expect(central.listener.statistics.cancelled == 2)
  }

  @Test("D6: removed() waits for the filter that runs, and no call follows", arguments: cores)
  func removalInFilter(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let (log, entered, leave) = (Log<String>(), Gate(), Gate())
    let handle = Ping.addListener(
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
    #expect(handle.remove())
    let removal = Task {
      #expect(await !handle.removed())
      log.append("removed")
    }
    for _ in 0..<100 { await Task.yield() }
    #expect(log.entries.isEmpty)
    leave.open()
    await removal.value
    #expect(log.entries == ["filtered", "removed"])
  }

  /// Keeps each call from its beginning until it is let go.
  private func heldTracer(_ entered: Gate, _ leave: Latch) -> EventCarrier {
    EventCarrier(
      capture: { nil }, restore: { _, _, body in body() },
      restoreInTask: { _, _, body in
        entered.open()
        await leave.opened()
        await body()
      })
  }

  @Test("D6: no call begins after remove(), neither one that a tracer holds up", arguments: cores, [1, 2])
  func removalInTracer(core: EventCentral.Core, limit: Int) async {
    for endsSource in [false, true] {
      let (log, entered, leave) = (Log<Int>(), Gate(), Latch())
      let carrier = heldTracer(entered, leave)
      let central = EventCentral(CentralBasis(core: core, carrier: carrier), seed: nil)
      let concurrency = limit == 1 ? EventConcurrency.serial : .concurrent(limit)
      let handle = Ping.addListener(nil, concurrency: concurrency, on: central) { ping async in
        log.append(ping.number)
      }
      Ping(number: 1).queue(on: central)
      await offThePool { entered.pass() }
      if endsSource { central.listener.end() } else { handle.remove() }
      // D10: an event that was taken for a call which does not follow is freed, and not delivered.
      #expect(central.listener.statistics == .init(delivered: 0, skipped: 0, cancelled: 1))
      leave.open()
      await handle.removed()
      #expect(log.entries.isEmpty)
      #expect(central.listener.statistics == .init(delivered: 0, skipped: 0, cancelled: 1))
    }
  }

  @Test("D6: nor one that waits for a thread of the pool", arguments: cores)
  func removalBeforeThread(core: EventCentral.Core) async {
    // All threads of the pool but one are taken, and the first call takes that one.
    let (taken, leave) = (Log<Int>(), Gate())
    let others = taskThreadCount - 1
    for _ in 0..<others {
      Task {
        taken.append(1)
        leave.pass()
      }
    }
    await offThePool { _ = taken.entries(atLeast: others) }
    // The system adds a thread to a pool whose threads have been blocked for a second, and keeps it for some time.
    let deadline = ContinuousClock.now + .seconds(600)
    var calls = await callsOfRemovalBeforeThread(core)
    while calls == nil, ContinuousClock.now < deadline { calls = await callsOfRemovalBeforeThread(core) }
    #expect(calls == [0])
    for _ in 0..<others { leave.open() }
  }

  /// Ends a listener in the first of two calls, while the second one waits for a thread.
  ///
  /// - Returns: Which calls were made. Nil if the second one may have had a thread before the end.
  private func callsOfRemovalBeforeThread(_ core: EventCentral.Core) async -> [Int]? {
    let (central, calls, handles) = (EventCentral(core: core), Log<Int>(), Log<any EventListenerHandling>())
    let (listenerThread, before, waits) = (Log<UInt>(), Log<Int>(), Log<Bool>())
    let handle = Ping.addListener(
      nil, concurrency: .concurrent(2), interestedIn: .custom,
      customFilter: { ping, _, _ in
        guard ping.number == 1 else { return true }
        listenerThread.append(currentThread())
        // The pool begins tasks in their order, and the one of the second call comes next.
        for _ in 0..<8 { Task { before.append(1) } }
        return true
      }, on: central
    ) { ping async in
      calls.append(ping.number)
      guard ping.number == 0 else { return }
      // On the same thread: so the listener's task has made that of the second call, and is suspended.
      let isMade = listenerThread.entries == [currentThread()]
      let isRemoved = handles.entries.first?.remove() == true
      waits.append(isMade && isRemoved && before.entries.isEmpty)
    }
    (0..<2).map { Ping(number: $0) }.queue(on: central)
    handles.append(handle)
    await offThePool { _ = waits.entries(atLeast: 1) }
    await handle.removed()
    _ = handles.take()
    return waits.entries == [true] ? calls.entries : nil
  }

  @Test("D10: a drain is not true if an end has freed what a task had taken for a call", arguments: cores)
  func drainBesideEnd(core: EventCentral.Core) async {
    let (entered, leave) = (Gate(), Latch())
    let carrier = heldTracer(entered, leave)
    let central = EventCentral(CentralBasis(core: core, carrier: carrier), seed: nil)
    let listener = EventListener(on: central)
    Ping.addListener(nil, on: listener) { _ async in Issue.record("It was called.") }
    Ping(number: 1).queue(on: central)
    await offThePool { entered.pass() }
    // Tells that the drain has begun, and leaves nothing that waits but the call.
    struct Probe: Eventable {}
    let (sent, handled) = (Log<Int>(), Log<Int>())
    Probe.addListener(nil, { _ in handled.append(1) }, executeOn: .listenerThread, on: listener)
    async let isDrained = listener.drain()
    #expect(
      await yieldUntil {
        guard Probe().queue(on: central) > 0 else { return true }
        sent.append(1)
        return false
      })
    #expect(await yieldUntil { handled.entries.count == sent.entries.count && listener.eventCount == 1 })
    listener.end()
    leave.open()
    #expect(await !isDrained)
  }

  @Test("D9: the listener ends with its requester", arguments: cores)
  func requester(core: EventCentral.Core) async {
    let (central, log, lifetime) = (EventCentral(core: core), Log<Int>(), Lifetime())
    var requester: Requester? = Requester(lifetime.token())
    let handle = Ping.addListener(requester, on: central) { ping async in log.append(ping.number) }
    Ping(number: 1).queue(on: central)
    await offThePool { _ = log.entries(atLeast: 1) }
    requester = nil
    #expect(await yieldUntil { lifetime.alive == 0 })
    Ping(number: 2).queue(on: central)
    #expect(await yieldUntil { !handle.isActive && central.listener.listenerCount == 0 })
    #expect(log.entries == [1])
  }

  @Test("An error becomes an event of the central, and the next event is handled", arguments: cores)
  func failures(core: EventCentral.Core) async {
    let (central, log) = (EventCentral(core: core), Log<Int>())
    let failures = central.failures
    let handle = Ping.addListener(nil, on: central) { ping in
      if ping.number % 2 == 0 { throw Refused(number: ping.number) }
      log.append(ping.number)
    }
    for number in 0..<4 { Ping(number: number).queue(on: central) }
    var iterator = failures.makeAsyncIterator()
    for number in [0, 2] {
      let failure = await iterator.next()
      #expect(failure?.error as? Refused == Refused(number: number))
      #expect(failure?.eventType == Ping.self)
      #expect(failure?.receiver === handle)
      #expect(failure?.description == "A handler of Ping threw: Refused(number: \(number))")
    }
    await offThePool { #expect(log.entries(atLeast: 2) == [1, 3]) }
    handle.remove()
  }

  @Test("D9: a call that is suspended does not retain the requester", arguments: cores, [1, 2])
  func suspended(core: EventCentral.Core, limit: Int) async {
    let (central, lifetime) = (EventCentral(core: core), Lifetime())
    let (entered, leave) = (Gate(), Latch())
    var requester: Requester? = Requester(lifetime.token())
    let concurrency = limit == 1 ? EventConcurrency.serial : .concurrent(limit)
    let handle = Ping.addListener(requester, concurrency: concurrency, on: central) { _ async in
      entered.open()
      await leave.opened()
    }
    Ping().queue(on: central)
    await offThePool { entered.pass() }
    requester = nil
    #expect(await yieldUntil { lifetime.alive == 0 })
    #expect(!handle.isActive)
    leave.open()
    await handle.removed()
  }

  @Test("Backlogs of calls that never suspend leave threads to other tasks", arguments: cores)
  func backlog(core: EventCentral.Core) async {
    let (central, start, log, others) = (EventCentral(core: core), Latch(), Log<Int>(), Log<Int>())
    let (listeners, events) = (64, 2_000)
    let handles = (0..<listeners).map { _ in
      Ping.addListener(nil, on: central) { ping async in
        await start.opened()
        if ping.number == 0 { Task { others.append(log.entries.count) } }
        log.append(1)
      }
    }
    for number in 0..<events { Ping(number: number).queue(on: central) }
    #expect(await yieldUntil { handles.allSatisfy { $0.waitingEventCount == events - 1 } })
    start.open()
    await offThePool {
      _ = log.entries(atLeast: listeners * events)
      _ = others.entries(atLeast: listeners)
    }
    // Each listener has made the calls of a few turns when the task of its first call runs, and none all of its own.
    // The system may hold up any thread for as long as it wants, but each has one task at most, and the others go on.
    #expect(others.entries.sorted()[listeners / 2] < listeners * events / 2)
    for handle in handles { handle.remove() }
  }

  @Test("D6: a scope waits for the calls that are suspended", arguments: cores)
  func scope(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let (scope, log, entered, leave) = (EventListenerScope(), Log<String>(), Gate(), Latch())
    let handle = Ping.addListener(nil, on: central) { _ async in
      entered.open()
      await leave.opened()
      log.append("left")
    }.stored(in: scope)
    Ping().queue(on: central)
    await offThePool { entered.pass() }
    scope.removeAll()
    #expect(!handle.isActive)
    let end = Task {
      await scope.ended()
      log.append("ended")
    }
    for _ in 0..<100 { await Task.yield() }
    #expect(log.entries.isEmpty)
    leave.open()
    await end.value
    #expect(log.entries == ["left", "ended"])
  }

  @Test("D7: a task that a handler starts may wait for the end of that handler", arguments: cores)
  func startedTask(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let (handles, log) = (Log<any EventListenerHandling>(), Log<Int>())
    let handle = Ping.addListener(nil, on: central) { _ async in
      Task {
        await handles.entries[0].removed()
        log.append(1)
      }
    }
    handles.append(handle)
    Ping().queue(on: central)
    await offThePool { #expect(log.entries(atLeast: 1) == [1]) }
    #expect(!handle.isActive)
    _ = handles.take()
  }

  @Test("What a handler of failures throws does not come back to it", arguments: cores)
  func failureOfFailure(core: EventCentral.Core) async {
    let (central, log) = (EventCentral(core: core), Log<Int>())
    let watcher = EventFailure.addListener(nil, on: central) { _ in
      log.append(1)
      throw Refused(number: 0)
    }
    let handle = Ping.addListener(nil, on: central) { ping in throw Refused(number: ping.number) }
    for _ in 0..<3 { Ping().queue(on: central) }
    await offThePool { _ = log.entries(atLeast: 3) }
    await handle.removed()
    await watcher.removed()
    #expect(log.entries.count == 3)
  }

  @Test("D12: removeAndWait() inside the handler itself traps under its own name")
  func ownEndBlocking() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let central = EventCentral()
      let handles = Log<any EventListenerHandling>()
      let handle = Ping.addListener(nil, on: central) { _ async in
        @Sendable func end() { handles.entries[0].removeAndWait() }
        end()
      }
      handles.append(handle)
      Ping().queue(on: central)
      await offThePool { Gate().pass(within: 60) }
    }
    expectMessage(result, "removeAndWait() waits until its handler is not running")
  }

  @Test("D12: removed() inside the handler itself traps and says what to do")
  func ownEnd() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let central = EventCentral()
      let handles = Log<any EventListenerHandling>()
      let handle = Ping.addListener(nil, on: central) { _ async in
        await handles.entries[0].removed()
      }
      handles.append(handle)
      Ping().queue(on: central)
      await offThePool { Gate().pass(within: 60) }
    }
    expectMessage(result, "removed() waits until its handler is not running")
  }

  @Test("D12: a concurrency below 1 traps")
  func noConcurrency() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = EventConcurrency.concurrent(0)
    }
    expectMessage(result, "at least 1, and this one is 0")
  }
}
