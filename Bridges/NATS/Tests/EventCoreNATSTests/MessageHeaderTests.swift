// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
import EventCore
@testable import EventCoreNATS
import Testing

private struct Versioned: RemoteEvent {
  static let subject = "tests.header"
  static let remoteName = "a name of several words"
  static let version = 12
}

@Suite struct MessageHeaderTests {
  @Test("what a bridge says of an event is read as it was written", arguments: [true, false])
  func roundTrip(isCBOR: Bool) throws {
    let coding: RemoteCoding<Versioned> = isCBOR ? .cbor : .json
    let writer = HeaderWriter(Versioned.self, coding, sender: "8c1f")
    for method in [EventDispatchMethod.queue, .stack] {
      for priority in [EventPriority.lowest, .low, .normal, .high, .highest] {
        for time in [0, 7, -7, 1_764_060_000_000_000_000, Int64.max, .min] {
          try writer.line(method, priority, time: time).withCString {
            let header = try #require(MessageHeader(line: $0))
            #expect(header.method == method && header.priority == priority && header.time == time)
            #expect(header.version == 12 && header.sender.isText("8c1f") && header.type.isText(Versioned.remoteName))
            #expect(isCBOR ? header.form?.isText("cbor") == true : header.form == nil)
          }
        }
      }
    }
  }

  @Test(
    "a line of another form is none",
    arguments: [
      "", " ", "queue", "queue normal 1 1 s", "queue normal 1 1 s ", " queue normal 1 1 s T", "queue  normal 1 1 s T",
      "Queue normal 1 1 s T", "queues normal 1 1 s T", "queue norma 1 1 s T", "queue normal x 1 s T",
      "queue normal 1x 1 s T", "queue normal - 1 s T", "queue normal -- 1 s T", "queue normal 1- 1 s T",
      "queue normal 9223372036854775808 1 s T", "queue normal 99999999999999999999 1 s T", "queue normal 1 -1 s T",
      "queue normal 1 /cbor s T", "queue normal 1 x/cbor s T", "queue normal 1 1  T",
      "queue normal 1 18446744073709551617 s T", "queue normal -9223372036854775809 1 s T",
    ])
  func malformed(line: String) {
    line.withCString { #expect(MessageHeader(line: $0) == nil) }
  }

  @Test("a body that is longer than any server takes makes no message")
  func longestBody() {
    // Nobody reads it.
    let bytes = UnsafeRawBufferPointer(start: UnsafeRawPointer(bitPattern: 4096), count: Int(Int32.max) - 10)
    #expect(makeMessage("tests.long", "queue", bytes, [:]) == nil)
  }

  @Test("fields of a tracer that say nothing are left out, and do not hide the header of the event")
  func emptyFields() async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(), EventCentral())
    let sender = try await NATSBridge.to(server, on: here)
    let receiver = try await NATSBridge.to(server, on: there)
    let log = Log<EventPriority>()
    let thread = EventThread(on: there)
    thread.addEventCallback { (_: Reading, priority: EventPriority, _: DispatchTime) in log.append(priority) }
    // One of its own, too, which a message without the header would not be.
    for bridge in [sender, receiver] { try bridge.subscribe(Reading.self) }
    for bridge in [sender, receiver] { try await bridge.settle() }
    let line = HeaderWriter(Reading.self, .json, sender: sender.sender).line(.stack, .highest, time: 0)
    let body = try Reading.coding.encode(Reading(number: 1))
    // The client writes headers in any order.
    let names = ["tracestate", "baggage", "b3", "x-trace", "uber-trace-id"]
    for text in ["", " ", " \t", "\0", " \0x"] {
      for name in names {
        let message = body.withUnsafeBytes { makeMessage(Reading.subject, line, $0, [name: text, "x": "1"]) }
        // Through the other one, since what a bridge sends does not come back to it.
        natsConnection_PublishMsg(receiver.link.connection, message)
        natsConnection_PublishMsg(sender.link.connection, message)
        natsMsg_Destroy(message)
      }
    }
    let count = 5 * names.count
    #expect(await eventually { sender.counts.received == count && receiver.counts.received == count })
    #expect(sender.counts.own == count)
    #expect(await log.entries(atLeast: count).allSatisfy { $0 == .highest })
    for bridge in [sender, receiver] { await bridge.drain() }
    await thread.drain()
  }

  @Test("a server that takes no headers: the error says so, and of a bridge that has waited for it the status")
  func noHeaders() async throws {
    let server = try ServerProcess(configuration: "no_header_support: true")
    let error = await #expect(throws: NATSBridgeError.self) { try await NATSBridge.to(server, on: EventCentral()) }
    #expect("\(String(describing: error))".contains("no_header_support"))
    server.stop()
    let world = EventCentral()
    let log = Log<NATSStatus.Change>()
    NATSStatus.addListener(nil, { status in log.append(status.change) }, executeOn: .listenerThread, on: world)
    let bridge = try await NATSBridge.to(server, on: world) { $0.waitsForServer = true }
    bridge.publish(Reading.self)
    Reading(number: 1).queue(on: world)
    try server.restart()
    let changes = await log.entries(atLeast: 2)
    #expect(changes.first == .connected)
    guard case .fault(let text)? = changes.last else { return #expect(Bool(false), "\(changes)") }
    #expect(text.contains("no_header_support") && text.contains("127.0.0.1:\(server.port) takes none"), "\(text)")
    #expect(await !bridge.drain(within: .milliseconds(50)))
    #expect(bridge.counts.unsent == 1)
  }
}
