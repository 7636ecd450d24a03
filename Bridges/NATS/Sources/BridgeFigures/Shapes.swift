// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
import EventCore
import EventCoreNATS
import Foundation
import Synchronization

struct Packed: RemoteEvent {
  static let subject = "figures.packed"
  var number: Int
  var value = 0.5
  static var coding: RemoteCoding<Packed> {
    RemoteCoding(
      encode: { event in withUnsafeBytes(of: (event.number, event.value)) { Data($0) } },
      decode: { bytes, _ in
        guard bytes.count == 16 else { throw CocoaError(.coderInvalidValue) }
        return bytes.withUnsafeBytes {
          Packed(
            number: $0.loadUnaligned(as: Int.self), value: $0.loadUnaligned(fromByteOffset: 8, as: Double.self))
        }
      })
  }
  init(number: Int) { self.number = number }
  private init(number: Int, value: Double) { (self.number, self.value) = (number, value) }
}

struct Plain: RemoteEvent {
  static let subject = "figures.plain"
  var number: Int
  var value = 0.5
  init(number: Int) { self.number = number }
}

struct Compact: RemoteEvent {
  static let subject = "figures.compact"
  static var coding: RemoteCoding<Compact> { .cbor }
  var number: Int
  var value = 0.5
  init(number: Int) { self.number = number }
  private enum CodingKeys: Int, CodingKey { case number = 1, value }
}

protocol Numbered: RemoteEvent { init(number: Int) }
extension Packed: Numbered {}
extension Plain: Numbered {}
extension Compact: Numbered {}

protocol Asked: RemoteEvent {
  static var answerCoding: RemoteCoding<Reply> { get }
  init(number: Int)
  var number: Int { get }
}
struct Question: Asked {
  static let subject = "figures.question"
  static var answerCoding: RemoteCoding<Reply> { .json }
  var number: Int
}
struct PackedQuestion: Asked {
  static let subject = "figures.packed-question"
  static var coding: RemoteCoding<PackedQuestion> { packedNumber({ $0.number }, { PackedQuestion(number: $0) }) }
  static var answerCoding: RemoteCoding<Reply> { packedNumber({ $0.number }, { Reply(number: $0) }) }
  var number: Int
}
struct Reply: Codable, Sendable { var number: Int }

/// The bytes of one number.
func packedNumber<Value>(
  _ number: @escaping @Sendable (Value) -> Int, _ make: @escaping @Sendable (Int) -> Value
) -> RemoteCoding<Value> {
  RemoteCoding(
    encode: { value in withUnsafeBytes(of: number(value)) { Data($0) } },
    decode: { bytes, _ in
      guard bytes.count == 8 else { throw CocoaError(.coderInvalidValue) }
      return make(bytes.withUnsafeBytes { $0.loadUnaligned(as: Int.self) })
    })
}

final class Count: Sendable {
  let value = Atomic<Int>(0)
  func wait(for count: Int) throws {
    let deadline = Date(timeIntervalSinceNow: 120)
    while value.load(ordering: .relaxed) < count {
      guard Date() < deadline else { throw CocoaError(.userCancelled) }
      usleep(200)
    }
  }
}

func rate(_ count: Int, _ body: () async throws -> Void) async rethrows -> Double {
  let begin = ContinuousClock.now
  try await body()
  return Double(count) / ((ContinuousClock.now - begin) / .seconds(1))
}

// MARK: The client in C

final class Bare: @unchecked Sendable {
  // The connection is written by the initialiser alone, and any thread may use it.
  var connection: OpaquePointer?
  init(_ url: String, atOnce: Bool = false) {
    var options: OpaquePointer?
    natsOptions_Create(&options)
    natsOptions_SetURL(options, url)
    natsOptions_SetMaxPendingMsgs(options, 2_000_000)
    natsOptions_SetSendAsap(options, atOnce)
    precondition(natsConnection_Connect(&connection, options) == NATS_OK, "There is no server at \(url).")
    natsOptions_Destroy(options)
  }
  deinit { natsConnection_Destroy(connection) }
}

func bareThroughput(_ url: String, _ count: Int, withHeader: Bool) throws -> Double {
  let (sender, receiver) = (Bare(url), Bare(url))
  let counted = Count()
  var subscription: OpaquePointer?
  natsConnection_Subscribe(
    &subscription, receiver.connection, "figures.bare",
    { _, _, message, context in
      let counted = Unmanaged<Count>.fromOpaque(context!).takeUnretainedValue()
      counted.value.store(counted.value.load(ordering: .relaxed) + 1, ordering: .relaxed)
      var line: UnsafePointer<CChar>?
      natsMsgHeader_Get(message, "EventCore", &line)
      natsMsg_Destroy(message)
    }, Unmanaged.passUnretained(counted).toOpaque())
  natsConnection_Flush(receiver.connection)
  defer { natsSubscription_Destroy(subscription) }
  let begin = ContinuousClock.now
  var body = (0, 0.5)
  for number in 0..<count {
    body.0 = number
    withUnsafeBytes(of: body) { bytes in
      guard withHeader else {
        natsConnection_Publish(sender.connection, "figures.bare", bytes.baseAddress, 16)
        return
      }
      var message: OpaquePointer?
      natsMsg_Create(&message, "figures.bare", nil, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), 16)
      natsMsgHeader_Set(message, "EventCore", "queue normal 1764060000000000000 1 8c1f0a6e5b2d4c37 Packed")
      natsConnection_PublishMsg(sender.connection, message)
      natsMsg_Destroy(message)
    }
  }
  natsConnection_Flush(sender.connection)
  try counted.wait(for: count)
  return Double(count) / ((ContinuousClock.now - begin) / .seconds(1))
}

func bareRoundTrips(_ url: String, _ count: Int, atOnce: Bool) throws -> (p50: Double, p99: Double) {
  let (asking, answering) = (Bare(url, atOnce: atOnce), Bare(url, atOnce: atOnce))
  var subscription: OpaquePointer?
  natsConnection_Subscribe(
    &subscription, answering.connection, "figures.bare.question",
    { connection, _, message, _ in
      natsConnection_Publish(
        connection, natsMsg_GetReply(message), natsMsg_GetData(message), natsMsg_GetDataLength(message))
      natsMsg_Destroy(message)
    }, nil)
  natsConnection_Flush(answering.connection)
  defer { natsSubscription_Destroy(subscription) }
  var times: [Double] = []
  for _ in 0..<count {
    let begin = ContinuousClock.now
    var reply: OpaquePointer?
    natsConnection_RequestString(&reply, asking.connection, "figures.bare.question", #"{"number":1}"#, 5000)
    natsMsg_Destroy(reply)
    times.append((ContinuousClock.now - begin) / .microseconds(1))
  }
  return percentiles(times)
}

func percentiles(_ times: [Double]) -> (p50: Double, p99: Double) {
  let sorted = times.sorted()
  return (sorted[sorted.count / 2], sorted[sorted.count * 99 / 100])
}

// MARK: The bridge

func connect(_ url: String, _ world: EventCentral, atOnce: Bool = false) async throws -> NATSBridge {
  var options = NATSBridge.Options()
  options.outbox = .unbounded
  options.inbox = 2_000_000
  options.sendsAtOnce = atOnce
  return try await NATSBridge(.url(url), on: world, options: options)
}

func bridgeThroughput<E: Numbered>(
  _ url: String, _ count: Int, _ type: E.Type, batch: Int = 1, atOnce: Bool = false
) async throws -> Double {
  let (here, there) = (EventCentral(), EventCentral())
  let (sender, receiver) = (try await connect(url, here, atOnce: atOnce), try await connect(url, there))
  let counted = Count()
  let thread = EventThread(on: there)
  thread.addEventCallback { (_: E) in
    counted.value.store(counted.value.load(ordering: .relaxed) + 1, ordering: .relaxed)
  }
  try receiver.subscribe(E.self)
  try await receiver.settle()
  sender.publish(E.self, batch: batch)
  let result = try await rate(count) {
    for number in 0..<count { E(number: number).queue(on: here) }
    try counted.wait(for: count)
  }
  sender.close()
  receiver.close()
  await thread.drain()
  return result
}

func bridgeRoundTrips<Query: Asked>(
  _ url: String, _ count: Int, _ query: Query.Type, atOnce: Bool
) async throws -> (p50: Double, p99: Double) {
  let (here, there) = (EventCentral(), EventCentral())
  let asking = try await connect(url, here, atOnce: atOnce)
  let answering = try await connect(url, there, atOnce: atOnce)
  Query.answer(on: there) { question in Reply(number: question.number) }
  try answering.answerRequests(Query.self, with: Reply.self, coding: Query.answerCoding)
  try await answering.settle()
  try asking.forwardRequests(Query.self, expecting: Reply.self, coding: Query.answerCoding)
  var times: [Double] = []
  for number in 0..<count {
    let begin = ContinuousClock.now
    _ = try await here.request(Query(number: number), expecting: Reply.self)
    times.append((ContinuousClock.now - begin) / .microseconds(1))
  }
  asking.close()
  answering.close()
  return percentiles(times)
}

/// Without a bridge, in one central: what the threads and tasks of a request take.
func localRoundTrips(_ count: Int) async throws -> (p50: Double, p99: Double) {
  let world = EventCentral()
  Question.answer(on: world) { question in Reply(number: question.number) }
  var times: [Double] = []
  for number in 0..<count {
    let begin = ContinuousClock.now
    _ = try await world.request(Question(number: number), expecting: Reply.self)
    times.append((ContinuousClock.now - begin) / .microseconds(1))
  }
  return percentiles(times)
}

func manyBridges(_ url: String, _ bridges: Int, _ count: Int) async throws -> Double {
  let there = EventCentral()
  let receiver = try await connect(url, there)
  let counted = Count()
  let thread = EventThread(on: there)
  thread.addEventCallback { (_: Plain) in
    counted.value.store(counted.value.load(ordering: .relaxed) + 1, ordering: .relaxed)
  }
  try receiver.subscribe(Plain.self)
  try await receiver.settle()
  var senders: [(EventCentral, NATSBridge)] = []
  for _ in 0..<bridges {
    let world = EventCentral()
    let bridge = try await connect(url, world)
    bridge.publish(Plain.self)
    senders.append((world, bridge))
  }
  let result = try await rate(count / bridges * bridges) {
    for number in 0..<count / bridges { for sender in senders { Plain(number: number).queue(on: sender.0) } }
    try counted.wait(for: count / bridges * bridges)
  }
  for sender in senders { sender.1.close() }
  receiver.close()
  await thread.drain()
  return result
}

func manySubjects(_ url: String, _ subjects: Int, _ count: Int) async throws -> Double {
  let there = EventCentral()
  let receiver = try await connect(url, there)
  let counted = Count()
  let thread = EventThread(on: there)
  thread.addEventCallback { (_: Plain) in
    counted.value.store(counted.value.load(ordering: .relaxed) + 1, ordering: .relaxed)
  }
  try receiver.subscribe(Plain.self, to: "figures.many.*")
  try await receiver.settle()
  let sender = Bare(url)
  let result = try await rate(count) {
    for number in 0..<count {
      natsConnection_PublishString(sender.connection, "figures.many.\(number % subjects)", #"{"number":1,"value":0.5}"#)
    }
    natsConnection_Flush(sender.connection)
    try counted.wait(for: count)
  }
  receiver.close()
  await thread.drain()
  return result
}

/// Of 50 bridges, with a publication and a subscription each.
func bridgeMemory(_ url: String) async throws -> Double {
  func resident() -> Double {
    let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
    return (text.split(separator: " ").dropFirst().first.flatMap { Double($0) } ?? 0) * 4
  }
  let before = resident()
  var bridges: [NATSBridge] = []
  for _ in 0..<50 {
    let bridge = try await NATSBridge(.url(url), on: EventCentral())
    bridge.publish(Plain.self)
    try bridge.subscribe(Plain.self)
    bridges.append(bridge)
  }
  let after = resident()
  for bridge in bridges { bridge.close() }
  return (after - before) / 50
}

struct Kept: DurableEvent {
  static let subject = "figures.kept"
  var number: Int
  var delivery: NATSDelivery?
}

func storedThroughput(_ url: String, _ count: Int) async throws -> (stored: Double, handled: Double) {
  let (here, there) = (EventCentral(), EventCentral())
  let (sender, receiver) = (try await connect(url, here), try await connect(url, there))
  try await sender.makeStream("FIGURES", of: [Kept.self])
  try await sender.publish(Kept.self, stream: "FIGURES")
  let counted = Count()
  let thread = EventThread(on: there)
  thread.addEventCallback { (_: Kept) in
    counted.value.store(counted.value.load(ordering: .relaxed) + 1, ordering: .relaxed)
  }
  try await receiver.durable(Kept.self, stream: "FIGURES", as: "figures")
  let begin = ContinuousClock.now
  for number in 0..<count { Kept(number: number).queue(on: here) }
  while sender.counts.sent < count { usleep(200) }
  let stored = Double(count) / ((ContinuousClock.now - begin) / .seconds(1))
  try counted.wait(for: count)
  let handled = Double(count) / ((ContinuousClock.now - begin) / .seconds(1))
  sender.close()
  receiver.close()
  await thread.drain()
  return (stored, handled)
}
