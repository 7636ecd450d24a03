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
    Order(number: 1).queue(on: world)
    // The client's word on the subject, and that on the event.
    let faults = await log.entries(atLeast: 2).compactMap { if case .fault(let text) = $0 { text } else { nil } }
    #expect(faults.count == 2 && faults.contains { $0.contains("ORDERS") }, "\(faults)")
    #expect(await !sender.drain(within: .milliseconds(100)))
    #expect(sender.counts.unsent == 1 && sender.counts.sent == 0)
  }
}
