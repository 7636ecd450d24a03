// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// What waits in the outbox ends somewhere, is counted there, and a drain says what it knows.
@Suite struct OutboxTests {
  /// What `Counts` says of all that was dispatched.
  private func sum(_ counts: NATSBridge.Counts) -> Int {
    counts.sent + counts.unencodable + counts.tooLarge + counts.unsent + Int(counts.outbox.dropped)
      + counts.outbox.waiting
  }

  // MARK: A stream that does not take an event

  @Test("while a stream is gone, a drain ends at its limit, and counts what waits")
  func streamGone() async throws {
    let server = try ServerProcess(["--jetstream"])
    let world = EventCentral()
    let sender = try await NATSBridge.to(server, on: world)
    try await sender.makeStream("ORDERS", of: [Order.self])
    try await sender.publish(Order.self, stream: "ORDERS")
    try RawClient(server).withStreams { js_DeleteStream($0, "ORDERS", nil, nil) }
    Order(number: 1).queue(on: world)
    let begin = ContinuousClock.now
    #expect(await !sender.drain(within: .milliseconds(300)))
    #expect(ContinuousClock.now - begin < .seconds(10))
    #expect(sender.counts.unsent == 1 && sender.counts.sent == 0)
  }

  @Test("while a server is frozen, many events for its stream do not hold up the end of a drain")
  func streamFrozen() async throws {
    let server = try ServerProcess(["--jetstream"])
    let world = EventCentral()
    let sender = try await NATSBridge.to(server, on: world)
    try await sender.makeStream("ORDERS", of: [Order.self])
    try await sender.publish(Order.self, stream: "ORDERS")
    server.freeze()
    for number in 0..<100 { Order(number: number).queue(on: world) }
    let begin = ContinuousClock.now
    #expect(await !sender.drain(within: .milliseconds(100)))
    #expect(ContinuousClock.now - begin < .seconds(10))
    #expect(sender.counts.unsent == 100)
  }

  @Test("an event that is longer than its stream takes is counted, and holds up none behind it")
  func longerThanStream() async throws {
    struct Note: DurableEvent {
      static let subject = "tests.stream.note"
      var text: String
      var delivery: NATSDelivery?
    }
    let server = try ServerProcess(["--jetstream"])
    let (here, there) = (EventCentral(), EventCentral())
    try RawClient(server).makeStream("NOTES", of: Note.subject) { $0.MaxMsgSize = 400 }
    let sender = try await NATSBridge.to(server, on: here)
    let receiver = try await NATSBridge.to(server, on: there)
    let log = Log<String>()
    Note.addListener(nil, { note in log.append(note.text) }, executeOn: .listenerThread, on: there)
    Reading.addListener(nil, { event in log.append("\(event.number)") }, executeOn: .listenerThread, on: there)
    try receiver.subscribe(Note.self)
    try receiver.subscribe(Reading.self)
    try await receiver.settle()
    try await sender.publish(Note.self, stream: "NOTES")
    sender.publish(Reading.self)
    Note(text: String(repeating: "x", count: 1000)).queue(on: here)
    Note(text: "short").queue(on: here)
    #expect(await eventually(within: .seconds(20)) { sender.counts.sent == 1 })
    Reading(number: 7).queue(on: here)
    #expect(await sender.drain(within: .seconds(20)))
    let counts = sender.counts
    #expect(counts.tooLarge == 1 && counts.sent == 2 && sum(counts) == 3)
    // The stream's subject is an ordinary one as well, and so has what the stream refuses.
    #expect(await Set(log.entries(atLeast: 3).map { $0.prefix(5) }) == ["xxxxx", "short", "7"])
    await receiver.drain()
  }

  @Test("an event that the client does not take while the connection is there waits, which is told once")
  func notTaken() async throws {
    let server = try ServerProcess()
    let world = EventCentral()
    let log = Log<NATSStatus.Change>()
    NATSStatus.addListener(nil, { status in log.append(status.change) }, executeOn: .listenerThread, on: world)
    let sender = try await NATSBridge.to(server, on: world)
    let outlet = Outlet(Reading.self, sender)
    let isSent = await blocking {
      var attempts = 0
      // Some of those of a connection that is about to break are not told.
      return outlet.send(Reading(number: 1), under: Reading.subject, .queue, .normal, world.now) { _, _ in
        attempts += 1
        return attempts <= 150 ? NATS_NO_MEMORY : NATS_OK
      }
    }
    #expect(isSent && sender.counts.sent == 1)
    sender.close()
    #expect(await eventually { log.entries.last == .closed })
    let faults = log.entries.compactMap { if case .fault(let text) = $0 { text } else { nil } }
    #expect(faults.count == 1 && faults.first?.contains("client of NATS has not taken") == true, "\(faults)")
  }

  // MARK: What a drain says

  @Test("a drain during which the server dies with what it was sent is not true", arguments: cores)
  func serverDiesDuringDrain(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(core: core), EventCentral(core: core))
    let sender = try await NATSBridge.to(server, on: here)
    let receiver = try await NATSBridge.to(server, on: there)
    let log = Log<Int>()
    Reading.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: there)
    try receiver.subscribe(Reading.self)
    try await receiver.settle()
    sender.publish(Reading.self)
    server.freeze()
    for number in 0..<100 { Reading(number: number).queue(on: here) }
    #expect(await eventually { sender.counts.sent == 100 })
    async let drained = sender.drain()
    // When it has begun: then the outbox takes nothing more.
    #expect(await eventually { Reading(number: 100).queue(on: here) == 0 })
    server.stop()
    try server.restart()
    let isDrained = await drained
    await receiver.drain()
    #expect(!isDrained || log.count >= 100, "\(log.count) of 100 arrived")
  }

  @Test("a drain during which the server dies is true if all is stored")
  func serverDiesDuringDrainOfStream() async throws {
    let server = try ServerProcess(["--jetstream"])
    let world = EventCentral()
    let sender = try await NATSBridge.to(server, on: world)
    try await sender.makeStream("ORDERS", of: [Order.self])
    try await sender.publish(Order.self, stream: "ORDERS")
    server.freeze()
    for number in 0..<10 { Order(number: number).queue(on: world) }
    async let drained = sender.drain()
    #expect(await eventually { Order(number: 10).queue(on: world) == 0 })
    server.stop()
    try server.restart()
    #expect(await drained)
    let counts = sender.counts
    #expect(counts.sent >= 10 && counts.sent == Int(counts.outbox.accepted))
  }

  @Test("a drain during which the server dies with a request is not true")
  func serverDiesWithRequest() async throws {
    let server = try ServerProcess()
    let world = EventCentral()
    let asking = try await NATSBridge.to(server, on: world)
    try asking.forwardRequests(PriceQuery.self, expecting: Price.self)
    try await asking.settle()
    server.freeze()
    let before = asking.messagesOut
    let answer = Task { try await world.request(PriceQuery(id: 1), expecting: Price.self, within: .seconds(60)) }
    #expect(await eventually { asking.messagesOut > before })
    async let drained = asking.drain()
    #expect(await eventually { asking.link.timeLeft(atMost: .max) < .max })
    server.stop()
    try server.restart()
    #expect(await !drained)
    await #expect(throws: (any Error).self) { try await answer.value }
  }

  @Test("several drains at once send an open batch once, and say the same", arguments: cores)
  func severalDrains(core: EventCentral.Core) async throws {
    for _ in 0..<20 {
      let server = try ServerProcess()
      let world = EventCentral(core: core)
      let sender = try await NATSBridge.to(server, on: world)
      let batched = sender.publish(Reading.self, batch: 64)
      sender.publish(Alarm.self)
      server.stop()
      #expect(await eventually { !sender.isConnected })
      // One is under way, and what those behind it leave open is the drain's.
      for number in 0..<10 { Reading(number: number).queue(on: world) }
      Alarm(level: 1).queue(on: world)
      try server.restart()
      let results = await withTaskGroup(of: Bool.self) { group in
        for _ in 0..<4 { group.addTask { await sender.drain() } }
        return await group.reduce(into: []) { $0.append($1) }
      }
      #expect(results == [true, true, true, true])
      #expect(sender.counts.sent == 11)
      batched.remove()
    }
  }

  // MARK: What is counted

  @Test("what waits at close is counted: accepted is the sum of all that became of it", arguments: cores, [1, 64])
  func closed(core: EventCentral.Core, batch: Int) async throws {
    let server = try ServerProcess()
    let world = EventCentral(core: core)
    let sender = try await NATSBridge.to(server, on: world)
    sender.publish(Reading.self, batch: batch)
    sender.publish(Alarm.self)
    server.stop()
    #expect(await eventually { !sender.isConnected })
    for number in 0..<100 {
      Reading(number: number).queue(on: world)
      Alarm(level: number).queue(on: world)
    }
    sender.close()
    #expect(await eventually(within: .seconds(20)) { sum(sender.counts) == 200 && sender.counts.outbox.waiting == 0 })
    let counts = sender.counts
    #expect(counts.outbox.accepted == 200 && counts.unsent == 200)
  }

  /// Tells when it is encoded, by the handler that sends it.
  struct Told: RemoteEvent {
    static let subject = "tests.told"
    static let encoded = Log<Int>()
    let number: Int

    init(number: Int) { self.number = number }
    init(from decoder: any Decoder) throws { number = try decoder.singleValueContainer().decode(Int.self) }
    func encode(to encoder: any Encoder) throws {
      Self.encoded.append(number)
      var container = encoder.singleValueContainer()
      try container.encode(number)
    }
  }

  @Test("what waits when its type is not published any more is counted", arguments: cores)
  func unpublished(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let world = EventCentral(core: core)
    let sender = try await NATSBridge.to(server, on: world)
    let registration = sender.publish(Told.self)
    server.stop()
    #expect(await eventually { !sender.isConnected })
    let before = Told.encoded.count
    for number in 0..<100 { Told(number: number).queue(on: world) }
    // The first is under way: it has left the outbox, and its handler has begun.
    #expect(await Told.encoded.entries(atLeast: before + 1).count == before + 1)
    #expect(await eventually { sender.counts.outbox.waiting == 99 })
    registration.remove()
    try server.restart()
    #expect(await eventually { sender.counts.outbox.waiting == 0 })
    #expect(await sender.drain())
    let counts = sender.counts
    #expect(counts.outbox.accepted == 100 && counts.sent == 1 && counts.unsent == 99)
  }

  @Test("a batch that is open when its type is not published any more waits, until the drain sends it")
  func openBatch() async throws {
    let server = try ServerProcess()
    let world = EventCentral()
    let sender = try await NATSBridge.to(server, on: world)
    sender.publish(Alarm.self)
    let registration = sender.publish(Reading.self, batch: 64)
    server.stop()
    #expect(await eventually { !sender.isConnected })
    Alarm(level: 1).queue(on: world)
    #expect(await eventually { sender.counts.outbox.waiting == 0 && sender.counts.outbox.accepted == 1 })
    for number in 0..<10 { Reading(number: number).queue(on: world) }
    registration.remove()
    try server.restart()
    let isDrained = await sender.drain()
    #expect(sum(sender.counts) == 11 && sender.counts.sent >= 1)
    // Those that come to their turn before the drain begins are unsent before.
    #expect(isDrained || sender.counts.unsent > 0)
  }

  // MARK: Limits

  @Test("limits may be as long as a duration can be")
  func longest() async throws {
    let server = try ServerProcess(["--jetstream"])
    let ever = Duration.seconds(Int64.max)
    let (here, there) = (EventCentral(), EventCentral())
    let change = { @Sendable (options: inout NATSBridge.Options) in
      (options.heartbeat, options.connectTimeout) = (ever, ever)
      options.reconnecting = NATSBridge.Reconnecting(first: .milliseconds(1), longest: ever)
    }
    let asking = try await NATSBridge.to(server, on: here, change)
    let answering = try await NATSBridge.to(server, on: there, change)
    PriceQuery.answer(on: there) { query in Price(cents: query.id) }
    try answering.answerRequests(PriceQuery.self, with: Price.self, within: ever)
    try await answering.settle(within: ever)
    try asking.forwardRequests(PriceQuery.self, expecting: Price.self, within: ever)
    #expect(try await here.request(PriceQuery(id: 3), expecting: Price.self) == Price(cents: 3))
    var options = NATSBridge.DurableOptions()
    (options.patience, options.delay) = (ever, ever)
    let log = Log<Order>()
    Order.addListener(nil, { event in log.append(event) }, executeOn: .listenerThread, on: there)
    try await asking.makeStream("ORDERS", of: [Order.self])
    try await answering.durable(Order.self, stream: "ORDERS", as: "test", options: options)
    try await asking.publish(Order.self, stream: "ORDERS")
    Order(number: 1).queue(on: here)
    try #require(await log.entries(atLeast: 1).first?.delivery).giveBack(after: ever)
    #expect(await asking.drain(within: ever))
    #expect(await answering.drain(within: ever))
  }
}
