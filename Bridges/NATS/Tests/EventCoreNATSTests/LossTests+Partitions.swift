// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// A server that neither takes nor gives anything for some time.
extension LossTests {
  /// Waits until the thread of the client that writes has its lock, and will until the server takes something.
  private func hasStalled(_ bridge: NATSBridge) async -> Bool {
    var (sent, since) = (-1, ContinuousClock.now)
    return await eventually {
      let now = bridge.counts.sent
      if now != sent { (sent, since) = (now, ContinuousClock.now) }
      return ContinuousClock.now - since > .milliseconds(200)
    }
  }

  @Test("a partition that is shorter than three heartbeats loses and doubles nothing", arguments: cores)
  func partition(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(core: core), EventCentral(core: core))
    let sender = try await NATSBridge.to(server, on: here)
    let receiver = try await NATSBridge.to(server, on: there)
    let log = Log<Int>()
    Reading.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: there)
    try receiver.subscribe(Reading.self)
    try await receiver.settle()
    sender.publish(Reading.self)
    server.freeze()
    for number in 0..<1000 { #expect(Reading(number: number).queue(on: here) == 1) }
    #expect(await eventually { sender.counts.sent == 1000 })
    #expect(log.count == 0)
    server.thaw()
    #expect(await log.entries(atLeast: 1000) == Array(0..<1000))
    #expect(await sender.drain())
    await receiver.drain()
    #expect(log.count == 1000)
  }

  @Test("a partition that is shorter loses and doubles nothing with a group", arguments: cores)
  func partitionOfGroup(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let here = EventCentral(core: core)
    let sender = try await NATSBridge.to(server, on: here)
    let log = Log<Int>()
    var receivers: [NATSBridge] = []
    for _ in 0..<3 {
      let there = EventCentral(core: core)
      Reading.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: there)
      let receiver = try await NATSBridge.to(server, on: there)
      try receiver.subscribe(Reading.self, group: "workers")
      try await receiver.settle()
      receivers.append(receiver)
    }
    sender.publish(Reading.self)
    server.freeze()
    for number in 0..<1000 { #expect(Reading(number: number).queue(on: here) == 1) }
    #expect(await eventually { sender.counts.sent == 1000 })
    #expect(log.count == 0)
    server.thaw()
    #expect(await log.entries(atLeast: 1000).sorted() == Array(0..<1000))
    #expect(await sender.drain())
    for receiver in receivers { await receiver.drain() }
    #expect(log.count == 1000)
  }

  @Test("a partition that is shorter loses and doubles nothing with a stream: each is stored once", arguments: cores)
  func partitionOfStream(core: EventCentral.Core) async throws {
    let server = try ServerProcess(["--jetstream"])
    let (here, there) = (EventCentral(core: core), EventCentral(core: core))
    let sender = try await NATSBridge.to(server, on: here)
    let receiver = try await NATSBridge.to(server, on: there)
    try await sender.makeStream("ORDERS", of: [Order.self])
    try await sender.publish(Order.self, stream: "ORDERS")
    let log = Log<(number: Int, position: Int)>()
    Order.addListener(
      nil, { log.append(($0.number, $0.delivery?.position ?? 0)) }, executeOn: .listenerThread, on: there)
    try await receiver.durable(Order.self, stream: "ORDERS", as: "test")
    server.freeze()
    for number in 0..<100 { #expect(Order(number: number).queue(on: here) == 1) }
    // Until the first was sent, which then is stored twice in vain: the server answers after more than two seconds.
    #expect(await eventually { sender.counts.outbox.waiting == 99 })
    let frozen = ContinuousClock.now
    #expect(await eventually { ContinuousClock.now > frozen + .milliseconds(2100) })
    #expect(sender.counts.sent == 0)
    server.thaw()
    let arrived = await log.entries(atLeast: 100)
    #expect(arrived.map(\.number) == Array(0..<100))
    #expect(arrived.map(\.position) == Array(1...100), "The stream has each once.")
    #expect(await sender.drain())
    await receiver.drain()
    #expect(log.count == 100)
  }

  @Test("a partition that ends in the third heartbeat loses nothing, also if the network has long been full")
  func partitionOfFullNetwork() async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(), EventCentral())
    let changes = Log<NATSStatus.Change>()
    NATSStatus.addListener(nil, { status in changes.append(status.change) }, executeOn: .listenerThread, on: here)
    let sender = try await NATSBridge.to(server, on: here) { $0.heartbeat = .seconds(4) }
    let receiver = try await NATSBridge.to(server, on: there)
    let log = Log<Int>()
    Reading.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: there)
    try receiver.subscribe(Reading.self)
    try await receiver.settle()
    sender.publish(Reading.self)
    server.freeze()
    let frozen = ContinuousClock.now
    // More than the system keeps of a connection.
    let text = String(repeating: "x", count: 500_000)
    for number in 0..<50 { Reading(number: number, text: text).queue(on: here) }
    #expect(await eventually { ContinuousClock.now > frozen + .milliseconds(9000) })
    #expect(sender.counts.sent < 50)
    server.thaw()
    #expect(await log.entries(atLeast: 50) == Array(0..<50))
    #expect(await sender.drain())
    #expect(!changes.entries.contains(.disconnected))
    await receiver.drain()
  }

  @Test("a partition that is longer counts as a server that is away")
  func longPartition() async throws {
    let server = try ServerProcess()
    let world = EventCentral()
    let sender = try await NATSBridge.to(server, on: world) { $0.heartbeat = .milliseconds(500) }
    sender.publish(Reading.self)
    server.freeze()
    #expect(await eventually { !sender.isConnected })
    for number in 0..<100 { #expect(Reading(number: number).queue(on: world) == 1) }
    server.thaw()
    #expect(await sender.drain())
    #expect(sender.counts.sent == 100)
  }

  @Test("a drain ends about its limit, also while the client writes to a network that takes nothing")
  func drainIntoFullNetwork() async throws {
    let server = try ServerProcess()
    let world = EventCentral()
    // The client gives a write up after a minute.
    let sender = try await NATSBridge.to(server, on: world) { $0.heartbeat = .seconds(20) }
    sender.publish(Reading.self)
    server.freeze()
    let text = String(repeating: "x", count: 500_000)
    for number in 0..<50 { Reading(number: number, text: text).queue(on: world) }
    #expect(await hasStalled(sender))
    let begin = ContinuousClock.now
    #expect(await !sender.drain(within: .milliseconds(100)))
    #expect(ContinuousClock.now - begin < .seconds(20))
    server.thaw()
    #expect(await eventually { sender.counts.sent + sender.counts.unsent == 50 })
    #expect(sender.counts.sent < 50)
  }

  @Test("the end of a durable event waits for no network (D5)")
  func endOfEvent() async throws {
    let server = try ServerProcess(["--jetstream"])
    let world = EventCentral()
    let bridge = try await NATSBridge.to(server, on: world)
    try await bridge.makeStream("ORDERS", of: [Order.self])
    let kept = Locked<[Order]>([])
    let log = Log<Int>()
    Order.addListener(
      nil,
      { event in
        guard event.delivery != nil else { return }
        kept.withLock { $0.append(event) }
        log.append(event.number)
      }, executeOn: .listenerThread, on: world)
    try await bridge.durable(Order.self, stream: "ORDERS", as: "test")
    try await bridge.publish(Order.self, stream: "ORDERS")
    bridge.publish(Reading.self)
    Order(number: 1).queue(on: world)
    #expect(await log.entries(atLeast: 1) == [1])
    server.freeze()
    let text = String(repeating: "x", count: 500_000)
    for number in 0..<50 { Reading(number: number, text: text).queue(on: world) }
    #expect(await hasStalled(bridge))
    let begin = ContinuousClock.now
    kept.withLock { $0 = [] }
    #expect(ContinuousClock.now - begin < .seconds(3))
    server.thaw()
    #expect(await bridge.drain())
  }
}
