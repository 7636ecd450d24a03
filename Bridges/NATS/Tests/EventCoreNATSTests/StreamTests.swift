// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// What a stream has to be for a type, and what becomes of what it keeps.
@Suite struct StreamTests {
  struct Invoice: DurableEvent {
    static let subject = "tests.invoices.sent"
    var number: Int
    var delivery: NATSDelivery?
  }

  // MARK: The subjects of a stream

  @Test("a type is not published to a stream that does not keep its subject, and holds up nothing then")
  func otherSubject() async throws {
    let server = try ServerProcess(["--jetstream"])
    let world = EventCentral()
    let sender = try await NATSBridge.to(server, on: world)
    try await sender.makeStream("ORDERS", of: [Order.self])
    let error = await #expect(throws: NATSBridgeError.self) {
      try await sender.publish(Invoice.self, stream: "ORDERS")
    }
    for word in ["ORDERS", Order.subject, Invoice.subject] {
      #expect(error?.description.contains(word) == true, "\(error?.description ?? "")")
    }
    try await sender.publish(Order.self, stream: "ORDERS")
    Invoice(number: 1).queue(on: world)
    Order(number: 2).queue(on: world)
    #expect(await sender.drain(within: .seconds(20)))
    #expect(sender.counts.sent == 1)
  }

  @Test("a stream that is there is not changed: it keeps the subjects of all types, or that is an error")
  func existing() async throws {
    let server = try ServerProcess(["--jetstream"])
    let world = EventCentral()
    let sender = try await NATSBridge.to(server, on: world)
    try await sender.makeStream("ORDERS", of: [Order.self])
    try await sender.makeStream("ORDERS", of: [Order.self])
    let error = await #expect(throws: NATSBridgeError.self) {
      try await sender.makeStream("ORDERS", of: [Order.self, Invoice.self])
    }
    #expect(error?.description.contains(Invoice.subject) == true, "\(error?.description ?? "")")
    try RawClient(server).makeStream("INVOICES", of: "tests.invoices.>")
    try await sender.makeStream("INVOICES", of: [Invoice.self])
    try await sender.publish(Invoice.self, stream: "INVOICES")
    Invoice(number: 1).queue(on: world)
    #expect(await sender.drain())
    #expect(sender.counts.sent == 1)
  }

  @Test("a subject that is named twice is kept, and told, once")
  func twice() async throws {
    let server = try ServerProcess(["--jetstream"])
    let bridge = try await NATSBridge.to(server, on: EventCentral())
    for _ in 1...2 { try await bridge.makeStream("ORDERS", of: [Order.self, Order.self]) }
    #expect(try RawClient(server).stream("ORDERS") { $0.Config.pointee.SubjectsLen } == 1)
    let error = await error { try await bridge.makeStream("ORDERS", of: [Order.self, Invoice.self, Invoice.self]) }
    #expect(error?.description.components(separatedBy: Invoice.subject).count == 2, "\(error as Any)")
  }

  @Test(
    "patterns have subjects as the server's have",
    arguments: [
      ("a.b", ["a.b"], ["a", "a.b.c", "a.c", "b.a", "A.b"]), ("a.*", ["a.b", "a.é"], ["a", "a.b.c", "b.b"]),
      ("*.b", ["a.b"], ["b", "a.a.b"]), ("a.>", ["a.b", "a.b.c"], ["a", "b.a"]), (">", ["a", "a.b"], []),
      ("a.*.>", ["a.b.c", "a.b.c.d"], ["a.b"]), ("a*", [], ["ab", "a.b"]), ("a.b>", [], ["a.b", "a.b.c"]),
    ])
  func patterns(pattern: String, those: [String], others: [String]) {
    for subject in those { #expect(isSubject(subject, of: pattern), "\(subject)") }
    for subject in others { #expect(!isSubject(subject, of: pattern), "\(subject)") }
  }

  @Test("while a stream is gone, a status event says so, once")
  func goneIsTold() async throws {
    let server = try ServerProcess(["--jetstream"])
    let world = EventCentral()
    let log = Log<NATSStatus.Change>()
    NATSStatus.addListener(nil, { status in log.append(status.change) }, executeOn: .listenerThread, on: world)
    let sender = try await NATSBridge.to(server, on: world)
    try await sender.makeStream("ORDERS", of: [Order.self])
    try await sender.publish(Order.self, stream: "ORDERS")
    let client = try RawClient(server)
    for round in 1...2 {
      try client.withStreams { js_DeleteStream($0, "ORDERS", nil, nil) }
      Order(number: round).queue(on: world)
      #expect(await log.entries(atLeast: round).count == round)
      try client.makeStream("ORDERS", of: Order.subject)
      #expect(await eventually { sender.counts.sent == round })
    }
    // Some thirty attempts, of which the first tells.
    try client.withStreams { js_DeleteStream($0, "ORDERS", nil, nil) }
    Order(number: 3).queue(on: world)
    #expect(await !sender.drain(within: .milliseconds(300)))
    #expect(await eventually { log.entries.last == .closed })
    let faults = log.entries.compactMap { if case .fault(let text) = $0 { text } else { nil } }
    #expect(faults.count == 3 && faults.allSatisfy { $0.contains("ORDERS") }, "\(faults)")
  }

  @Test("while a user may not publish to a stream, its event waits, which is told, and is not counted as sent")
  func forbidden() async throws {
    let server = try ServerProcess(
      ["--jetstream"],
      configuration: """
        authorization { users: [ { user: a, password: b, permissions: { publish: { deny: "tests.order" } } } ] }
        """)
    let world = EventCentral()
    let log = Log<NATSStatus.Change>()
    NATSStatus.addListener(nil, { status in log.append(status.change) }, executeOn: .listenerThread, on: world)
    let sender = try await NATSBridge(.url(server.url, credentials: .user("a", password: "b")), on: world)
    try await sender.makeStream("ORDERS", of: [Order.self])
    try await sender.publish(Order.self, stream: "ORDERS")
    sender.publish(Reading.self)
    Order(number: 1).queue(on: world)
    Reading(number: 2).queue(on: world)
    // The client's word on the subject, and that on the event.
    let faults = await log.entries(atLeast: 2).compactMap { if case .fault(let text) = $0 { text } else { nil } }
    #expect(faults.count == 2 && faults.contains { $0.contains("ORDERS") }, "\(faults)")
    #expect(await !sender.drain(within: .milliseconds(100)))
    #expect(sender.counts.unsent == 2 && sender.counts.sent == 0)
  }

  @Test("a name that no stream or consumer can have is an error, and the connection stays")
  func names() async throws {
    let server = try ServerProcess(["--jetstream"])
    let world = EventCentral()
    let log = Log<NATSStatus.Change>()
    NATSStatus.addListener(nil, { status in log.append(status.change) }, executeOn: .listenerThread, on: world)
    let bridge = try await NATSBridge.to(server, on: world)
    try await bridge.makeStream("ORDERS", of: [Order.self])
    let long = String(repeating: "n", count: 256)
    for name in ["", "a b", "a\tb", "a\r\nb", "a\0b", "a.b", "a*", "a>", "a/b", #"a\b"#, #"a"b"#, long] {
      let errors = [
        await error { try await bridge.makeStream(name, of: [Order.self]) },
        await error { try await bridge.publish(Order.self, stream: name) },
        await error { try await bridge.durable(Order.self, stream: name, as: "test") },
        await error { try await bridge.durable(Order.self, stream: "ORDERS", as: name) },
      ]
      for error in errors {
        #expect(error?.reason == .other && error?.description.contains("1 to 255 bytes") == true, "\(errors)")
      }
    }
    try await bridge.durable(Order.self, stream: "ORDERS", as: String(long.dropLast()))
    try await bridge.settle()
    #expect(bridge.isConnected && log.entries == [])
  }

  @Test("a stream of no types is an error: it would keep the subject of its name")
  func noTypes() async throws {
    let server = try ServerProcess(["--jetstream"])
    let bridge = try await NATSBridge.to(server, on: EventCentral())
    #expect(await error { try await bridge.makeStream("ORDERS", of: []) }?.reason == .other)
    #expect(await error { try await bridge.publish(Order.self, stream: "ORDERS") }?.reason == .notFound)
  }

  @Test("what is durable needs a stream that is there, and that keeps the type's subject")
  func durableNowhere() async throws {
    let server = try ServerProcess(["--jetstream"])
    let bridge = try await NATSBridge.to(server, on: EventCentral())
    #expect(await error { try await bridge.durable(Order.self, stream: "ORDERS", as: "test") }?.reason == .notFound)
    try await bridge.makeStream("ORDERS", of: [Order.self])
    let other = await error { try await bridge.durable(Invoice.self, stream: "ORDERS", as: "test") }
    #expect(other?.reason == .other && other?.description.contains(Invoice.subject) == true, "\(other as Any)")
    try await bridge.durable(Order.self, stream: "ORDERS", as: "test")
  }

  private func error<Result>(_ body: () async throws -> Result) async -> NATSBridgeError? {
    do {
      _ = try await body()
      return nil
    } catch {
      return error as? NATSBridgeError
    }
  }

  // MARK: Batches in a stream

  private func send(_ bodies: [String], to client: RawClient) {
    var batch: [UInt8] = []
    for body in bodies { EventBatch.append(Data(body.utf8), to: &batch) }
    client.publish(Order.subject, batch: "\(bodies.count)", Data(batch))
  }

  @Test("batches that a stream keeps lose nothing", arguments: cores)
  func batches(core: EventCentral.Core) async throws {
    let server = try ServerProcess(["--jetstream"])
    let (here, there) = (EventCentral(core: core), EventCentral(core: core))
    let sender = try await NATSBridge.to(server, on: here)
    let receiver = try await NATSBridge.to(server, on: there)
    try await sender.makeStream("ORDERS", of: [Order.self])
    sender.publish(Order.self, batch: 64)
    // All wait, so that they go in batches.
    server.stop()
    #expect(await eventually { !sender.isConnected && !receiver.isConnected })
    for number in 0..<1000 { Order(number: number).queue(on: here) }
    try server.restart()
    #expect(await sender.drain())
    #expect(sender.counts.sent == 1000)
    let log = Log<(number: Int, position: Int)>()
    let thread = EventThread(on: there)
    thread.addEventCallback { (event: Order) in log.append((event.number, event.delivery?.position ?? 0)) }
    try await receiver.durable(Order.self, stream: "ORDERS", as: "test")
    let orders = await log.entries(atLeast: 1000)
    #expect(orders.map(\.number) == Array(0..<1000))
    #expect(Set(orders.map(\.position)).count < 100, "They came in batches.")
    await receiver.drain()
    await thread.drain()
  }

  @Test("the events of a batch are handled together: one that is given back brings all again")
  func batchGivenBack() async throws {
    let server = try ServerProcess(["--jetstream"])
    let world = EventCentral()
    let bridge = try await NATSBridge.to(server, on: world)
    try await bridge.makeStream("ORDERS", of: [Order.self])
    let log = Log<String>()
    let thread = EventThread(on: world)
    thread.addEventCallback { (event: Order) in
      let attempt = event.delivery?.attempt ?? 0
      log.append("\(event.number) \(attempt)")
      if event.number == 2, attempt == 1 { event.delivery?.giveBack() }
    }
    var options = NATSBridge.DurableOptions()
    options.patience = .seconds(60)
    try await bridge.durable(Order.self, stream: "ORDERS", as: "test", options: options)
    let client = try RawClient(server)
    send((1...3).map { #"{"number": \#($0)}"# }, to: client)
    #expect(await log.entries(atLeast: 6) == ["1 1", "2 1", "3 1", "1 2", "2 2", "3 2"])
    // What can be read of a batch is handled, and what cannot is counted.
    send([#"{"number": 4}"#, "{", #"{"number": 5}"#], to: client)
    #expect(await log.entries(atLeast: 8).suffix(2) == ["4 1", "5 1"])
    await bridge.drain()
    #expect(bridge.counts.undecodable == 1 && bridge.counts.givenBack == 1)
    await thread.drain()
    #expect(log.count == 8)
  }

  @Test("a receiver that has less room than a batch has events gets them one after the other, each once")
  func batchLargerThanMailbox() async throws {
    let server = try ServerProcess(["--jetstream"])
    let world = EventCentral()
    let bridge = try await NATSBridge.to(server, on: world)
    try await bridge.makeStream("ORDERS", of: [Order.self])
    let (log, gate) = (Log<String>(), DispatchSemaphore(value: 0))
    let thread = EventThread(on: world, mailbox: .bounded(1, whenFull: .refuse))
    thread.addEventCallback { (event: Order) in
      log.append("\(event.number) \(event.delivery?.attempt ?? 0)")
      gate.wait()
    }
    var options = NATSBridge.DurableOptions()
    (options.patience, options.delay) = (.seconds(60), .milliseconds(5))
    try await bridge.durable(Order.self, stream: "ORDERS", as: "test", options: options)
    send((1...10).map { #"{"number": \#($0)}"# }, to: try RawClient(server))
    for number in 1...10 {
      #expect(await log.entries(atLeast: number) == (1...number).map { "\($0) 1" })
      gate.signal()
    }
    await bridge.drain()
    await thread.drain()
    let counts = bridge.counts
    #expect(log.count == 10 && counts.givenBack == 0 && counts.received == 10 && counts.dispatched == 10)
  }

  /// Keeps the client's thread waiting, until a test lets it go on.
  struct Parcel: DurableEvent {
    static let subject = "tests.parcel"
    static let gate = DispatchSemaphore(value: 0)
    var text: String
    var delivery: NATSDelivery?
    mutating func arrived(_ origin: RemoteOrigin) { Self.gate.wait() }
  }

  @Test("events in flight may be as many as a number says, and have room", arguments: [65_537, (1 << 32) + 1, .max])
  func inFlight(count: Int) async throws {
    let server = try ServerProcess(["--jetstream"])
    let world = EventCentral()
    let bridge = try await NATSBridge.to(server, on: world)
    try await bridge.makeStream("PARCELS", of: [Parcel.self])
    var options = NATSBridge.DurableOptions()
    (options.inFlight, options.patience) = (count, .seconds(60))
    try await bridge.durable(Parcel.self, stream: "PARCELS", as: "test", options: options)
    // Together more than a MiB.
    let client = try RawClient(server)
    let body = try Parcel.coding.encode(Parcel(text: String(repeating: "a", count: 100_000)))
    for _ in 1...20 { client.publish(Parcel.subject, body) }
    client.flush()
    #expect(
      await eventually { (try? client.consumer("test", of: "PARCELS") { $0.NumAckPending == 20 }) == true })
    let most = try client.consumer("test", of: "PARCELS") { $0.Config.pointee.MaxAckPending }
    #expect(most == Int64(min(count, 2_000_000)))
    // All have come.
    try await bridge.settle()
    for _ in 1...20 { Parcel.gate.signal() }
    #expect(await eventually { bridge.counts.received + bridge.counts.overrun == 20 })
    #expect(bridge.counts.overrun == 0)
    bridge.close()
  }

  // MARK: What a machine cannot read

  @Test("a message that one machine cannot read is not delivered again under that name, and under others it is")
  func unreadable() async throws {
    let server = try ServerProcess(["--jetstream"])
    let (older, newer) = (EventCentral(), EventCentral())
    let first = try await NATSBridge.to(server, on: older) { $0.longestMessage = 100 }
    try await first.makeStream("ORDERS", of: [Order.self])
    let registration = try await first.durable(Order.self, stream: "ORDERS", as: "billing")
    let client = try RawClient(server)
    client.publish(Order.subject, Data((#"{"number": 1}"# + String(repeating: " ", count: 100)).utf8))
    client.publish(Order.subject, Data(#"{"number": "a form of later"}"#.utf8))
    #expect(await eventually { first.counts.tooLong == 1 && first.counts.undecodable == 1 })
    // The refusals are with the server before another machine asks for more.
    #expect(registration.remove())
    #expect(await first.drain())
    let log = Log<String>()
    let thread = EventThread(on: newer)
    thread.addEventCallback { (event: Order) in log.append("\(event.number) \(event.delivery?.position ?? 0)") }
    let second = try await NATSBridge.to(server, on: newer)
    try await second.durable(Order.self, stream: "ORDERS", as: "billing")
    client.publish(Order.subject, Data(#"{"number": 3}"#.utf8))
    #expect(await log.entries(atLeast: 1) == ["3 3"])
    try await second.durable(Order.self, stream: "ORDERS", as: "audit")
    #expect(await log.entries(atLeast: 3).suffix(2) == ["1 1", "3 3"])
    await second.drain()
    await thread.drain()
    #expect(log.count == 3)
  }

  // MARK: What is not there

  @Test("a server without JetStream, and one without the stream: the error says so, and what to do")
  func missing() async throws {
    let plain = try ServerProcess()
    let bridge = try await NATSBridge.to(plain, on: EventCentral())
    for error in [
      await #expect(throws: NATSBridgeError.self) { try await bridge.makeStream("ORDERS", of: [Order.self]) },
      await #expect(throws: NATSBridgeError.self) { try await bridge.publish(Order.self, stream: "ORDERS") },
      await #expect(throws: NATSBridgeError.self) { try await bridge.durable(Order.self, stream: "ORDERS", as: "a") },
    ] {
      let text = error?.description ?? ""
      #expect(error?.reason == .notFound && text.contains("--jetstream") && !text.contains("()"), "\(text)")
    }
    let server = try ServerProcess(["--jetstream"])
    let other = try await NATSBridge.to(server, on: EventCentral())
    for error in [
      await #expect(throws: NATSBridgeError.self) { try await other.publish(Order.self, stream: "ORDERS") },
      await #expect(throws: NATSBridgeError.self) { try await other.durable(Order.self, stream: "ORDERS", as: "a") },
    ] {
      let text = error?.description ?? ""
      #expect(error?.reason == .notFound && text.contains("makeStream(_:of:)"), "\(text)")
      #expect(!text.contains("--jetstream"), "\(text)")
    }
  }

  @Test("the name of a durable subscription is for one type")
  func twoTypes() async throws {
    let server = try ServerProcess(["--jetstream"])
    let bridge = try await NATSBridge.to(server, on: EventCentral())
    try await bridge.makeStream("ALL", of: [Order.self, Invoice.self])
    try await bridge.durable(Order.self, stream: "ALL", as: "billing")
    let error = await #expect(throws: NATSBridgeError.self) {
      try await bridge.durable(Invoice.self, stream: "ALL", as: "billing")
    }
    let text = error?.description ?? ""
    #expect(text.contains("is for one type"), "\(text)")
    for word in ["billing", Order.subject, Invoice.subject] { #expect(text.contains(word), "\(text)") }
    try await bridge.durable(Order.self, stream: "ALL", as: "billing")
    try await bridge.durable(Invoice.self, stream: "ALL", as: "sending")
    bridge.close()
  }
}
