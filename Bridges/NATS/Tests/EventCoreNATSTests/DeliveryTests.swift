// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// What a durable subscription takes, and what counts as taken.
@Suite struct DeliveryTests {
  @Test("what keeps the newest order is no receiver of one: without others it comes again", arguments: cores)
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
}
