// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if ServiceLifecycle
  import Dispatch
  @testable import EventCoreServiceLifecycle
  import EventCoreTestSupport
  import ServiceLifecycle
  import ServiceLifecycleTestKit
  import Testing

  @Suite("A service of threads, pools and centrals")
  struct EventServiceTests {
    struct Hit: Eventable { var number = 0 }
    struct Score: Eventable { var number = 0 }

    /// Holds its first event until the gate opens, and dispatches a score for each.
    final class Referee: EventThread, @unchecked Sendable {
      let gate = Gate(), began = Gate()
      override func registerEventListeners() { addEventCallback(Referee.onHit) }
      func onHit(_ hit: Hit) {
        if hit.number == 0 {
          began.open()
          gate.pass()
        }
        Score(number: hit.number).queue(on: central)
      }
    }

    final class Clerk: EventThread, @unchecked Sendable {
      override func registerEventListeners() { addEventCallback(Clerk.onScore) }
      func onScore(_ score: Score) {}
    }

    /// Runs a service in a task until `shutDown`, which is called when `run()` waits, has made it end. Returns its
    /// error.
    private func run(
      _ service: EventService, _ shutDown: @Sendable (GracefulShutdownTestTrigger, Task<Void, any Error>) async -> Void
    ) async -> (any Error)? {
      await testGracefulShutdown { trigger in
        let task = Task { try await service.run() }
        await shutDown(trigger, task)
        switch await task.result {
        case .success: return nil
        case .failure(let error): return error
        }
      }
    }

    @Test("a graceful shutdown drains a thread, a pool, a listener and a central, in order (D10)", arguments: cores)
    func drains(core: EventCentral.Core) async {
      let world = EventCentral(core: core)
      let referee = Referee(on: world)
      let pool = EventPool<Clerk>(capacity: 3, on: world)
      let listener = EventListener(on: world)
      let (heard, awaited, reports) = (Log<Int>(), Log<Int>(), Log<EventShutdownReport>())
      Score.addListener(nil, { heard.append($0.number) }, executeOn: .listenerThread, on: listener)
      Score.addListener(nil, concurrency: .concurrent(4), on: world) { score in
        await Task.yield()
        awaited.append(score.number)
      }
      (0..<100).map(Hit.init).queue(on: world)
      referee.began.pass()
      let service = EventService(referee, pool, listener, world, drainingFor: .seconds(600)) { reports.append($0) }
      let error = await run(service) { trigger, _ in
        trigger.triggerGracefulShutdown()
        referee.gate.open()
      }
      #expect(error == nil)
      #expect(heard.entries == Array(0..<100))
      #expect(awaited.entries.sorted() == Array(0..<100))
      let report = reports.entries.first
      #expect(reports.entries.count == 1)
      #expect(report?.parts.map(\.name) == ["Referee", "EventPool<Clerk>", "EventListener", "EventCentral"])
      // The handler may have returned, and others begun, before the shutdown.
      #expect(report?.parts.allSatisfy { $0.wasDrained && $0.left == 0 && $0.handled <= 100 } == true)
      #expect(report?.isComplete == true && report?.wasCancelled == false && report?.left == 0)
      // All have ended.
      #expect(Hit().queue(on: world) == 0)
      #expect(Score().queue(on: world) == 0)
    }

    @Test("a drain that is late ends everything, and says how much each part has left", arguments: cores)
    func late(core: EventCentral.Core) async {
      let clock = ManualClock()
      let world = EventCentral(core: core, clock: clock)
      let referee = Referee(on: world)
      let reports = Log<EventShutdownReport>()
      let (held, began) = (Gate(), Gate())
      Score.addListener(
        nil,
        { _ in
          began.open()
          held.pass()
        }, executeOn: .listenerThread, on: world)
      (0..<10).map(Hit.init).queue(on: world)
      (0..<5).map(Score.init).queue(on: world)
      referee.began.pass()
      began.pass()
      let service = EventService(referee, world, drainingFor: .seconds(1)) { reports.append($0) }
      let error = await run(service) { trigger, _ in
        trigger.triggerGracefulShutdown()
        // The deadline is on the clock of the central, and the thread's drain sets an alarm for it.
        while reports.entries.isEmpty {
          clock.advance(by: .milliseconds(100))
          await Task.yield()
        }
      }
      #expect(error == nil)
      #expect(
        reports.entries == [
          EventShutdownReport(
            parts: [
              .init(name: "Referee", wasDrained: false, handled: 0, left: 9),
              .init(name: "EventCentral", wasDrained: false, handled: 0, left: 4),
            ], wasCancelled: false)
        ])
      #expect(
        reports.entries.first?.description
          == "Shut down: Referee was ended, 0 handled, 9 left; EventCentral was ended, 0 handled, 4 left.")
      referee.gate.open()
      held.open()
    }

    @Test("the cancellation of the task ends all parts at once, and is thrown", arguments: cores)
    func cancelled(core: EventCentral.Core) async {
      let world = EventCentral(core: core)
      let referee = Referee(on: world)
      let reports = Log<EventShutdownReport>()
      (0..<10).map(Hit.init).queue(on: world)
      referee.began.pass()
      let error = await run(EventService(referee, world) { reports.append($0) }) { _, task in task.cancel() }
      #expect(error is CancellationError)
      #expect(
        reports.entries == [
          EventShutdownReport(
            parts: [
              .init(name: "Referee", wasDrained: false, handled: 0, left: 9),
              .init(name: "EventCentral", wasDrained: false, handled: 0, left: 0),
            ], wasCancelled: true)
        ])
      #expect(Hit().queue(on: world) == 0)
      referee.gate.open()
      await referee.join()
    }

    @Test("the cancellation in the middle of a graceful shutdown gives the drain up", arguments: cores)
    func cancelledWhileDraining(core: EventCentral.Core) async {
      let world = EventCentral(core: core)
      let referee = Referee(on: world)
      let reports = Log<EventShutdownReport>()
      (0..<10).map(Hit.init).queue(on: world)
      referee.began.pass()
      let error = await run(EventService(referee, drainingFor: .seconds(600)) { reports.append($0) }) { trigger, task in
        trigger.triggerGracefulShutdown()
        // The drain has begun when the thread takes nothing more.
        _ = await yieldUntil { Hit(number: 1).queue(on: world) == 0 }
        task.cancel()
      }
      #expect(error is CancellationError)
      #expect(reports.entries.first?.wasCancelled == true)
      #expect(reports.entries.first?.isComplete == false)
      #expect(reports.entries.first.map { $0.left >= 9 } == true)
      referee.gate.open()
    }

    @Test("what a sequence leaves that ends during the shutdown is reported", arguments: cores)
    func sequenceEnds(core: EventCentral.Core) async {
      let world = EventCentral(core: core)
      let listener = EventListener(on: world)
      let reports = Log<EventShutdownReport>()
      let hits = Hit.events(on: listener)
      // Tells when the drain has begun.
      Score.addListener(nil, { _ in }, executeOn: .listenerThread, on: listener)
      (0..<10).map(Hit.init).queue(on: world)
      // An iterator that is there is the one that drives.
      func takeThree() async {
        var iterator = hits.makeAsyncIterator()
        for number in 0..<3 { #expect(await iterator.next()?.number == number) }
      }
      await takeThree()
      let error = await run(EventService(listener, drainingFor: .seconds(600)) { reports.append($0) }) { trigger, _ in
        trigger.triggerGracefulShutdown()
        _ = await yieldUntil { Score().queue(on: world) == 0 }
        hits.end()
      }
      #expect(error == nil)
      #expect(reports.entries.map(\.left) == [7] && reports.entries.first?.isComplete == false)
    }

    @Test("a worker is a part, and no part at all is none to wait for", arguments: cores)
    func worker(core: EventCentral.Core) async {
      let world = EventCentral(core: core)
      let reports = Log<EventShutdownReport>()
      let sums = Log<Int>()
      let worker = EventWorker(on: world, state: 0) { on in
        on(Hit.self) { sum, hit in
          sum += hit.number
          sums.append(sum)
        }
      }
      (1...3).map(Hit.init).queue(on: world)
      #expect(
        await run(EventService(worker) { reports.append($0) }) { trigger, _ in trigger.triggerGracefulShutdown() } == nil)
      #expect(sums.entries == [1, 3, 6])
      #expect(await run(EventService { reports.append($0) }) { trigger, _ in trigger.triggerGracefulShutdown() } == nil)
      #expect(reports.entries.map(\.isComplete) == [true, true])
      #expect(reports.entries.last?.description == "Shut down: there was nothing to end.")
    }

    @Test("the parts of an array are ended in its order, and those of one name are told apart", arguments: cores)
    func array(core: EventCentral.Core) async {
      let world = EventCentral(core: core)
      let reports = Log<EventShutdownReport>()
      let parts: [any EventServicePart] = (0..<3).map { _ in Clerk(on: world) }
      let service = EventService(parts) { reports.append($0) }
      #expect(await run(service) { trigger, _ in trigger.triggerGracefulShutdown() } == nil)
      #expect(reports.entries.first?.parts.map(\.name) == ["Clerk", "Clerk-2", "Clerk-3"])
    }

    /// A thread, a pool and its thread, on each of which is a listener that runs on a queue, stands in the first of ten
    /// events, and has nine wait.
    private func withListenersElsewhere(
      _ core: EventCentral.Core, _ clock: ManualClock,
      _ shutDown: @escaping @Sendable (
        GracefulShutdownTestTrigger, Task<Void, any Error>, Log<EventShutdownReport>, _ letGo: () async -> Void
      ) async -> Void
    ) async -> EventShutdownReport? {
      let world = EventCentral(core: core, clock: clock)
      let thread = EventThread(on: world, name: "thread")
      let pool = EventPool<EventThread>(capacity: 1, on: world, name: "pool")
      let (gate, began, reports) = (Gate(), Gate(), Log<EventShutdownReport>())
      for place in [thread, pool, pool.withThreads { $0[0] }] as [any EventListenable] {
        Hit.addListener(
          nil,
          { hit in
            guard hit.number == 0 else { return }
            began.open()
            gate.pass()
          }, executeOn: .dispatchQueue(DispatchQueue(label: "elsewhere")), on: place)
      }
      (0..<10).map(Hit.init).queue(on: world)
      await offThePool { for _ in 0..<3 { began.pass() } }
      let service = EventService(thread, pool, drainingFor: .seconds(1)) { reports.append($0) }
      // Tells when the drain has begun.
      Score.addListener(nil, { _ in }, executeOn: .dispatchQueue(DispatchQueue(label: "begin")), on: thread)
      let letGo: @Sendable () -> Void = { for _ in 0..<3 { gate.open() } }
      _ = await run(service) { trigger, task in
        await shutDown(trigger, task, reports) {
          _ = await yieldUntil { Score().queue(on: world) == 0 }
          letGo()
        }
      }
      letGo()
      return reports.entries.first
    }

    @Test("what waits for listeners `on:` a part that run elsewhere counts there (D10)", arguments: cores)
    func elsewhere(core: EventCentral.Core) async {
      let clock = ManualClock()
      let drained = await withListenersElsewhere(core, clock) { trigger, _, _, letGo in
        trigger.triggerGracefulShutdown()
        await letGo()
      }
      #expect(drained?.isComplete == true)
      // With the events that told of the drain.
      #expect(drained?.parts.first.map { $0.handled >= 10 } == true)
      #expect(drained?.parts.last == .init(name: "pool", wasDrained: true, handled: 20, left: 0))
      let late = await withListenersElsewhere(core, clock) { trigger, _, reports, _ in
        trigger.triggerGracefulShutdown()
        let isReported = await yieldUntil {
          clock.advance(by: .milliseconds(100))
          return !reports.entries.isEmpty
        }
        #expect(isReported)
      }
      #expect(late?.isComplete == false)
      #expect(
        late?.parts == [
          .init(name: "thread", wasDrained: false, handled: 0, left: 9),
          .init(name: "pool", wasDrained: false, handled: 0, left: 18),
        ])
      let cancelled = await withListenersElsewhere(core, clock) { _, task, _, _ in task.cancel() }
      #expect(cancelled?.parts.map(\.left) == [9, 18])
    }

    actor Ledger {
      private let thread: EventThread
      nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }
      init(_ thread: EventThread) { self.thread = thread }
      func note() {}
    }

    @Test("jobs of actors that run elsewhere after the end of their thread are not left", arguments: cores)
    func jobs(core: EventCentral.Core) async {
      let world = EventCentral(core: core)
      let thread = Clerk(on: world)
      let worker = EventWorker(on: world, state: 0) { on in on(Score.self) { _, _ in } }
      let pool = EventPool<Clerk>(capacity: 1, on: world)
      let shared = EventPool<Clerk>(capacity: 1, balancer: .shared, on: world)
      let parts: [(any EventServicePart, EventThread)] = [
        (thread, thread), (worker, worker.thread), (pool, pool.withThreads { $0[0] }),
        (shared, shared.withThreads { $0[0] }),
      ]
      for (part, thread) in parts {
        let (entered, leave) = (Gate(), Gate())
        thread.addEventCallback { (hold: HeldThread.Hold) in hold.stand() }
        thread.stackEvent(HeldThread.Hold(entered: entered, leave: leave))
        await offThePool { entered.pass() }
        let ledger = Ledger(thread)
        let tasks = (0..<5).map { _ in Task { await ledger.note() } }
        #expect(await yieldUntil { thread.eventCount == 5 })
        for _ in 0..<3 { thread.queueEvent(Score()) }
        let counting = EventShutdownReport.Counting(part, "part")
        part.cancel()
        leave.open()
        await thread.join()
        for task in tasks { await task.value }
        #expect(counting.result(wasDrained: false).left == 3)
      }
    }
  }
#endif
