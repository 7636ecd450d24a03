// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if Logging
  import Dispatch
  import EventCoreLogging
  import EventCoreTestSupport
  import InMemoryLogging
  import Logging
  import Synchronization
  import Testing

  @Suite("A log of what happens inside")
  struct EventLogTests {
    struct Order: Eventable { var number = 0 }
    struct Refusal: Error, CustomStringConvertible { var description: String { "no more orders" } }

    /// A receiver with figures of the test's.
    final class Figures: EventReceiver {
      let waiting = Mutex(0)
      var receiverName: String { "Figures" }
      var receiverStatistics: EventThreadStatistics { EventThreadStatistics(delivered: 0, skipped: 0, cancelled: 0) }
      var mailboxStatistics: EventMailboxStatistics {
        EventMailboxStatistics(
          accepted: 0, refused: 3, dropped: 4, waiting: waiting.withLock { $0 }, highWaterMark: 0)
      }
    }

    private func makeLogger() -> (logger: Logger, log: InMemoryLogHandler) {
      let log = InMemoryLogHandler()
      return (Logger(label: "test", factory: { _ in log }), log)
    }

    @Test("what a handler throws is logged with the event's type, until the log goes", arguments: cores)
    func failures(core: EventCentral.Core) async {
      let world = EventCentral(core: core)
      let (logger, log) = makeLogger()
      do {
        let events = EventLog(of: world, to: logger)
        Order.addListener(nil, concurrency: .serial, on: world) { order in
          if order.number % 2 == 1 { throw Refusal() }
        }
        (0..<10).map(Order.init).queue(on: world)
        #expect(await yieldUntil { log.entries.count == 5 })
        withExtendedLifetime(events) {}
      }
      #expect(
        log.entries.allSatisfy {
          $0.level == .error && $0.message == "A handler threw." && $0.error is Refusal
            && $0.metadata == ["event": "Order", "error": "no more orders"]
        })
      #expect(EventFailure.addListener(nil, { _ in }, executeOn: .listenerThread, on: world).isActive)
      Order(number: 1).queue(on: world)
      #expect(await world.drain())
      #expect(log.entries.count == 5)
    }

    @Test("a log whose run ends has logged what was thrown before", arguments: cores)
    func lastFailures(core: EventCentral.Core) async throws {
      let world = EventCentral(core: core)
      let (logger, log) = makeLogger()
      let events = EventLog(of: world, to: logger)
      let run = Task { try await events.run() }
      let listener = EventListener(on: world)
      Order.addListener(nil, concurrency: .serial, on: listener) { _ in throw Refusal() }
      (0..<500).map(Order.init).queue(on: world)
      #expect(await listener.drain())
      run.cancel()
      try await run.value
      #expect(log.entries.count == 500)
    }

    @Test("a log that is full of failures when its run ends logs those that have a place, first", arguments: cores)
    func lastFailuresOfMany(core: EventCentral.Core) async throws {
      struct Held: LogHandler {
        let log: InMemoryLogHandler
        let began = Gate(), leave = Gate()
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.error
        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
          get { metadata[key] }
          set { metadata[key] = newValue }
        }
        func log(event: LogEvent) {
          if log.entries.isEmpty {
            began.open()
            leave.pass()
          }
          log.log(event: event)
        }
      }
      let world = EventCentral(core: core)
      let held = Held(log: InMemoryLogHandler())
      let events = EventLog(of: world, to: Logger(label: "test", factory: { _ in held }))
      let listener = EventListener(on: world)
      Order.addListener(nil, concurrency: .serial, on: listener) { _ in throw Refusal() }
      Order().queue(on: world)
      await offThePool { held.began.pass() }
      (0..<1_200).map(Order.init).queue(on: world)
      #expect(await listener.drain())
      let run = Task { try await events.run() }
      run.cancel()
      // The run waits for them; the mark of its end has taken the place of one.
      for _ in 0..<100 { await Task.yield() }
      held.leave.open()
      try await run.value
      #expect((1_000...1_001).contains(held.log.entries.count))
    }

    @Test("a log looks again after the longest time that there is, without a trap in the runtime")
    func longInterval() async throws {
      let looked = LookedAt()
      let events = EventLog(of: EventCentral(), looked, to: makeLogger().logger, every: .seconds(Int64.max))
      let run = Task { try await events.run() }
      await offThePool { looked.gate.pass() }
      run.cancel()
      try await run.value
    }

    @Test("an answer that comes after another's is not logged, and one that comes too late is", arguments: cores)
    func answers(core: EventCentral.Core) async throws {
      let world = EventCentral(core: core)
      let (logger, log) = makeLogger()
      let events = EventLog(of: world, to: logger)
      var failures = world.failures.makeAsyncIterator()
      let answerers = (0..<2).map { _ in Order.answer(on: world) { order in order.number } }
      #expect(try await world.request(Order(number: 1), expecting: Int.self) == 1)
      #expect(await failures.next()?.lateAnswer as? Int == 1)
      for answerer in answerers { answerer.remove() }

      let (entered, leave) = (Gate(), Gate())
      Order.answer(on: world) { order in
        entered.open()
        leave.pass()
        return "\(order.number)"
      }
      let request = Task { try await world.request(Order(number: 2), expecting: String.self) }
      await offThePool { entered.pass() }
      request.cancel()
      await #expect(throws: CancellationError.self) { try await request.value }
      leave.open()
      #expect(await failures.next()?.lateAnswer as? String == "2")
      #expect(await yieldUntil { !log.entries.isEmpty })
      #expect(log.entries.map(\.message) == ["An answer came too late."])
      withExtendedLifetime(events) {}
    }

    @Test("a mailbox that grows is said at the backlog, at each doubling, and when it shrinks", arguments: [1, 2, 3, 100])
    func growth(backlog: Int) {
      let (logger, log) = makeLogger()
      let figures = Figures()
      let events = EventLog(of: EventCentral(), figures, to: logger, backlog: backlog)
      /// What is said when so many wait.
      func said(at waiting: Int) -> [String] {
        log.clear()
        figures.waiting.withLock { $0 = waiting }
        events.look()
        return log.entries.map { "\($0.level): \($0.message)" }
      }
      let grows = ["warning: The mailbox grows."]
      #expect(said(at: 0) == [])
      #expect(said(at: backlog - 1) == [])
      #expect(said(at: backlog) == grows)
      #expect(
        log.entries.first?.metadata == [
          "receiver": "Figures", "waiting": "\(backlog)", "refused": "3", "dropped": "4",
        ])
      #expect(said(at: backlog) == [])
      #expect(said(at: 2 * backlog - 1) == [])
      #expect(said(at: 2 * backlog) == grows)
      // Several doublings at once are one word.
      #expect(said(at: 17 * backlog) == grows)
      #expect(said(at: 31 * backlog) == [])
      #expect(said(at: 32 * backlog) == grows)
      #expect(said(at: (backlog + 1) / 2) == [])
      #expect(said(at: 0) == ["notice: The mailbox has shrunk."])
      #expect(said(at: 0) == [])
      #expect(said(at: backlog) == grows)
    }

    @Test("a handler that takes long is said while it runs, and when it has returned", arguments: cores)
    func slow(core: EventCentral.Core) async {
      let clock = ManualClock()
      let world = EventCentral(core: core, clock: clock)
      let (logger, log) = makeLogger()
      let (gate, began) = (Gate(), Gate())
      let events = EventLog(of: world, to: logger, slow: .milliseconds(10))
      Order.addListener(
        nil,
        { _ in
          began.open()
          gate.pass()
        }, executeOn: .listenerThread, on: world)
      (0..<3).map(Order.init).queue(on: world)
      began.pass()
      #expect(
        await yieldUntil {
          clock.advance(by: .milliseconds(10))
          return !log.entries.isEmpty
        })
      for _ in 0..<3 { gate.open() }
      #expect(await yieldUntil { log.entries.contains { $0.message == "A handler took long." } })
      #expect(log.entries.first?.message == "A handler does not return.")
      #expect(log.entries.first?.level == .warning)
      #expect(log.entries.first?.metadata["event"]?.description.hasSuffix("Order") == true)
      #expect(log.entries.first?.metadata["waiting"] == "2")
      withExtendedLifetime(events) {}
    }

    final class Clerk: EventThread, @unchecked Sendable {
      let gate = Gate(), began = Gate()
      override func registerEventListeners() { addEventCallback(Clerk.onOrder) }
      func onOrder(_ order: Order) {
        began.open()
        gate.pass()
      }
    }

    @Test("D12: an interval that is not positive traps and says what to do")
    func noInterval() async {
      let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        _ = EventLog(of: EventCentral(), to: Logger(label: "test"), every: .seconds(-1))
      }
      expectMessage(result, "after a time that is greater than 0, and this one after -1.0 seconds")
    }

    @Test("receivers of one name are told apart, and a pool has the name that it was given", arguments: cores)
    func names(core: EventCentral.Core) async {
      let world = EventCentral(core: core)
      let (logger, log) = makeLogger()
      let clerks = (0..<2).map { _ in Clerk(on: world) }
      let pool = EventPool(capacity: 1, on: world, name: "crew") { _ in Clerk(on: world) }
      Order().queue(on: world)
      let all = clerks + pool.withThreads { $0 }
      for clerk in all { clerk.began.pass() }
      Order().queue(on: world)
      EventLog(of: world, clerks[0], clerks[1], pool, to: logger, backlog: 1).look()
      #expect(log.entries.map { $0.metadata["receiver"] } == ["Clerk", "Clerk-2", "crew"])
      for clerk in all {
        clerk.gate.open()
        clerk.began.pass()
        clerk.gate.open()
      }
      for clerk in clerks { #expect(await clerk.drain()) }
      #expect(await pool.drain())
    }

    @Test("threads, pools, listeners, workers and centrals are looked at until the task is cancelled", arguments: cores)
    func run(core: EventCentral.Core) async throws {
      let world = EventCentral(core: core)
      let (logger, log) = makeLogger()
      let clerk = Clerk(on: world)
      let pool = EventPool(capacity: 1, on: world) { _ in Clerk(on: world) }
      let worker = EventWorker(on: world, state: 0) { on in on(Order.self) { _, _ in } }
      (0..<5).map(Order.init).queue(on: world)
      clerk.began.pass()
      pool.withThreads { $0[0] }.began.pass()
      #expect(await yieldUntil { worker.waitingEventCount == 0 })
      let events = EventLog(
        of: world, clerk, pool, worker, world, world.listener, to: logger, backlog: 4,
        every: .milliseconds(1))
      let task = Task { try await events.run() }
      #expect(await yieldUntil { log.entries.count >= 2 })
      task.cancel()
      try await task.value
      let grown = log.entries.filter { $0.message == "The mailbox grows." }
      #expect(grown.map { $0.metadata["receiver"] } == ["Clerk", "EventPool<Clerk>"])
      #expect(grown.allSatisfy { $0.metadata["waiting"] == "4" })
      for _ in 0..<5 {
        clerk.gate.open()
        pool.withThreads { $0[0] }.gate.open()
      }
      #expect(await clerk.drain())
      #expect(await pool.drain())
    }
  }
#endif
