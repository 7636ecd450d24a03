// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// Nobody can have a bridge send what he may not send himself.
@Suite struct ForgeryTests {
  private static let deletes = "$JS.API.STREAM.DELETE.ORDERS"

  @Test("a request whose answer is to go to the server's own subjects is malformed, and not answered")
  func replies() async throws {
    let server = try ServerProcess(["--jetstream"])
    let plant = try await Machine(server)
    let (bridge, world) = (plant.bridge, plant.bridge.central)
    try await bridge.makeStream("ORDERS", of: [Order.self])
    PriceQuery.answer(on: world) { _ -> Price in throw RequestTests.NoSuchThing() }
    try bridge.answerRequests(PriceQuery.self, with: Price.self)
    try await plant.answer(as: "plant")
    let client = try RawClient(server)
    client.publish("eventcore.request.tests.price.Price", reply: Self.deletes, Data(#"{"id": 1}"#.utf8))
    // What the parent cannot read is a failure, with an empty body as well.
    client.publish("eventcore.emission.plant.tests.incident", reply: Self.deletes, Data("x".utf8))
    #expect(await eventually { bridge.counts.received == 2 })
    #expect(await bridge.drain())
    #expect(bridge.counts.malformed == 2 && bridge.counts.dispatched == 0, "\(bridge.counts)")
    #expect(try client.stream("ORDERS") { $0.State.Msgs } == 0)
  }

  @Test("what somebody else sends as a delivery is malformed: it is neither answered nor the end of the connection")
  func deliveries() async throws {
    let server = try ServerProcess(["--jetstream"])
    let world = EventCentral()
    let (log, changes) = (Log<Int>(), Log<NATSStatus.Change>())
    NATSStatus.addListener(nil, { changes.append($0.change) }, executeOn: .listenerThread, on: world)
    Order.addListener(nil, { log.append($0.number) }, executeOn: .listenerThread, on: world)
    let bridge = try await NATSBridge.to(server, on: world)
    try await bridge.makeStream("ORDERS", of: [Order.self])
    try await bridge.durable(Order.self, stream: "ORDERS", as: "billing")
    try await bridge.settle()
    let client = try RawClient(server)
    client.subscribe(to: "tests.elsewhere")
    let socket = try #require(Loopback.connect(to: server.port))
    defer { close(socket) }
    let order = #"{"number": 1}"#
    let forged = [
      ("NATS/1.0 100 Idle Heartbeat", "", ""), ("NATS/1.0 100 FlowControl Request", Self.deletes, ""),
      // The server takes no place of a delivery from a client: `$JS.ACK.` and more.
      ("NATS/1.0", "tests.elsewhere", order), ("NATS/1.0", "", order),
    ]
    var text = #"CONNECT {"verbose":false,"headers":true}"# + "\r\n"
    for (head, reply, body) in forged {
      let header = "\(head)\r\n\r\n"
      text += "HPUB eventcore.deliver.ORDERS.billing \(reply) \(header.utf8.count) "
      text += "\(header.utf8.count + body.utf8.count)\r\n\(header)\(body)\r\n"
    }
    #expect(text.withCString { write(socket, $0, strlen($0)) } == text.utf8.count)
    #expect(await eventually(within: .seconds(20)) { bridge.counts.received == forged.count })
    client.publish(Order.subject, Data(#"{"number": 2}"#.utf8))
    #expect(await log.entries(atLeast: 1) == [2])
    #expect(await bridge.drain())
    #expect(bridge.counts.malformed == forged.count, "\(bridge.counts)")
    // The only message there.
    client.publish("tests.elsewhere", Data("last".utf8))
    #expect(await blocking { client.nextBody() } == Data("last".utf8))
    #expect(await eventually { changes.entries.last == .closed })
    #expect(changes.entries == [.closed])
    #expect(try client.stream("ORDERS") { $0.State.Msgs } == 1)
  }
}
