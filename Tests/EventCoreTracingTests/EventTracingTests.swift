// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if Tracing
  import Dispatch
  import EventCoreTestSupport
  import EventCoreTracing
  import InMemoryTracing
  import Testing
  import Tracing

  @_spi(Bridge) import EventCore

  private enum RequestKey: ServiceContextKey { typealias Value = Int }

  extension ServiceContext {
    fileprivate var request: Int? {
      get { self[RequestKey.self] }
      set { self[RequestKey.self] = newValue }
    }
  }

  /// The number of the request in whose context the caller runs.
  private var request: Int? { ServiceContext.current?.request }

  private func inRequest<Result>(_ number: Int, _ body: () throws -> Result) rethrows -> Result {
    var context = ServiceContext.topLevel
    context.request = number
    return try ServiceContext.withValue(context, operation: body)
  }

  @Suite("The context of a trace travels with an event")
  struct EventTracingTests {
    struct Small: Eventable { var number = 0 }
    struct Empty: Eventable {}
    /// With references, an odd size and more than fits into an envelope.
    struct Large: Eventable {
      var number = 0
      var names = ["a", "b"]
      var more: (UInt64, UInt64, UInt64, UInt64, UInt64) = (1, 2, 3, 4, 5)
      var last: UInt8 = 9
    }

    struct Pair: Equatable, Sendable {
      var number: Int
      var request: Int?
      init(_ number: Int, _ request: Int?) { (self.number, self.request) = (number, request) }
    }

    static let places: [ExecuteEventOn] = [
      .listenerThread, .dispatchQueue(DispatchQueue(label: "traced")), .taskThread,
    ]

    @Test("to listeners in each place, also to several for one event, and none stays behind", arguments: cores)
    func listeners(core: EventCentral.Core) async {
      for place in Self.places {
        let world = EventCentral(core: core, tracing: .contexts)
        let (first, second, large, empty) = (Log<Pair>(), Log<Pair>(), Log<Pair>(), Log<Pair>())
        // The task of `.taskThread` inherits the context of the registration, which is not that of an event.
        inRequest(99) {
          _ = Small.addListener(nil, { first.append(Pair($0.number, request)) }, executeOn: place, on: world)
        }
        Small.addListener(nil, { second.append(Pair($0.number, request)) }, executeOn: .listenerThread, on: world)
        Large.addListener(
          nil,
          {
            let isWhole = $0.names == ["a", "b"] && $0.more.4 == 5 && $0.last == 9
            large.append(Pair(isWhole ? $0.number : -1, request))
          }, executeOn: place, on: world)
        Empty.addListener(nil, { _ in empty.append(Pair(0, request)) }, executeOn: place, on: world)
        for number in 0..<100 {
          inRequest(number) {
            _ = Small(number: number).queue(on: world)
            Large(number: number).queue(on: world)
            Empty().queue(on: world)
          }
          Small(number: 1_000 + number).queue(on: world)
        }
        inRequest(7) { _ = (0..<200).map { Small(number: 2_000 + $0) }.queue(on: world) }
        #expect(await world.drain())
        let expected =
          (0..<100).flatMap { [Pair($0, $0), Pair(1_000 + $0, nil)] } + (0..<200).map { Pair(2_000 + $0, 7) }
        #expect(first.entries == expected)
        #expect(second.entries == expected)
        #expect(large.entries == (0..<100).map { Pair($0, $0) })
        #expect(empty.entries == (0..<100).map { Pair(0, $0) })
      }
    }

    final class Worker: EventThread, @unchecked Sendable {
      let log: Log<Pair>
      init(_ log: Log<Pair>, on central: EventCentral) {
        self.log = log
        super.init(on: central)
      }
      @available(*, unavailable) required init() { fatalError("Workers need a log.") }
      override func registerEventListeners() {
        addEventCallback(Worker.onSmall)
        addEventCallback(Worker.onLarge)
      }
      func onSmall(_ event: Small) {
        log.append(Pair(event.number, request))
        // What a handler dispatches is in the same context, by whatever way.
        Large(number: event.number).queue(on: central)
      }
      func onLarge(_ event: Large) { log.append(Pair(-event.number, request)) }
    }

    @Test("through threads and pools of each kind, and on to what handlers dispatch", arguments: cores)
    func pools(core: EventCentral.Core) async {
      for balancer: any EventPoolBalancing in [.roundRobin, .lowestLoad, .shared] as [any EventPoolBalancing] {
        let world = EventCentral(core: core, tracing: .contexts)
        let log = Log<Pair>()
        let pool = EventPool(capacity: 3, balancer: balancer, on: world) { _ in Worker(log, on: world) }
        for number in 1...300 { inRequest(number) { _ = Small(number: number).queue(on: world) } }
        #expect(await yieldUntil { log.entries.count == 600 })
        #expect(log.entries.allSatisfy { abs($0.number) == $0.request })
        inRequest(5) { _ = pool.queueEvent(Small(number: 5)) }
        #expect(await yieldUntil { log.entries.count == 602 })
        #expect(await pool.drain())
        #expect(log.entries.suffix(2).map(\.request) == [5, 5])
      }
    }

    @Test("to async listeners, one at a time and side by side, across their suspensions", arguments: cores)
    func asynchronous(core: EventCentral.Core) async {
      for concurrency in [EventConcurrency.serial, .concurrent(4)] {
        let world = EventCentral(core: core, tracing: .contexts)
        let log = Log<Pair>()
        Large.addListener(nil, concurrency: concurrency, on: world) { event in
          await Task.yield()
          log.append(Pair(event.number, request))
        }
        for number in 0..<100 { inRequest(number) { _ = Large(number: number).queue(on: world) } }
        Large(number: 100).queue(on: world)
        #expect(await world.drain())
        #expect(log.entries.sorted { $0.number < $1.number } == (0..<100).map { Pair($0, $0) } + [Pair(100, nil)])
      }
    }

    @Test("to actors, pumps and sequences", arguments: cores)
    func others(core: EventCentral.Core) async {
      let world = EventCentral(core: core, tracing: .contexts)
      let pump = EventPump(on: world)
      var pumped: [Pair] = []
      pump.addEventCallback { (event: Small) in pumped.append(Pair(event.number, request)) }
      actor Clerk {
        let log = Log<Pair>()
        func begin(on world: EventCentral) {
          Small.addListener(self, { [log] event in log.append(Pair(event.number, request)) }, on: world)
        }
      }
      let clerk = Clerk()
      await clerk.begin(on: world)
      let filtered = Log<Pair>()
      let sequence = Small.events(on: world, buffering: .unbounded, interestedIn: .custom) { event, _, _ in
        filtered.append(Pair(event.number, request))
        return true
      }
      for number in 0..<10 { inRequest(number) { _ = Small(number: number).queue(on: world) } }
      Small(number: 10).queue(on: world)
      let expected = (0..<10).map { Pair($0, $0) } + [Pair(10, nil)]
      pump.run()
      #expect(pumped == expected)
      var taken: [Pair] = []
      for await event in sequence.traced {
        taken.append(Pair(event.event.number, event.context?.request))
        let inside = await event.withContext { event in Pair(event.number, request) }
        #expect(inside == taken.last)
        if event.event.number == 10 { break }
      }
      #expect(taken == expected)
      #expect(filtered.entries == expected)
      #expect(await yieldUntil { clerk.log.entries.count == 11 })
      #expect(clerk.log.entries == expected)
      pump.cancel()
      pump.run()
    }

    @Test("to who answers a request, and with the schedule of an event", arguments: cores)
    func requestsAndSchedules(core: EventCentral.Core) async throws {
      let clock = ManualClock()
      let world = EventCentral(core: core, clock: clock, tracing: .contexts)
      Small.answer(on: world) { (_: Small) -> Int in request ?? -1 }
      Large.answer(on: world) { (_: Large) async -> Int in
        await Task.yield()
        return request ?? -1
      }
      var context = ServiceContext.topLevel
      context.request = 3
      let answers = try await ServiceContext.withValue(context) {
        [
          try await world.request(Small(), expecting: Int.self), try await world.request(Large(), expecting: Int.self),
        ]
      }
      #expect(answers == [3, 3])
      #expect(try await world.request(Small(), expecting: Int.self) == -1)

      let log = Log<Pair>()
      Small.addListener(nil, { log.append(Pair($0.number, request)) }, executeOn: .listenerThread, on: world)
      inRequest(4) {
        _ = Small(number: 1).scheduleQueue(after: .seconds(1), on: world)
        _ = Small(number: 2).scheduleQueue(every: .seconds(2), on: world)
      }
      for _ in 0..<4 { inRequest(5) { clock.advance(by: .seconds(1)) } }
      #expect(await yieldUntil { log.entries.count == 3 })
      #expect(log.entries == [Pair(1, 4), Pair(2, 4), Pair(2, 4)])
    }

    @Test("with the newest event that a central keeps for those who come later", arguments: cores)
    func sticky(core: EventCentral.Core) async {
      let tracer = InMemoryTracer()
      for tracing in [EventContextPropagation.contexts, .spans(tracer)] {
        let world = EventCentral(core: core, tracing: tracing)
        Large.keepNewest(on: world)
        for number in 1...3 { inRequest(number) { _ = Large(number: number).queue(on: world) } }
        let log = Log<Pair>()
        inRequest(9) {
          _ = Large.addListener(nil, { log.append(Pair($0.number, request)) }, executeOn: .listenerThread, on: world)
        }
        #expect(await yieldUntil { log.entries.count == 1 })
        let sequence = inRequest(9) { Large.events(on: world) }
        for await event in sequence.traced {
          #expect(event.event.number == 3 && event.context?.request == 3)
          break
        }
        sequence.end()
        inRequest(4) { _ = Large(number: 4).queue(on: world) }
        #expect(await yieldUntil { log.entries.count == 2 })
        #expect(log.entries == [Pair(3, 3), Pair(4, 4)])
        #expect(await world.drain())
      }
      // One for each call of the listener, and none for what the central keeps: the spans of all three events would be
      // more. If the fourth was kept before it came to the listener, it comes once more, and is passed by.
      let spans = tracer.finishedSpans.map(\.operationName)
      #expect(spans == ["Large", "Large"] || spans == ["Large", "Large", "Large"])
    }

    /// A context value that tells when it is gone.
    final class Token: Sendable {
      let gone: Log<Int>
      init(_ gone: Log<Int>) { self.gone = gone }
      deinit { gone.append(1) }
    }
    private enum TokenKey: ServiceContextKey { typealias Value = Token }

    @Test("a context is released with each event: handled, skipped, refused, superseded or freed", arguments: cores)
    func released(core: EventCentral.Core) async {
      let gone = Log<Int>()
      func dispatch<E: Eventable>(_ event: E, on world: EventCentral) {
        var context = ServiceContext.topLevel
        context[TokenKey.self] = Token(gone)
        ServiceContext.withValue(context) { _ = event.queue(on: world) }
      }
      var count = 0
      var tasks: [Task<Void, Never>] = []
      for event: any Eventable in [Small(), Large(), Empty()] {
        func run<E: Eventable>(_ event: E) async {
          // Nobody listens.
          let world = EventCentral(core: core, tracing: .contexts)
          dispatch(event, on: world)
          // Two mailboxes: one is bounded, one wants the latest. The gate holds both.
          let (gate, began) = (Gate(), Gate())
          let bounded = EventListener(on: world, mailbox: .bounded(2, whenFull: .dropOldest))
          let refusing = EventListener(on: world, mailbox: .bounded(2, whenFull: .refuse))
          for listener in [bounded, refusing, world.listener] {
            E.addListener(
              nil,
              { _ in
                began.open()
                gate.pass()
              }, executeOn: .listenerThread, interestedIn: listener === world.listener ? .latestOnly : .all,
              on: listener)
          }
          E.addListener(
            nil, { _ in }, executeOn: .listenerThread, interestedIn: .custom, customFilter: { _, _, _ in false },
            on: EventListener(on: world))
          for _ in 0..<10 { dispatch(event, on: world) }
          await offThePool { for _ in 0..<3 { began.pass() } }
          for _ in 0..<30 { gate.open() }
          _ = await bounded.drain()
          // What waits is freed.
          refusing.end()
          _ = await world.drain()
          count += 11
          // Tasks take them, and wait for others: an async listener and two loops, one of which wants no event.
          let last = EventCentral(core: core, tracing: .contexts)
          E.addListener(nil, concurrency: .serial, on: last) { _ in }
          for sequence in [E.events(on: last), E.events(on: last, interestedIn: .custom) { _, _, _ in false }] {
            tasks.append(Task { for await _ in sequence { _ = last } })
          }
          dispatch(event, on: last)
          count += 1
        }
        await run(event)
      }
      let total = count
      #expect(await yieldUntil { gone.entries.count == total })
      for task in tasks { task.cancel() }
    }

    @Test("with spans, the handling of an event is a child of the dispatcher's span", arguments: cores)
    func spans(core: EventCentral.Core) async {
      let tracer = InMemoryTracer()
      let world = EventCentral(core: core, tracing: .spans(tracer))
      let inner = Log<String>()
      Small.addListener(
        nil,
        { _ in
          inner.append(ServiceContext.current?.inMemorySpanContext?.spanID ?? "none")
          Empty().queue(on: world)
        }, executeOn: .listenerThread, on: world)
      Empty.addListener(nil, concurrency: .serial, on: world) { _ in await Task.yield() }
      tracer.withSpan("request") { _ in _ = Small().queue(on: world) }
      Small().queue(on: world)
      #expect(await yieldUntil { tracer.finishedSpans.count == 5 })
      #expect(await world.drain())
      let spans = tracer.finishedSpans
      let request = spans.first { $0.operationName == "request" }
      let handled = spans.filter { $0.operationName == "Small" }
      #expect(handled.count == 2)
      #expect(handled.map(\.spanID) == inner.entries)
      #expect(handled.allSatisfy { $0.kind == .consumer })
      #expect(handled[0].traceID == request?.traceID && handled[0].parentSpanID == request?.spanID)
      // Dispatched outside of any: a trace of its own.
      #expect(handled[1].parentSpanID == nil && handled[1].traceID != request?.traceID)
      let after = spans.filter { $0.operationName == "Empty" }
      #expect(Set(after.map(\.parentSpanID)) == Set(handled.map(\.spanID)))
    }

    @Test("what an async handler or answerer throws is an error of its span, and of no other", arguments: cores)
    func failures(core: EventCentral.Core) async {
      struct Refusal: Error {}
      let tracer = InMemoryTracer()
      let world = EventCentral(core: core, tracing: .spans(tracer))
      Small.addListener(nil, concurrency: .concurrent(2), on: world) { event in
        await Task.yield()
        if event.number == 1 { throw Refusal() }
      }
      Large.answer(on: world) { (query: Large) async throws -> Int in throw Refusal() }
      for number in 0..<3 { Small(number: number).queue(on: world) }
      await #expect(throws: Refusal.self) { try await world.request(Large(), expecting: Int.self) }
      #expect(await world.drain())
      let spans = tracer.finishedSpans
      #expect(spans.count == 4)
      for span in spans {
        let isFailure = span.errors.first?.error is Refusal
        #expect((span.status?.code == .error) == isFailure)
      }
      #expect(spans.count { $0.operationName == "Small" && $0.status?.code == .error } == 1)
      #expect(spans.count { $0.operationName != "Small" && $0.status?.code == .error } == 1)
    }

    @Test("headers of a message carry the context to another machine, as the tracer writes it", arguments: cores)
    func headers(core: EventCentral.Core) async {
      let (tracer, other) = (InMemoryTracer(), InMemoryTracer())
      let (here, there) = (
        EventCentral(core: core, tracing: .spans(tracer)), EventCentral(core: core, tracing: .spans(other))
      )
      let log = Log<String?>()
      Small.addListener(
        nil, { _ in log.append(ServiceContext.current?.inMemorySpanContext?.traceID) }, executeOn: .listenerThread,
        on: there)
      func arrive(_ headers: [String: String]) {
        there.withCarriedFields(headers) {
          #expect(there.dispatchInward(Small(), by: .queue, priority: .normal).accepted == 1)
        }
      }
      #expect(here.carriedFields == [:])
      let headers = tracer.withSpan("request") { _ in here.carriedFields }
      #expect(headers.count == 2)
      arrive(headers.merging(["Other": "text"]) { one, _ in one })
      arrive(["Other": "text"])
      #expect(await there.drain())
      #expect(log.entries.first == tracer.finishedSpans.first?.traceID)
      #expect(other.finishedSpans.map { $0.parentSpanID == nil } == [false, true])
      // What only a context of the program's own has, no tracer writes.
      #expect(inRequest(1) { EventCentral(core: core, tracing: .contexts).carriedFields } == [:])
    }

    @Test("a central without tracing carries nothing, and one that traces is none for C", arguments: cores)
    func off(core: EventCentral.Core) async {
      let world = EventCentral(core: core)
      let log = Log<Pair>()
      Small.addListener(nil, { log.append(Pair($0.number, request)) }, executeOn: .listenerThread, on: world)
      let sequence = Small.events(on: world)
      inRequest(1) { _ = Small(number: 1).queue(on: world) }
      for await event in sequence.traced {
        #expect(event.context == nil && event.event.number == 1)
        break
      }
      sequence.end()
      #expect(await world.drain())
      #expect(log.entries == [Pair(1, nil)])
      #expect(EventCentral(core: core, tracing: .contexts).cRouter == nil)
    }
  }
#endif
