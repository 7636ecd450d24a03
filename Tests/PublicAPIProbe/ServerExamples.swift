// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of the products for servers, which need their package traits.

#if ServiceLifecycle && Tracing && Logging && Metrics
  import EventCoreLogging
  import EventCoreMetrics
  import EventCoreServiceLifecycle
  import EventCoreTracing
  import Logging
  import ServiceLifecycle
  import Tracing

  private enum ServerExamples {
    struct OrderPlaced: Eventable { var id = 0 }
    class OrderThread: EventThread, @unchecked Sendable {}
    struct Server: Service { func run() async throws {} }
    actor Ledger { func book(_ order: OrderPlaced) throws {} }

    static func serviceLifecycle(server: Server, logger: Logger) async throws {
      let world = EventCentral()
      let workers = EventPool<OrderThread>(capacity: 4, on: world)
      let events = EventService(workers, world, drainingFor: .seconds(5), logger: logger)

      try await ServiceGroup(
        services: [events, server], gracefulShutdownSignals: [.sigterm], cancellationSignals: [.sigint], logger: logger
      ).run()
    }

    static func severalParts(sensors: OrderThread, workers: EventPool<OrderThread>, world: EventCentral, server: Server,
      logger: Logger) async throws
    {
      let events = EventService(sensors, workers, world, drainingFor: .seconds(5), logger: logger)
      try await ServiceGroup(
        services: [events, server], gracefulShutdownSignals: [.sigterm], logger: logger
      ).run()
    }

    static func contexts(ledger: Ledger) async throws {
      let world = EventCentral(tracing: .contexts)  // or .spans(): the handling of each event is a span
      OrderPlaced.addListener(nil, concurrency: .serial, on: world) { order in
        try await ledger.book(order)  // in the trace of the request that placed the order
      }
      withSpan("POST /orders") { _ in
        _ = OrderPlaced(id: 7).queue(on: world)
      }
      EventCentral.traceShared(.contexts)
    }

    static func sequences(world: EventCentral, ledger: Ledger) async throws {
      for await order in OrderPlaced.events(on: world).traced {
        try await order.withContext { order in try await ledger.book(order) }
      }
    }

    static func logging(world: EventCentral, workers: EventPool<OrderThread>, sensors: OrderThread) async throws {
      let log = EventLog(of: world, workers, sensors, to: Logger(label: "events"), backlog: 10_000, slow: .milliseconds(100))
      try await log.run()
    }

    static func metrics(world: EventCentral, workers: EventPool<OrderThread>, sensors: OrderThread) async throws {
      let metrics = EventMetrics(observing: world, every: .seconds(10))
      try await metrics.run()
      do {
        let metrics = EventMetrics(of: workers, sensors, world, every: .seconds(10))
        metrics.sample()
      }
    }
  }
#endif
