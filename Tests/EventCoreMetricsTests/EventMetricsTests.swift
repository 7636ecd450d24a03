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
      for name in ["EventPool<Clerk>", "EventWorker<Int>", "EventListener", "EventListener-2", "EventCentral"] {
        #expect(total(metrics, "accepted", name) == 2, "\(name)")
        #expect(total(metrics, "delivered", name) == 2, "\(name)")
        #expect(try gauge(metrics, "waiting", name) == 0, "\(name)")
      }
      #expect(running.values.count == 1)
    }

    @Test("it samples until its task is cancelled, and then once more", arguments: cores)
    func run(core: EventCentral.Core) async throws {
      let world = EventCentral(core: core)
      let metrics = TestMetrics()
      let worker = EventWorker(on: world, state: 0) { on in on(Order.self) { _, _ in } }
      let sampler = EventMetrics(of: worker, every: .seconds(3_600), factory: metrics)
      let task = Task { try await sampler.run() }
      let gauge = try metrics.expectRecorder("eventcore.waiting", [("receiver", "EventWorker<Int>")])
      #expect(await yieldUntil { gauge.values.count == 1 })
      (0..<3).map(Order.init).queue(on: world)
      #expect(await worker.thread.drain())
      task.cancel()
      try await task.value
      #expect(gauge.values.count == 2)
      #expect(total(metrics, "delivered", "EventWorker<Int>") == 3)
    }
  }
#endif
