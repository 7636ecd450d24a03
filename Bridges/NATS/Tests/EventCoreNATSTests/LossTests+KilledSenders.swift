// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// Does something when the outbox comes to it: what was before it has just been given to the client.
private struct Last: RemoteEvent {
  static let subject = "tests.last"
  static let act = Locked<@Sendable () -> Void>({})

  init() {}
  init(from decoder: any Decoder) {}
  func encode(to encoder: any Encoder) throws {
    Self.act.withLock { $0 }()
    var container = encoder.singleValueContainer()
    try container.encode(0)
  }
}

/// Ends the process as if its machine had lost its power, if a bridge has counted so many events as sent.
private func die(_ bridge: NATSBridge, after count: Int) {
  if bridge.counts.sent == count { kill(getpid(), SIGKILL) }
  exit(EXIT_FAILURE)
}

/// A server that tells what it has got of each client that has gone, which it had passed on before.
private struct Bookkeeper {
  let server: ServerProcess
  private let raw: RawClient
  private struct Departure: Decodable {
    struct Messages: Decodable { let msgs: Int }
    let sent: Messages
  }

  init() throws {
    server = try ServerProcess(
      configuration: """
        accounts { A { users: [ { user: a, password: b } ] }, SYS { users: [ { user: s, password: t } ] } }
        system_account: SYS, no_auth_user: a
        """)
    raw = try RawClient(server, user: "s", password: "t")
    raw.subscribe(to: "$SYS.ACCOUNT.A.DISCONNECT")
  }

  /// How many messages the client has sent that goes next.
  func nextCount() throws -> Int {
    try JSONDecoder().decode(Departure.self, from: raw.nextBody() ?? Data()).sent.msgs
  }
}

/// The sender's process is killed, as when its machine loses its power.
extension LossTests {
  @Test("the sender's process is killed: what waits in its outbox is lost, what was stored or read is not")
  func killedSender() async throws {
    let server = try ServerProcess(["--jetstream"])
    let there = EventCentral()
    let receiver = try await NATSBridge.to(server, on: there)
    try await receiver.makeStream("ORDERS", of: [Order.self])
    let log = Log<Int>()
    Reading.addListener(nil, { event in log.append(-event.number) }, executeOn: .listenerThread, on: there)
    Order.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: there)
    try receiver.subscribe(Reading.self)
    try await receiver.settle()
    await #expect(processExitsWith: .signal(SIGKILL)) { [url = server.url as String] in
      let here = EventCentral()
      let sender = try await NATSBridge(.url(url), on: here)
      sender.publish(Reading.self)
      for number in 1...50 { Reading(number: number).queue(on: here) }
      guard await eventually({ sender.counts.sent == 50 }) else { return }
      // The server has read what was sent.
      try await sender.settle()
      try await sender.publish(Order.self, stream: "ORDERS")
      for number in 1...10_000 { Order(number: number).queue(on: here) }
      guard await eventually({ sender.counts.sent >= 60 }) else { return }
      kill(getpid(), SIGKILL)
    }
    #expect(await log.entries(atLeast: 50) == (1...50).map { -$0 })
    try await receiver.durable(Order.self, stream: "ORDERS", as: "test")
    let stored = await log.entries(atLeast: 60).dropFirst(50)
    await receiver.drain()
    #expect(stored.count >= 10)
    let orders = Array(log.entries.dropFirst(50))
    #expect(orders == Array(1...orders.count), "Those that were stored, and no gap among them.")
    #expect(orders.count < 10_000)
  }

  @Test(
    "close: what was counted as sent reaches the server, also what the client has not written yet",
    arguments: [nil, "workers"])
  func closedInLastMillisecond(group: String?) async throws {
    let books = try Bookkeeper()
    let log = Log<Int>()
    let receivers = try await receivers(books.server.url, group, log)
    for round in 0..<10 {
      let here = EventCentral()
      let sender = try await NATSBridge.to(books.server, on: here)
      sender.publish(Reading.self)
      sender.publish(Last.self)
      await Held.hold(sender)
      for number in 0..<3 { Reading(number: 3 * round + number).queue(on: here) }
      Last.act.withLock { $0 = { sender.close() } }
      Last().queue(on: here)
      for _ in 0..<10 { Reading(number: -1).queue(on: here) }
      Held.gate.signal()
      #expect(try books.nextCount() == 4, "round \(round)")
      #expect(await eventually { sender.counts.unsent == 11 })
      #expect(sender.counts.sent == 4)
      Last.act.withLock { $0 = {} }
    }
    #expect(await log.entries(atLeast: 30).sorted() == Array(0..<30))
    for receiver in receivers { await receiver.drain() }
    #expect(log.count == 30)
  }

  @Test(
    "the sender's process is killed: the last events that counted as sent may be lost, and all that waits is",
    arguments: [nil, "workers"])
  func lastMillisecond(group: String?) async throws {
    let books = try Bookkeeper()
    let log = Log<Int>()
    let receivers = try await receivers(books.server.url, group, log)
    var (expected, isLost) = ([Int](), false)
    // The client writes when its millisecond is over: also before the kill, on a machine that has other work.
    for round in 0..<50 where !isLost {
      let first = round * 1000
      await #expect(processExitsWith: .signal(SIGKILL)) { [url = books.server.url as String, first = first as Int] in
        let here = EventCentral()
        let sender = try await NATSBridge.to(url, on: here)
        sender.publish(Reading.self)
        sender.publish(Last.self)
        for number in first..<(first + 20) { Reading(number: number).queue(on: here) }
        guard await eventually({ sender.counts.sent == 20 }) else { return }
        // The server has read these.
        try await sender.settle()
        await Held.hold(sender)
        for number in (first + 20)..<(first + 23) { Reading(number: number).queue(on: here) }
        Last.act.withLock { $0 = { die(sender, after: 24) } }
        Last().queue(on: here)
        for number in (first + 23)..<(first + 50) { Reading(number: number).queue(on: here) }
        Held.gate.signal()
        _ = await eventually { false }
      }
      let count = try books.nextCount()
      #expect((20...24).contains(count))
      isLost = count < 24
      // The one that was held is a message as well, and was sent before the last three.
      expected += first..<(first + max(20, count - 1))
      #expect(await log.entries(atLeast: expected.count).sorted() == expected)
    }
    #expect(isLost)
    for receiver in receivers { await receiver.drain() }
    #expect(log.count == expected.count)
  }

  @Test("a child's process is killed: what it had sent its parent is handled once, the rest is lost with the process")
  func killedChild() async throws {
    let books = try Bookkeeper()
    let (asked, gate) = (Log<String>(), DispatchSemaphore(value: 0))
    let plant = try await Machine(books.server) { event in
      asked.append("\(event)")
      if case Incident.leak = event { gate.wait() }
      return .handled
    }
    try await plant.answer(as: "plant")
    var (expected, isLost) = ([String](), false)
    for round in 0..<50 where !isLost {
      let first = round * 1000
      await #expect(processExitsWith: .signal(SIGKILL)) { [url = books.server.url as String, first = first as Int] in
        let hall = try await Machine(at: url)
        let (bridge, here) = (hall.bridge, hall.bridge.central)
        try await hall.forward(to: "plant")
        bridge.publish(Last.self)
        await hall.emit(Incident.smoke(first))
        guard await hall.log.entries(atLeast: 1) == ["smoke(\(first)) handled"] else { return }
        // The parent has it, and its answer comes when nobody is there.
        await hall.emit(Incident.leak(pipe: "\(first)"))
        guard await eventually({ bridge.counts.sent == 2 }) else { return }
        try await bridge.settle()
        await Held.hold(bridge)
        await hall.emit(Incident.smoke(first + 1))
        Last.act.withLock { $0 = { die(bridge, after: 4) } }
        Last().queue(on: here)
        for number in 2..<20 { await hall.emit(Incident.smoke(first + number)) }
        Held.gate.signal()
        _ = await eventually { false }
      }
      gate.signal()
      let count = try books.nextCount()
      #expect((2...4).contains(count))
      isLost = count < 4
      expected += ["smoke(\(first))", #"leak(pipe: "\#(first)")"#] + (isLost ? [] : ["smoke(\(first + 1))"])
      #expect(await asked.entries(atLeast: expected.count) == expected)
    }
    #expect(isLost)
    // The parent goes on, for others.
    let other = try await Machine(books.server)
    try await other.forward(to: "plant")
    await other.emit(Incident.smoke(-1))
    #expect(await other.log.entries(atLeast: 1) == ["smoke(-1) handled"])
    #expect(asked.entries == expected + ["smoke(-1)"])
    #expect(await other.bridge.drain())
    await plant.bridge.drain()
  }
}
