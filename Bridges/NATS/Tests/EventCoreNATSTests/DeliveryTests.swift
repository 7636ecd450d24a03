// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// What a durable subscription takes, and what counts as taken.
@Suite struct DeliveryTests {
  @Test("an order that only keepNewest would take comes again", arguments: cores)
  func kept(core: EventCentral.Core) async throws {
    let server = try ServerProcess(["--jetstream"])
    let world = EventCentral(core: core)
    let bridge = try await NATSBridge.to(server, on: world)
    try await bridge.makeStream("ORDERS", of: [Order.self])
    Order.keepNewest(on: world)
    try await bridge.durable(Order.self, stream: "ORDERS", as: "billing")
    let client = try RawClient(server)
    for number in 1...3 { client.publish(Order.subject, Data(#"{"number": \#(number)}"#.utf8)) }
    #expect(await eventually(within: .seconds(20)) { bridge.counts.unheard >= 3 })
    let log = Log<Int>()
    Order.addListener(nil, { log.append($0.number) }, executeOn: .listenerThread, on: world)
    #expect(await eventually(within: .seconds(20)) { Set(log.entries) == [1, 2, 3] })
    // What is kept holds no delivery.
    #expect(await bridge.drain(within: .seconds(20)))
  }

  @Test("of a stream as many may wait as are in flight, however long they are", arguments: [10, 1000])
  func inFlight(inbox: Int) async throws {
    let server = try ServerProcess(["--jetstream"])
    let world = EventCentral()
    let bridge = try await NATSBridge.to(server, on: world) { $0.inbox = inbox }
    try await bridge.makeStream("ORDERS", of: [Order.self])
    let gate = DispatchSemaphore(value: 0)
    let thread = EventThread(on: world, mailbox: .bounded(1, whenFull: .block(upTo: .seconds(600))))
    thread.addEventCallback { (_: Order) in gate.wait() }
    var options = NATSBridge.DurableOptions()
    options.inFlight = 100
    try await bridge.durable(Order.self, stream: "ORDERS", as: "billing", options: options)
    let client = try RawClient(server)
    let body = Data(#"{"number": 1, "text": "\#(String(repeating: "x", count: 20_000))"}"#.utf8)
    for _ in 0..<100 { client.publish(Order.subject, body) }
    client.flush()
    #expect(
      await eventually { (try? client.consumer("billing", of: "ORDERS") { $0.NumAckPending == 100 }) == true })
    // All have come, while the handler has the first one.
    try await bridge.settle()
    for _ in 0..<100 { gate.signal() }
    #expect(await eventually(within: .seconds(20)) { bridge.counts.received + bridge.counts.overrun >= 100 })
    #expect(bridge.counts.overrun == 0)
    for _ in 0..<100 { gate.signal() }
    bridge.close()
  }

  @Test("an inbox takes one message of any length that a bridge takes")
  func smallInbox() async throws {
    let server = try ServerProcess()
    let world = EventCentral()
    let bridge = try await NATSBridge.to(server, on: world) { $0.inbox = 2 }
    let log = Log<Int>()
    Reading.addListener(nil, { log.append($0.text.count) }, executeOn: .listenerThread, on: world)
    try bridge.subscribe(Reading.self)
    try await bridge.settle()
    let client = try RawClient(server)
    let text = String(repeating: "x", count: 500_000)
    client.publish(Reading.subject, Data(#"{"number": 1, "text": "\#(text)"}"#.utf8))
    client.flush()
    #expect(await eventually { bridge.counts.received + bridge.counts.overrun == 1 })
    #expect(bridge.counts.overrun == 0)
    await bridge.drain()
  }

  @Test("a name that another tool has made otherwise than bridges need it is an error that says so")
  func foreignNames() async throws {
    let server = try ServerProcess(["--jetstream"])
    let bridge = try await NATSBridge.to(server, on: EventCentral())
    try await bridge.makeStream("ORDERS", of: [Order.self])
    let client = try RawClient(server)
    func make(
      _ name: String, _ target: String?, group: String?, _ change: (inout jsConsumerConfig) -> Void = { _ in }
    ) throws {
      try client.withStreams { streams in
        var configuration = jsConsumerConfig()
        jsConsumerConfig_Init(&configuration)
        let copies = [name, target, group].map { $0.map { strdup($0) } }
        defer { for copy in copies { free(copy ?? nil) } }
        configuration.AckPolicy = js_AckExplicit
        configuration.Durable = UnsafePointer(copies[0] ?? nil)
        configuration.DeliverSubject = UnsafePointer(copies[1] ?? nil)
        configuration.DeliverGroup = UnsafePointer(copies[2] ?? nil)
        change(&configuration)
        return js_AddConsumer(nil, streams, "ORDERS", &configuration, nil, nil)
      }
    }
    try make("pulled", nil, group: nil)
    try make("alone", "tests.deliver.alone", group: nil)
    try make("others", "tests.deliver.others", group: "them")
    // Equal as strings, and two names to the server.
    try make("caf\u{E9}", "tests.deliver.accent", group: "cafe\u{301}")
    let changes: [(String, (inout jsConsumerConfig) -> Void)] = [
      ("beating", { $0.Heartbeat = 5_000_000_000 }),
      ("controlled", { ($0.Heartbeat, $0.FlowControl) = (5_000_000_000, true) }), ("bare", { $0.HeadersOnly = true }),
      ("together", { $0.AckPolicy = js_AckAll }), ("never", { $0.AckPolicy = js_AckNone }),
      ("thrice", { $0.MaxDeliver = 3 }), ("forgetful", { $0.MemoryStorage = true }),
    ]
    for (name, change) in changes { try make(name, "tests.deliver.\(name)", group: name, change) }
    for name in ["pulled", "alone", "others", "caf\u{E9}"] + changes.map({ $0.0 }) {
      let error = await #expect(throws: NATSBridgeError.self, "\(name)") {
        try await bridge.durable(Order.self, stream: "ORDERS", as: name)
      }
      #expect(error?.description.contains("group of its own name") == true, "\(error as Any)")
    }
    let log = Log<Int>()
    Order.addListener(nil, { log.append($0.number) }, executeOn: .listenerThread, on: bridge.central)
    try make("right", "tests.deliver.right", group: "right")
    try await bridge.durable(Order.self, stream: "ORDERS", as: "right")
    client.publish(Order.subject, Data(#"{"number": 1}"#.utf8))
    #expect(await log.entries(atLeast: 1) == [1])
    await bridge.drain()
  }

  @Test("a name that could not be looked up is an error, and what is there under it stays as it is")
  func unknownNames() async throws {
    let server = try ServerProcess(
      ["--jetstream"],
      configuration: """
        authorization { users: [
          { user: all, password: a }
          { user: blind, password: b, permissions: { publish: { deny: "$JS.API.CONSUMER.INFO.>" } } }
        ] }
        """)
    let world = EventCentral()
    let owner = try await NATSBridge(.url(server.url, credentials: .user("all", password: "a")), on: world)
    try await owner.makeStream("ORDERS", of: [Order.self])
    try await owner.durable(Order.self, stream: "ORDERS", as: "billing").remove()
    let blind = try await NATSBridge(.url(server.url, credentials: .user("blind", password: "b")), on: world)
    var options = NATSBridge.DurableOptions()
    options.inFlight = 5
    await #expect(throws: NATSBridgeError.self) {
      try await blind.durable(Order.self, stream: "ORDERS", as: "billing", options: options)
    }
    let client = try RawClient(server, user: "all", password: "a")
    #expect(try client.consumer("billing", of: "ORDERS") { $0.Config.pointee.MaxAckPending } == 1000)
  }
}
