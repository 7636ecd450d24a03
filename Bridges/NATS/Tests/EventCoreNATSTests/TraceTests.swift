// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if Tracing
  import EventCoreNATS
  import EventCoreTracing
  import InMemoryTracing
  import Testing
  import Tracing

  /// The context of a trace crosses machines in the headers of messages. Each central has a tracer of its own, as in a
  /// process of its own.
  @Suite struct TraceTests {
    /// What handlers on the other machine found: a number and the trace.
    typealias Found = Log<String>

    let here: EventCentral
    let there: EventCentral
    let tracer = InMemoryTracer(idGenerator: Self.random)
    let other = InMemoryTracer(idGenerator: Self.random)
    private static var random: InMemoryTracer.IDGenerator {
      InMemoryTracer.IDGenerator(
        nextTraceID: { String(UInt64.random(in: .min ... .max), radix: 16) },
        nextSpanID: { String(UInt64.random(in: .min ... .max), radix: 16) })
    }

    init() {
      here = EventCentral(tracing: .spans(tracer))
      there = EventCentral(tracing: .spans(other))
    }

    /// The trace in which the caller runs.
    static var trace: String { ServiceContext.current?.inMemorySpanContext?.traceID ?? "none" }

    /// Runs a closure inside a span of the first machine. Returns its trace.
    private func inSpan(_ body: () -> Void) -> String {
      let span = tracer.startSpan("request", context: .topLevel)
      ServiceContext.$current.withValue(span.context, operation: body)
      span.end()
      return span.traceID
    }

    @Test("an event is handled in the trace of its dispatch, alone and in batches", arguments: [1, 64])
    func events(batch: Int) async throws {
      let server = try ServerProcess()
      let sender = try await NATSBridge.to(server, on: here)
      let receiver = try await NATSBridge.to(server, on: there)
      let found = Found()
      Reading.addListener(
        nil, { event in found.append("\(event.number) \(Self.trace)") }, executeOn: .listenerThread, on: there)
      try receiver.subscribe(Reading.self)
      try await receiver.settle()
      sender.publish(Reading.self, batch: batch)
      var expected: [String] = []
      for number in 0..<20 {
        let trace = inSpan { for part in 0..<3 { Reading(number: 3 * number + part).queue(on: here) } }
        expected += (0..<3).map { "\(3 * number + $0) \(trace)" }
      }
      #expect(await found.entries(atLeast: 60) == expected)
      #expect(await sender.drain())
      await receiver.drain()
      #expect(await there.drain())
      // The handling there is below the sending here, which is below the request.
      let sending = tracer.finishedSpans.filter { $0.operationName == "Reading" }
      let handling = other.finishedSpans.filter { $0.operationName == "Reading" }
      #expect(handling.count == 60)
      #expect(Set(handling.compactMap(\.parentSpanID)).isSubset(of: Set(sending.map(\.spanID))))
    }

    @Test("an event outside of any trace is handled outside of those of the sender")
    func outside() async throws {
      let server = try ServerProcess()
      let plain = EventCentral()
      let sender = try await NATSBridge.to(server, on: plain)
      let receiver = try await NATSBridge.to(server, on: there)
      let found = Found()
      Reading.addListener(nil, { _ in found.append(Self.trace) }, executeOn: .listenerThread, on: there)
      try receiver.subscribe(Reading.self)
      try await receiver.settle()
      sender.publish(Reading.self)
      let trace = inSpan { Reading(number: 1).queue(on: plain) }
      #expect(await found.entries(atLeast: 1) != [trace])
      #expect(await sender.drain())
      await receiver.drain()
    }

    @Test("what a coordinator passes on is asked of its parent in the trace of the emission")
    func coordinators() async throws {
      let server = try ServerProcess()
      let found = Found()
      let plant = try await Machine(server, on: there) { _ in
        found.append(Self.trace)
        return .handled
      }
      try await plant.answer(as: "plant", carrying: [Incident.self])
      let hall = try await Machine(server, on: here)
      try await hall.forward(to: "plant", carrying: [Incident.self])
      let span = tracer.startSpan("request", context: .topLevel)
      _ = await ServiceContext.$current.withValue(span.context) { await hall.emit(Incident.smoke(1)) }
      span.end()
      #expect(await found.entries(atLeast: 1) == [span.traceID])
      #expect(await hall.log.entries(atLeast: 1) == ["smoke(1) handled"])
      #expect(await hall.bridge.drain())
      await plant.bridge.drain()
    }

    @Test("requests, trees and streams go on in their traces as well")
    func others() async throws {
      let server = try ServerProcess(["--jetstream"])
      let sender = try await NATSBridge.to(server, on: here)
      let receiver = try await NATSBridge.to(server, on: there)
      let found = Found()
      PriceQuery.answer(on: there) { query in
        found.append("request \(Self.trace)")
        return Price(cents: query.id)
      }
      try receiver.answerRequests(PriceQuery.self, with: Price.self)
      let (tree, copy) = (EventNode(name: "a"), EventNode(name: "a"))
      copy.addHandler(.onRaise) { (_: Alarm) in found.append("tree \(Self.trace)") }
      try receiver.mount(copy, at: "a", carrying: [Alarm.self])
      try await receiver.makeStream("ORDERS", of: [Order.self])
      Order.addListener(nil, { _ in found.append("stream \(Self.trace)") }, executeOn: .listenerThread, on: there)
      try await receiver.durable(Order.self, stream: "ORDERS", as: "test")
      try await receiver.settle()
      try sender.forwardRequests(PriceQuery.self, expecting: Price.self, within: .seconds(60))
      try sender.mount(tree, at: "a", carrying: [Alarm.self])
      try await sender.publish(Order.self, stream: "ORDERS")

      let span = tracer.startSpan("request", context: .topLevel)
      try await ServiceContext.$current.withValue(span.context) {
        _ = try await here.request(PriceQuery(id: 1), expecting: Price.self, within: .seconds(60))
      }
      span.end()
      #expect(await found.entries(atLeast: 1) == ["request \(span.traceID)"])
      let raised = inSpan { tree.raise(event: Alarm(level: 1)) }
      #expect(await found.entries(atLeast: 2).last == "tree \(raised)")
      let stored = inSpan { Order(number: 1).queue(on: here) }
      #expect(await found.entries(atLeast: 3).last == "stream \(stored)")
      #expect(await sender.drain())
      await receiver.drain()
    }
  }
#endif
