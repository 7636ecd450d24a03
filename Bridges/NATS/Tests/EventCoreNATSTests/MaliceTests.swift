// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// Messages that nobody should send cost a counter each, and never the process.
@Suite struct MaliceTests {
  struct Tree: RemoteEvent {
    static let subject = "tests.tree"
    var children: [Tree]
  }

  /// Sends something bad, and then a good event, which shows that all of it was taken.
  ///
  /// - Parameter messages: Of so many the client may drop some; the good one waits until the inbox has room for it.
  private func check(
    of messages: Int = 0, _ expected: (NATSBridge.Counts) -> Bool, send: (RawClient) -> Void,
    line: SourceLocation = #_sourceLocation
  ) async throws {
    let server = try ServerProcess()
    let world = EventCentral()
    let bridge = try await NATSBridge.to(server, on: world)
    let log = Log<Int>()
    Reading.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: world)
    try bridge.subscribe(Reading.self, to: "tests.>")
    try await bridge.settle()
    let client = try RawClient(server)
    send(client)
    client.flush()
    #expect(await eventually { bridge.counts.received + bridge.counts.overrun >= messages }, sourceLocation: line)
    client.publish(Reading.subject, Data(#"{"number": 42, "text": ""}"#.utf8))
    client.flush()
    #expect(await eventually { log.entries.last == 42 }, sourceLocation: line)
    await bridge.drain()
    #expect(expected(bridge.counts), "\(bridge.counts)", sourceLocation: line)
  }

  private let good = #"{"number": 1, "text": ""}"#

  @Test("a message of another program, without a header, is an event if it has the form")
  func foreignPrograms() async throws {
    try await check { $0.dispatched == 2 && $0.received == 2 } send: { $0.publish(Reading.subject, Data(good.utf8)) }
  }

  @Test("bytes that are no such event: empty, cut, too long, not UTF-8, another type")
  func undecodable() async throws {
    let bodies: [Data] =
      [Data(), Data([0]), Data([0xFF, 0xFE, 0x80]), Data(good.utf8.dropLast()), Data((good + "}").utf8),
        Data("null".utf8), Data("[]".utf8), Data(#"{"number": "1"}"#.utf8), Data(#"{"number": 1e400, "text": ""}"#.utf8),
        Data(#"{"number": 99999999999999999999, "text": ""}"#.utf8),
        Data(#"{"number": 1, "text": ""#.utf8) + Data([0xC3, 0x28]) + Data(#""}"#.utf8),
        Data(#"{"number": 1, "text": "\uD800"}"#.utf8)]
    try await check { $0.undecodable == bodies.count && $0.dispatched == 1 } send: { client in
      for body in bodies { client.publish(Reading.subject, body) }
    }
  }

  @Test("JSON that is a hundred thousand levels deep")
  func deep() async throws {
    let depth = 100_000
    let bodies = [
      String(repeating: "[", count: depth), String(repeating: "[", count: depth) + String(repeating: "]", count: depth),
      String(repeating: #"{"children":["#, count: depth), String(repeating: #"{"number":"#, count: depth),
    ]
    let server = try ServerProcess(configuration: "max_payload: 8388608")
    let world = EventCentral()
    let bridge = try await NATSBridge.to(server, on: world) { $0.longestMessage = 8 << 20 }
    try bridge.subscribe(Tree.self)
    try bridge.subscribe(Reading.self)
    try await bridge.settle()
    let client = try RawClient(server)
    for body in bodies {
      client.publish(Reading.subject, Data(body.utf8))
      client.publish(Tree.subject, Data(body.utf8))
    }
    #expect(await eventually { bridge.counts.undecodable == 2 * bodies.count })
    await bridge.drain()
  }

  @Test("64 MiB in one message")
  func big() async throws {
    let size = 64 << 20
    // A server that waits: on a slow machine it would take the bridge for gone while that reads.
    let server = try ServerProcess(
      configuration: "max_payload: \(size)\nmax_pending: \(2 * size)\nwrite_deadline: \"60s\"")
    let world = EventCentral()
    // One that waits as well: the server says nothing else while the message is on its way. Its inbox takes both
    // messages, since the second may arrive before the first is dispatched.
    let bridge = try await NATSBridge.to(server, on: world) {
      ($0.heartbeat, $0.inbox) = (.seconds(60), 2 * size >> 10)
    }
    let log = Log<Int>()
    Reading.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: world)
    try bridge.subscribe(Reading.self)
    try await bridge.settle()
    let client = try RawClient(server)
    client.publish(Reading.subject, Data(count: size))
    client.flush()
    client.publish(Reading.subject, Data(good.utf8))
    client.flush()
    #expect(await log.entries(atLeast: 1) == [1])
    await bridge.drain()
    #expect(bridge.counts.tooLong == 1 && bridge.counts.dispatched == 1 && bridge.counts.received == 2)
  }

  @Test("headers of other forms")
  func headers() async throws {
    let malformed: [[UInt8]] = [
      "", " ", "queue", "queue normal 0 1 a", "heap normal 0 1 a Reading", "queue urgent 0 1 a Reading",
      "queue normal x 1 a Reading", "queue normal 0 -1 a Reading", "queue normal 0 1  Reading", "queue normal 0 1 a ",
      "queue normal 99999999999999999999 1 a Reading", "queue normal 0 99999999999999999999 a Reading",
      "queue\tnormal\t0\t1\ta\tReading", String(repeating: "a", count: 60_000),
    ].map { Array($0.utf8) } + [[0xFF, 0xFE], Array("queue normal 0 1 a Reading".utf8.map { $0 | 0x80 })]
    try await check { $0.malformed == malformed.count && $0.dispatched == 1 } send: { client in
      for header in malformed { client.publish(Reading.subject, header: header, Data(good.utf8)) }
    }
    let foreign = ["Order", "reading", " Reading", "Reading\u{FF}"]
    try await check { $0.foreign == foreign.count && $0.dispatched == 1 } send: { client in
      for type in foreign { client.publish(Reading.subject, header: "queue normal 0 1 a \(type)", good) }
    }
    // Strange, and yet of the form.
    let right = ["\(Int64.max)", "\(Int64.min)", "0", "-1"]
    try await check { $0.dispatched == 1 + right.count } send: { client in
      for time in right { client.publish(Reading.subject, header: "stack lowest \(time) \(Int.max) a Reading", good) }
    }
  }

  @Test("batches that are cut, or say another number than they have")
  func batches() async throws {
    func frame(_ length: UInt32, _ text: String) -> Data {
      withUnsafeBytes(of: length.littleEndian) { Data($0) } + Data(text.utf8)
    }
    let one = frame(UInt32(good.utf8.count), good)
    let malformed: [(String, Data)] = [
      ("", one), ("x", one), ("0", one), ("-1", one), ("2", one), ("1", one + Data([0])), ("1", Data()),
      ("0", Data()), ("abc", Data()), ("-1", Data()),
      ("1", Data([1, 0, 0])), ("1", frame(.max, good)), ("\(Int.max)", one), ("99999999999999999999", one), ("1", frame(1 << 31, "")),
    ]
    let right = ["2", "1", "\(Int.max)"].count
    try await check {
      $0.malformed == malformed.count && $0.dispatched == 1 + right && $0.undecodable == 0
    } send: { client in
      for (number, body) in malformed { client.publish(Reading.subject, batch: number, body) }
    }
    // Whose number is right, and whose events are none.
    try await check { $0.undecodable == 3 && $0.dispatched == 2 && $0.malformed == 0 } send: { client in
      client.publish(Reading.subject, batch: "4", frame(0, "") + frame(1, "{") + one + frame(2, "[]"))
    }
  }

  @Test("many subjects leave nothing behind")
  func subjects() async throws {
    let count = stressFactor == 1 ? 20_000 : 1_000_000
    try await check(of: count) { $0.received + $0.overrun == count + 1 } send: { client in
      for number in 0..<count {
        client.publish("tests.\(number).some.where", Data("x".utf8))
        if number % 10_000 == 0 { client.flush() }
      }
    }
  }

  @Test("random bytes, in headers and bodies")
  func random() async throws {
    var random = SeededBytes("MaliceTests.random")
    let count = 5000 * stressFactor
    try await check(of: count) { $0.received + $0.overrun == count + 1 } send: { client in
      for _ in 0..<count {
        // A line break would end the header, which the client of the sender does not write.
        let words = random.next() % 2 == 0 ? "queue normal 0 1 a Reading" : "queue normal 0 1/cbor a Reading"
        let line = random.next() % 2 == 0 ? random.bytes(64) : random.mutated(Data(words.utf8))
        let header = line.filter { $0 != 0 && $0 != 10 && $0 != 13 }
        client.publish(
          Reading.subject, header: random.next() % 3 == 0 ? nil : Array(header),
          random.next() % 2 == 0 ? random.bytes(200) : random.mutated(Data(good.utf8)))
      }
    }
  }

  @Test("a durable message that is no event is never delivered again")
  func durable() async throws {
    let server = try ServerProcess(["--jetstream"])
    let world = EventCentral()
    let bridge = try await NATSBridge.to(server, on: world)
    try await bridge.makeStream("ORDERS", of: [Order.self])
    var options = NATSBridge.DurableOptions()
    // So long that no acknowledgement comes too late, also on a busy machine.
    options.patience = .seconds(5)
    try await bridge.durable(Order.self, stream: "ORDERS", as: "test", options: options)
    let log = Log<Int>()
    let kept = Log<Order>()
    Order.addListener(
      nil,
      { event in
        // The server delivers what is kept again and again.
        if event.number == 2, event.delivery?.attempt ?? 9 < 4 { kept.append(event) }
        log.append(event.number)
      }, executeOn: .listenerThread, on: world)
    let client = try RawClient(server)
    client.publish(Order.subject, Data("{".utf8))
    // A sender that claims to be a delivery is none.
    client.publish(Order.subject, Data(#"{"number": 1, "delivery": {"attempt": 7}}"#.utf8))
    // One that does come again, as often as the others could have.
    client.publish(Order.subject, Data(#"{"number": 2}"#.utf8))
    #expect(await log.entries(atLeast: 5) == [1, 2, 2, 2, 2])
    #expect(bridge.counts.undecodable == 1)
    // It would wait for those that are kept.
    await bridge.drain(within: .milliseconds(100))
    #expect(log.count == 5)
  }

  @Test("requests that are none are not answered")
  func requests() async throws {
    let server = try ServerProcess()
    let world = EventCentral()
    let bridge = try await NATSBridge.to(server, on: world)
    PriceQuery.answer(on: world) { query in Price(cents: query.id) }
    try bridge.answerRequests(PriceQuery.self, with: Price.self)
    try await bridge.settle()
    let client = try RawClient(server)
    client.publish("eventcore.request.tests.price.Price", Data("{".utf8))
    client.publish("eventcore.request.tests.price.Price", Data(#"{"id": 1}"#.utf8))
    #expect(await eventually { bridge.counts.received == 2 })
    #expect(bridge.counts.undecodable == 1)
    await bridge.drain()
  }
  @Test("replies that nobody waits for are passed over, and one that is no answer ends its request alone")
  func replies() async throws {
    let server = try ServerProcess()
    let world = EventCentral()
    let bridge = try await NATSBridge.to(server, on: world)
    let client = try RawClient(server)
    client.subscribe(to: "eventcore.request.tests.price.Price")
    try bridge.forwardRequests(PriceQuery.self, expecting: Price.self, within: .seconds(60))
    let answer = Data(#"{"cents": 666}"#.utf8)
    let first = Task { try await world.request(PriceQuery(id: 1), expecting: Price.self) }
    let subject = try #require(await blocking { client.nextReplySubject() })
    let inbox = subject.prefix { $0 != "." } + "." + subject.split(separator: ".")[1]
    for word in ["x", "-1", "+0", "0x0", "99", "\(Int64.max)", "\(UInt64.max)", "18446744073709551616"] {
      client.publish("\(inbox).\(word)", answer)
    }
    client.publish(subject, Data("{".utf8))
    // By now nobody waits for this one either.
    client.publish(subject, answer)
    client.flush()
    await #expect(throws: DecodingError.self) { try await first.value }
    let second = Task { try await world.request(PriceQuery(id: 2), expecting: Price.self) }
    client.publish(try #require(await blocking { client.nextReplySubject() }), Data(#"{"cents": 2}"#.utf8))
    client.flush()
    #expect(try await second.value == Price(cents: 2))
    #expect(await bridge.drain())
  }
}
