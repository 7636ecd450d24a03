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
