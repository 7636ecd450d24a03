// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if Metrics
  import Dispatch
  import EventCoreMetrics
  import EventCoreTestSupport
  import Metrics
  import MetricsTestKit
  import Testing

  @Suite("Metrics of receivers")
  struct EventMetricsTests {
    struct Order: Eventable { var number = 0 }

    final class Clerk: EventThread, @unchecked Sendable {
      let gate = Gate(), began = Gate()
      override func registerEventListeners() {
        addEventCallback(Clerk.onOrder, interestedIn: .custom) { order, _, _ in order.number >= 0 }
      }
      func onOrder(_ order: Order) {
        began.open()
        gate.pass()
      }
    }

    /// The value that a counter of a receiver has, or a gauge.
    private func total(_ metrics: TestMetrics, _ label: String, _ receiver: String) -> Int64 {
      metrics.counterTotal(label: "eventcore.\(label)", dimensions: [("receiver", receiver)])
    }
    private func gauge(_ metrics: TestMetrics, _ label: String, _ receiver: String) throws -> Double? {
      try metrics.expectRecorder("eventcore.\(label)", [("receiver", receiver)]).lastValue
    }

    @Test("a thread's counts, of which each is counted once", arguments: cores)
    func thread(core: EventCentral.Core) async throws {
      let world = EventCentral(core: core)
      let metrics = TestMetrics()
      let clerk = Clerk(on: world, mailbox: .bounded(4, whenFull: .refuse))
      let sampler = EventMetrics(of: clerk, factory: metrics)
      sampler.sample()
      #expect(total(metrics, "accepted", "Clerk") == 0)
      Order().queue(on: world)
      clerk.began.pass()
      // Four find a place, of which one is skipped later, and three are refused.
      for number in [1, 2, -1, 4, 5, 6, 7] { Order(number: number).queue(on: world) }
      sampler.sample()
      sampler.sample()
      #expect(total(metrics, "refused", "Clerk") == 3)
      #expect(try gauge(metrics, "waiting", "Clerk") == 4)
      #expect(try gauge(metrics, "high_water_mark", "Clerk") == 4)
      for _ in 0..<3 { clerk.gate.open() }
      #expect(await yieldUntil { clerk.statistics.delivered == 3 && clerk.statistics.skipped == 1 })
      // The fifth is held when the thread ends.
      Order(number: 8).queue(on: world)
      #expect(await yieldUntil { clerk.eventCount == 1 })
      clerk.cancel()
      clerk.gate.open()
      await clerk.join()
      sampler.sample()
      #expect(total(metrics, "accepted", "Clerk") == 6)
      #expect(total(metrics, "delivered", "Clerk") == 4)
      #expect(total(metrics, "skipped", "Clerk") == 1)
      #expect(total(metrics, "cancelled", "Clerk") == 1)
      #expect(total(metrics, "dropped", "Clerk") == 0)
      #expect(total(metrics, "refused", "Clerk") == 3)
      #expect(try gauge(metrics, "waiting", "Clerk") == 0)
    }

    @Test("a pool's, with how long its handler runs; a worker's, a listener's and a central's; names are told apart",
      arguments: cores)
    func others(core: EventCentral.Core) async throws {
      let world = EventCentral(core: core)
      let metrics = TestMetrics()
      let pool = EventPool(capacity: 2, on: world) { _ in Clerk(on: world) }
      let worker = EventWorker(on: world, state: 0) { on in on(Order.self) { _, _ in } }
      let listener = EventListener(on: world)
      let other = EventListener(on: world)
      for source: any EventListenable in [listener, other, world] {
        Order.addListener(nil, { _ in }, executeOn: .listenerThread, on: source)
      }
      let sampler = EventMetrics(of: pool, worker, listener, other, world, factory: metrics)
      (0..<2).map(Order.init).queue(on: world)
      for clerk in pool.withThreads({ $0 }) { clerk.began.pass() }
      sampler.sample()
      let running = try metrics.expectTimer("eventcore.handler_running", [("receiver", "EventPool<Clerk>")])
      #expect(running.values.count == 1 && running.values[0] >= 0)
      for clerk in pool.withThreads({ $0 }) { clerk.gate.open() }
      #expect(await pool.drain())
      #expect(await worker.thread.drain())
      for source in [listener, other, world.listener] { #expect(await source.drain()) }
      sampler.sample()
      for name in ["EventPool<Clerk>", "EventWorker", "EventListener", "EventListener-2", "EventCentral"] {
        #expect(total(metrics, "accepted", name) == 2, "\(name)")
        #expect(total(metrics, "delivered", name) == 2, "\(name)")
        #expect(try gauge(metrics, "waiting", name) == 0, "\(name)")
      }
      #expect(running.values.count == 1)
    }

    @Test("of an observed central: receivers that come later, and of those that end nothing but their last counts",
      arguments: cores)
    func observing(core: EventCentral.Core) async throws {
      let world = EventCentral(core: core)
      let metrics = TestMetrics()
      let sampler = EventMetrics(observing: world, times: .all, factory: metrics)
      for _ in 0..<2 {
        // Each of the two gets each event, and they are one receiver.
        let clerks = (0..<2).map { _ in EventThread(on: world, name: "clerk") }
        for clerk in clerks { clerk.addEventCallback { (_: Order) in } }
        (0..<3).map(Order.init).queue(on: world)
        #expect(await yieldUntil { clerks.allSatisfy { $0.statistics.delivered == 3 } })
        sampler.sample()
        sampler.sample()
        #expect(total(metrics, "delivered", "clerk") == 6)
        Order().queue(on: world)
        #expect(await clerks[0].drain())
        Order().queue(on: world)
        #expect(await clerks[1].drain())
        // Their last counts, to be seen for one look.
        sampler.sample()
        #expect(total(metrics, "delivered", "clerk") == 9 && total(metrics, "accepted", "clerk") == 9)
        #expect(try gauge(metrics, "waiting", "clerk") == 0)
        #expect(metrics.timers(label: "eventcore.handling_time").count == 1)
        sampler.sample()
        #expect(metrics.counters.isEmpty && metrics.recorders.isEmpty && metrics.timers.isEmpty)
      }
    }

    @Test("of an observed central: what a shared pool's mailbox refuses, drops and holds", arguments: cores)
    func shared(core: EventCentral.Core) async throws {
      let world = EventCentral(core: core)
      let metrics = TestMetrics()
      let sampler = EventMetrics(observing: world, factory: metrics)
      do {
        let pool = EventPool(
          capacity: 1, balancer: .shared, mailbox: .bounded(3, whenFull: .refuse), on: world, name: "clerks"
        ) { _ in Clerk() }
        let clerk = pool.withThreads { $0[0] }
        Order().queue(on: world)
        clerk.began.pass()
        (0..<5).map(Order.init).queue(on: world)
        sampler.sample()
        #expect(total(metrics, "accepted", "clerks") == 4 && total(metrics, "refused", "clerks") == 2)
        #expect(try gauge(metrics, "waiting", "clerks") == 3 && gauge(metrics, "high_water_mark", "clerks") == 3)
        let names = world.statistics.receivers.map(\.name)
        #expect(try #require(names.firstIndex(of: "clerks")) < #require(names.firstIndex(of: "clerks-0")))
        pool.cancel()
        clerk.gate.open()
        await pool.join()
      }
      #expect(await yieldUntil { world.statistics.receivers.allSatisfy(\.hasEnded) })
      sampler.sample()
      #expect(total(metrics, "cancelled", "clerks") == 3 && total(metrics, "accepted", "clerks") == 4)
      #expect(try gauge(metrics, "waiting", "clerks") == 0)
    }

    @Test("a gauge of what waits is 0 when it goes, though the last look before saw events", arguments: cores)
    func lastGauge(core: EventCentral.Core) async throws {
      let world = EventCentral(core: core)
      let metrics = TestMetrics()
      let sampler = EventMetrics(observing: world, factory: metrics)
      let waiting: TestRecorder
      do {
        let pool = EventPool(capacity: 1, balancer: .shared, on: world, name: "clerks") { _ in Clerk() }
        let clerk = pool.withThreads { $0[0] }
        for _ in 0..<2 { Order().queue(on: world) }
        clerk.began.pass()
        sampler.sample()
        waiting = try metrics.expectRecorder("eventcore.waiting", [("receiver", "clerks")])
        #expect(waiting.lastValue == 1)
        for _ in 0..<2 { clerk.gate.open() }
        #expect(await pool.drain())
      }
      #expect(await yieldUntil { world.statistics.receivers.allSatisfy(\.hasEnded) })
      for _ in 0..<2 { sampler.sample() }
      #expect(waiting.lastValue == 0)
    }

    @Test("metrics are sampled again after the longest time that there is, without a trap in the runtime")
    func longInterval() async throws {
      let looked = LookedAt()
      let sampler = EventMetrics(of: looked, every: .seconds(Int64.max), factory: TestMetrics())
      let run = Task { try await sampler.run() }
      // As it was made, and in the run.
      await offThePool { for _ in 0..<2 { looked.gate.pass() } }
      run.cancel()
      try await run.value
    }

    @Test("two objects whose dimensions differ have metrics of their own, of receivers in an array", arguments: cores)
    func dimensions(core: EventCentral.Core) async throws {
      let metrics = TestMetrics()
      let worlds = (0..<2).map { _ in EventCentral(core: core) }
      let threads = worlds.map { EventThread(on: $0, name: "clerk") }
      for thread in threads { thread.addEventCallback { (_: Order) in } }
      var samplers = ["north", "south"].enumerated().map { index, name in
        EventMetrics(of: [threads[index]], dimensions: [("central", name)], factory: metrics)
      }
      for world in worlds { Order().queue(on: world) }
      #expect(await yieldUntil { threads.allSatisfy { $0.statistics.delivered == 1 } })
      for sampler in samplers { sampler.sample() }
      samplers.removeFirst()
      samplers[0].sample()
      let south = [("central", "south"), ("receiver", "clerk")]
      #expect(metrics.counterTotal(label: "eventcore.delivered", dimensions: south) == 1)
      #expect(metrics.counters(label: "eventcore.delivered").count == 1)
      for thread in threads { #expect(await thread.drain()) }
    }

    @Test("what a shared pool's mailbox has refused stays in the statistics, though nobody looks on as the pool ends",
      arguments: cores)
    func sharedThatEnds(core: EventCentral.Core) async throws {
      let world = EventCentral(core: core)
      let observation = world.observe()
      let pool = EventPool(
        capacity: 1, balancer: .shared, mailbox: .bounded(1, whenFull: .refuse), on: world, name: "clerks"
      ) { _ in Clerk() }
      let clerk = pool.withThreads { $0[0] }
      Order().queue(on: world)
      clerk.began.pass()
      (0..<3).map(Order.init).queue(on: world)
      observation.end()
      for _ in 0..<2 { clerk.gate.open() }
      clerk.began.pass()
      clerk.gate.open()
      #expect(await pool.drain())
      // The last worker lets go of the mailbox a moment after its end.
      #expect(await yieldUntil { world.statistics.receivers.allSatisfy(\.hasEnded) })
      let ended = world.statistics.receivers.first { $0.name == "clerks" }
      #expect(try #require(ended).hasEnded && ended?.mailbox.refused == 2 && ended?.mailbox.accepted == 2)
    }

    @Test("metrics go with the object that made them, and have the names that receivers were given", arguments: cores)
    func released(core: EventCentral.Core) async {
      let world = EventCentral(core: core)
      let (thread, listener) = (EventThread(on: world, name: "orders"), EventListener(on: world, name: "audio"))
      let metrics = TestMetrics()
      do {
        let sampler = EventMetrics(of: thread, listener, factory: metrics)
        sampler.sample()
        #expect(Set(metrics.counters.compactMap { $0.dimensions.first?.1 }) == ["orders", "audio"])
      }
      #expect(metrics.counters.isEmpty && metrics.recorders.isEmpty)
      #expect(await thread.drain())
    }

    /// An actor that runs on an event thread.
    private actor Physics {
      let thread: EventThread
      init(on thread: EventThread) { self.thread = thread }
      nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }
      func step() {}
    }

    @Test("of an observed central: threads that only run the jobs of actors, one after the other by one name",
      arguments: cores)
    func jobs(core: EventCentral.Core) async throws {
      let world = EventCentral(core: core)
      let metrics = TestMetrics()
      let sampler = EventMetrics(observing: world, factory: metrics)
      // Those that were destroyed, too.
      var counters: [TestCounter] = []
      func delivered() -> Int64 {
        if let counter = try? metrics.expectCounter("eventcore.delivered", [("receiver", "physics")]),
          !counters.contains(where: { $0 === counter })
        {
          counters.append(counter)
        }
        return counters.reduce(0) { $0 + $1.totalValue }
      }
      for round in 1...2 {
        let thread = EventThread(on: world, name: "physics")
        let physics = Physics(on: thread)
        for _ in 0..<10 { await physics.step() }
        sampler.sample()
        _ = delivered()
        #expect(await thread.drain())
        sampler.sample()
        #expect(delivered() == 10 * Int64(round))
      }
    }

    @Test("D12: an interval that is not positive traps and says what to do")
    func noInterval() async {
      let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        _ = EventMetrics(observing: EventCentral(), every: .zero, factory: TestMetrics())
      }
      expectMessage(result, "after a time that is greater than 0, and this one after 0.0 seconds")
    }

    @Test("each event that is timed is recorded once, by its type and receiver", arguments: cores)
    func times(core: EventCentral.Core) throws {
      let clock = ManualClock()
      let world = EventCentral(core: core, clock: clock)
      let metrics = TestMetrics()
      let sampler = EventMetrics(observing: world, times: .all, factory: metrics)
      let pump = EventPump(on: world)
      pump.addEventCallback { (order: Order) in clock.advance(by: .microseconds(order.number)) }
      func play(_ numbers: [Int]) {
        numbers.map(Order.init).queue(on: world)
        clock.advance(by: .milliseconds(1))
        pump.run()
        sampler.sample()
      }
      /// What a timer has got, in microseconds, sorted.
      func values(_ label: String) throws -> [Double] {
        let dimensions = [("receiver", "EventPump"), ("event", "EventCoreMetricsTests.EventMetricsTests.Order")]
        return try metrics.expectTimer("eventcore.\(label)", dimensions).values.map { Double($0) / 1_000 }.sorted()
      }
      func isNear(_ values: [Double], _ expected: [Int]) -> Bool {
        values.count == expected.count
          && zip(values, expected).allSatisfy { $0 >= Double($1) && $0 <= 1.04 * Double($1) }
      }
      play([5, 900, 70, 5])
      #expect(try isNear(values("handling_time"), [5, 5, 70, 900]))
      // Each waits for those before it.
      #expect(try isNear(values("waiting_time"), [1_000, 1_005, 1_905, 1_975]))
      sampler.sample()
      play([5, 8_000])
      #expect(try isNear(values("handling_time"), [5, 5, 5, 70, 900, 8_000]))
      #expect(try values("waiting_time").count == 6)
      #expect(total(metrics, "delivered", "EventPump") == 6)
      pump.cancel()
      pump.run()
    }

    @Test("it samples until its task is cancelled, and then once more", arguments: cores)
    func run(core: EventCentral.Core) async throws {
      let world = EventCentral(core: core)
      let metrics = TestMetrics()
      let worker = EventWorker(on: world, state: 0) { on in on(Order.self) { _, _ in } }
      let sampler = EventMetrics(of: worker, every: .seconds(3_600), factory: metrics)
      let task = Task { try await sampler.run() }
      let gauge = try metrics.expectRecorder("eventcore.waiting", [("receiver", "EventWorker")])
      #expect(await yieldUntil { gauge.values.count == 1 })
      (0..<3).map(Order.init).queue(on: world)
      #expect(await worker.thread.drain())
      task.cancel()
      try await task.value
      #expect(gauge.values.count == 2)
      #expect(total(metrics, "delivered", "EventWorker") == 3)
    }
  }
#endif
