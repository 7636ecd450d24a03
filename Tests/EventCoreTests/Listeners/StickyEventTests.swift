// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Synchronization
import Testing

@_spi(Bridge) @testable import EventCore

@Suite("Sticky events: who comes later gets the newest first")
struct StickyEventTests {
  struct State: Eventable {
    var number = 0
    var token: Lifetime.Token?
  }

  @Test("Callbacks, listeners, sequences and waits get the newest first, then what is dispatched", arguments: cores)
  func everybody(core: EventCentral.Core) async throws {
    let (central, log) = (EventCentral(core: core), Log<Int>())
    State.keepNewest(on: central)
    for number in 1...3 { State(number: number).queue(on: central) }
    #expect(State.newest(on: central)?.number == 3)

    let thread = EventThread(on: central)
    let pump = EventPump(on: central)
    defer {
      pump.cancel()
      pump.run()
    }
    thread.addEventCallback { (state: State) in log.append(state.number) }
    pump.addEventCallback({ (state: State) in log.append(state.number) }, interestedIn: .latestOnly)
    for place in [ExecuteEventOn.listenerThread, .taskThread, .dispatchQueue(.global()), .pump(pump)] {
      State.addListener(nil, { log.append($0.number) }, executeOn: place, on: central)
    }
    State.addListener(nil, { log.append($0.number) }, executeOn: .listenerThread, on: thread)
    let sequence = State.events(on: central, buffering: .newest(4))
    var iterator = sequence.makeAsyncIterator()
    #expect(await iterator.next()?.number == 3)
    #expect(try await State.next(on: central).number == 3)
    let worker = EventWorker(on: central, state: 0) { on in on(State.self) { _, state in log.append(state.number) } }
    pump.run()
    await offThePool { #expect(log.entries(atLeast: 8) == Array(repeating: 3, count: 8)) }

    State(number: 4).queue(on: central)
    pump.run()
    await offThePool { #expect(log.entries(atLeast: 16).dropFirst(8) == ArraySlice(repeating: 4, count: 8)) }
    #expect(await iterator.next()?.number == 4)
    await thread.join(afterCancel: true)
    await worker.thread.join(afterCancel: true)
  }

  @Test("The kept event has its own priority and time, by which interests judge it", arguments: cores)
  func interests(core: EventCentral.Core) {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock, timers: .pumps)
    State.keepNewest(on: central)
    let (pump, log) = (EventPump(on: central), Log<String>())
    let start = central.now
    State(number: 7).stack(priority: .highest, on: central)
    clock.advance(by: .seconds(10))
    pump.addEventCallback { (state: State, priority, time) in
      log.append("\(state.number) \(priority) \(time == start)")
    }
    pump.addEventCallback({ (_: State) in log.append("old") }, interestedIn: .youngerThan(.seconds(10)))
    pump.addEventCallback({ (_: State) in log.append("young") }, interestedIn: .youngerThan(.seconds(11)))
    pump.addEventCallback(
      { (_: State) in log.append("filtered") }, interestedIn: .custom, customFilter: { state, _, _ in state.number > 7 })
    let once = State.addListener(nil, { _ in log.append("once") }, executeOn: .pump(pump), once: true, on: central)
    pump.run()
    #expect(log.entries == ["7 highest true", "young", "once"])
    #expect(!once.isActive)
    pump.cancel()
    pump.run()
  }

  @Test("D4: on a clock that stands still, what is dispatched after the registration comes, each once", arguments: cores)
  func frozenClock(core: EventCentral.Core) {
    let central = EventCentral(core: core, clock: ManualClock(), timers: .pumps)
    State.keepNewest(on: central)
    let (pump, log) = (EventPump(on: central), Log<Int>())
    State(number: 1).queue(on: central)
    pump.addEventCallback { (state: State) in log.append(state.number) }
    pump.run()
    for number in 2...4 {
      State(number: number).queue(on: central)
      pump.run()
    }
    #expect(log.entries == [1, 2, 3, 4])
    pump.cancel()
    pump.run()
  }

  @Test("D4: on a clock that stands still, an idle thread gets each event once, from the first on", arguments: cores)
  func frozenClockOfThreads(core: EventCentral.Core) {
    for _ in 0..<50 {
      let (central, log) = (EventCentral(core: core, clock: ManualClock()), Log<Int>())
      State.keepNewest(on: central)
      let thread = EventThread(on: central)
      thread.addEventCallback { (state: State) in log.append(state.number) }
      for number in 1...3 {
        State(number: number).queue(on: central)
        #expect(log.entries(atLeast: number) == Array(1...number))
      }
      thread.cancel()
      thread.join()
    }
  }

  @Test("What keeps bridges and recordings gets no kept event", arguments: cores)
  func outward(core: EventCentral.Core) {
    let (central, sent) = (EventCentral(core: core), Log<Int>())
    State.keepNewest(on: central)
    State(number: 1).queue(on: central)
    let thread = EventThread(on: central)
    let registration = thread.addOutwardCallback { (state: State, _, _, _) in sent.append(state.number) }
    #expect(central.dispatchInward(State(number: 2), by: .queue, priority: .normal).accepted == 1)
    #expect(State.newest(on: central)?.number == 2)
    // What a server waits for is not kept, and what keeps is no receiver of it.
    #expect(
      central.dispatchInward(State(number: 9), by: .queue, priority: .normal, isKept: false) == EventDispatchOutcome())
    #expect(State.newest(on: central)?.number == 2)
    State(number: 3).queue(on: central)
    thread.drain()
    #expect(sent.entries == [3])
    registration.remove()
  }

  @Test("A maximum age, and what is cleared, leave nothing to keep; keeping begins with its call", arguments: cores)
  func ages(core: EventCentral.Core) {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock, timers: .pumps)
    #expect(State.newest(on: central) == nil)
    State(number: 1).queue(on: central)
    State.keepNewest(on: central, maximumAge: .seconds(5))
    #expect(State.newest(on: central) == nil)
    State(number: 2).queue(on: central)
    clock.advance(by: .nanoseconds(4_999_999_999))
    #expect(State.newest(on: central)?.number == 2)
    clock.advance(by: .nanoseconds(1))
    #expect(State.newest(on: central) == nil)
    State.keepNewest(on: central)
    #expect(State.newest(on: central)?.number == 2)
    State.clearNewest(on: central)
    #expect(State.newest(on: central) == nil)
    State(number: 3).queue(on: central)
    State.clearNewest(on: central)
    let (pump, log) = (EventPump(on: central), Log<Int>())
    pump.addEventCallback { (state: State) in log.append(state.number) }
    pump.run()
    #expect(log.entries == [])
    #expect(State.newest(on: EventCentral(core: core)) == nil)
    pump.cancel()
    pump.run()
  }

  @Test("An event that waits already is newer, and the only one; D6: a handler that is gone gets none", arguments: cores)
  func superseded(core: EventCentral.Core) {
    let (central, log) = (EventCentral(core: core), Log<Int>())
    State.keepNewest(on: central)
    State(number: 1).queue(on: central)
    let pump = EventPump(on: central)
    pump.addEventCallback { (state: State) in log.append(state.number) }
    let removed = pump.addEventCallback { (_: State) in log.append(-1) }
    State(number: 2).queue(priority: .lowest, on: central)
    State(number: 3).stack(on: central)
    removed.remove()
    pump.run()
    #expect(log.entries == [3, 2])
    // A handler that was greeted, and had no event yet, is not greeted twice.
    State.addListener(nil, { log.append($0.number) }, executeOn: .pump(pump), on: central)
    pump.run()
    _ = State.newest(on: central)
    State(number: 4).queue(on: central)
    pump.run()
    #expect(log.entries == [3, 2, 3, 4, 4])
    pump.cancel()
    pump.run()
  }

  @Test("D4: where nothing is kept nothing waits for who comes, and what is dispatched then does", arguments: cores)
  func nothingKept(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    State.keepNewest(on: central)
    let first = State.events(on: central)
    #expect(first.waitingEventCount == 0)
    State(number: 1).queue(on: central)
    let second = State.events(on: central)
    // The kept event comes by a job, which waits.
    #expect(second.waitingEventCount == 1)
    State.clearNewest(on: central)
    let third = State.events(on: central)
    #expect(third.waitingEventCount == 0)
    State(number: 2).queue(on: central)
    var iterators = [first, second, third].map { $0.makeAsyncIterator() }
    #expect(await iterators[0].next()?.number == 1)
    for index in iterators.indices { #expect(await iterators[index].next()?.number == 2) }
    for sequence in [first, second, third] { sequence.end() }
    for index in iterators.indices { #expect(await iterators[index].next() == nil) }
  }

  @Test("The threads of a pool, which share their work, get no kept events", arguments: cores)
  func pools(core: EventCentral.Core) {
    final class Worker: EventThread, @unchecked Sendable {
      override func registerEventListeners() { addEventCallback { (state: State) in _ = state } }
    }
    let central = EventCentral(core: core)
    State.keepNewest(on: central)
    State(number: 1).queue(on: central)
    for balancer: any EventPoolBalancing in [.roundRobin, .shared] {
      let pool = EventPool<Worker>(capacity: 2, balancer: balancer, on: central) { _ in Worker() }
      #expect(pool.drain())
      #expect(pool.statistics.delivered == 0)
    }
  }

  @Test("D9: what is kept is freed when it is replaced, cleared, or its central ends", arguments: cores)
  func lifetimes(core: EventCentral.Core) {
    let lifetime = Lifetime()
    do {
      let central = EventCentral(core: core)
      State.keepNewest(on: central)
      for number in 0..<100 { State(number: number, token: lifetime.token()).queue(on: central) }
      _ = State.newest(on: central)
      #expect(waitUntil { lifetime.alive == 1 })
      State(token: lifetime.token()).queue(on: central)
      State.clearNewest(on: central)
      #expect(lifetime.waitUntilNone())
      State(token: lifetime.token()).queue(on: central)
      #expect(lifetime.alive == 1)
      // Handlers that were never called are not retained.
      for _ in 0..<100 {
        let token = lifetime.token()
        State.addListener(nil, { _ in withExtendedLifetime(token) {} }, executeOn: .listenerThread, on: central).remove()
      }
    }
    #expect(lifetime.waitUntilNone())
  }

  @Test("D2, D4: while others dispatch, who comes misses no newer event, and gets none after a newer one", arguments: cores)
  func race(core: EventCentral.Core) {
    let (rounds, count, newcomers) = (40, 200, 3)
    for _ in 0..<rounds {
      let central = EventCentral(core: core)
      let progress = Atomic<Int>(0)
      State.keepNewest(on: central)
      let logs = (0..<newcomers).map { _ in Log<Int>() }
      let threads = (0..<newcomers).map { _ in EventThread(on: central) }
      let seen = Log<(index: Int, number: Int)>()
      onThreads(newcomers + 1) { index in
        guard index > 0 else {
          for number in 1...count {
            progress.store(number, ordering: .sequentiallyConsistent)
            State(number: number).queue(on: central)
          }
          return
        }
        threads[index - 1].addEventCallback { (state: State) in logs[index - 1].append(state.number) }
        seen.append((index - 1, progress.load(ordering: .sequentiallyConsistent)))
      }
      for (index, number) in seen.entries {
        let log = logs[index]
        #expect(waitUntil { log.entries.last == count })
        threads[index].join(afterCancel: true)
        let all = log.entries
        let steps = zip(all, all.dropFirst()).map { $1 - $0 }
        #expect(steps.allSatisfy { $0 > 0 }, "\(all.prefix(5))")
        // All whose dispatch began after the registration.
        #expect(Set(all).isSuperset(of: number < count ? Set(number + 1...count) : []), "\(number): \(all)")
      }
    }
  }

  @Test("D2, D4: while several dispatch with equal times, who comes gets each event once, in order", arguments: cores)
  func raceOfEqualTimes(core: EventCentral.Core) {
    let (rounds, count, dispatchers, newcomers) = (60, 200, 2, 2)
    for _ in 0..<rounds {
      let central = EventCentral(core: core, clock: ManualClock())
      let progress = (0..<dispatchers).map { _ in Progress() }
      State.keepNewest(on: central)
      let logs = (0..<newcomers).map { _ in Log<Int>() }
      let threads = (0..<newcomers).map { _ in EventThread(on: central) }
      let seen = Log<(newcomer: Int, numbers: [Int])>()
      onThreads(newcomers + dispatchers) { index in
        guard index < dispatchers else {
          let newcomer = index - dispatchers
          threads[newcomer].addEventCallback { (state: State) in logs[newcomer].append(state.number) }
          seen.append((newcomer, progress.map { $0.number.load(ordering: .sequentiallyConsistent) }))
          return
        }
        for number in stride(from: 1, through: count, by: 4) {
          progress[index].number.store(number + 3, ordering: .sequentiallyConsistent)
          (number..<number + 4).map { State(number: 1_000 * index + $0) }.queue(on: central)
        }
      }
      for (newcomer, numbers) in seen.entries {
        threads[newcomer].drain()
        let all = logs[newcomer].entries
        for (dispatcher, number) in numbers.enumerated() {
          let own = all.filter { $0 / 1_000 == dispatcher }.map { $0 % 1_000 }
          #expect(zip(own, own.dropFirst()).allSatisfy { $0 < $1 }, "\(all.prefix(20))")
          // All whose dispatch began after the registration.
          #expect(Set(own).isSuperset(of: number < count ? Set(number + 1...count) : []), "\(number): \(all)")
        }
      }
    }
  }

  /// The last number that a thread was about to dispatch.
  private final class Progress: Sendable {
    let number = Atomic<Int>(0)
  }

  @Test("a deterministic central greets inside its runs", arguments: cores)
  func deterministic(core: EventCentral.Core) {
    let (central, log) = (EventCentral(deterministic: 3, core: core), Log<Int>())
    State.keepNewest(on: central)
    State(number: 5).queue(on: central)
    let thread = EventThread(on: central)
    thread.addEventCallback { (state: State) in log.append(state.number) }
    #expect(log.entries.isEmpty)
    central.run()
    #expect(log.entries == [5])
    thread.cancel()
  }

  @Test("A place that does not run has one greeting for each newcomer, however often others read", arguments: cores)
  func placeThatRests(core: EventCentral.Core) {
    let (central, log) = (EventCentral(core: core), Log<Int>())
    State.keepNewest(on: central)
    let pump = EventPump(on: central, mailbox: .bounded(4, whenFull: .dropOldest))
    pump.addEventCallback({ (state: State) in log.append(state.number) }, interestedIn: .latestOnly)
    pump.addEventCallback { (_: State) in }
    for number in 1...1_000 {
      State(number: number).queue(on: central)
      #expect(State.newest(on: central)?.number == number)
    }
    #expect(pump.eventCount <= 7)
    pump.run()
    #expect(log.entries == [1_000])
    // A newcomer whose greeting was due before the newest event gets that.
    pump.addEventCallback { (state: State) in log.append(state.number) }
    pump.run()
    #expect(log.entries == [1_000, 1_000])
  }

  @Test("D12: a maximum age of nothing traps and says what to do")
  func noAge() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      State.keepNewest(on: EventCentral(), maximumAge: .zero)
    }
    expectMessage(result, "is younger than its maximum age")
  }
}

extension EventThread {
  fileprivate func join(afterCancel: Bool) {
    if afterCancel { cancel() }
    join()
  }

  fileprivate func join(afterCancel: Bool) async {
    if afterCancel { cancel() }
    await join()
  }
}
