// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

struct Order: DurableEvent, Equatable {
  static let subject = "tests.order"
  var number: Int
  var delivery: NATSDelivery?
}

/// The cells of the table in BeyondOneMachine.md: what may be lost or doubled in which mode. `LossTable` says which
/// test holds which.
@Suite struct LossTests {
  /// Bridges that log what they get: one, or two of a group.
  func receivers(_ url: String, _ group: String?, _ log: Log<Int>) async throws -> [NATSBridge] {
    var bridges: [NATSBridge] = []
    for _ in 0..<(group == nil ? 1 : 2) {
      let world = EventCentral()
      Reading.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: world)
      let bridge = try await NATSBridge.to(url, on: world)
      if let group {
        try bridge.subscribe(Reading.self, group: group)
      } else {
        try bridge.subscribe(Reading.self)
      }
      try await bridge.settle()
      bridges.append(bridge)
    }
    return bridges
  }

  // MARK: The server is away when an event is dispatched

  @Test("server away, outbox not full: nothing is lost or doubled", arguments: cores)
  func outboxHolds(core: EventCentral.Core) async throws {
    let server = try ServerProcess(["--jetstream"])
    let (here, there) = (EventCentral(core: core), EventCentral(core: core))
    let sender = try await NATSBridge.to(server, on: here)
    try await sender.makeStream("ORDERS", of: [Order.self])
    // Plain: the stream only keeps what comes, so that the receiver need not be there first.
    sender.publish(Order.self)
    server.stop()
    #expect(await eventually { !sender.isConnected })
    for number in 0..<1000 { #expect(Order(number: number).queue(on: here) == 1) }
    #expect(sender.counts.sent <= 1)
    try server.restart()
    #expect(await sender.drain())
    #expect(sender.counts.sent == 1000)
    let receiver = try await NATSBridge.to(server, on: there)
    let log = Log<Int>()
    Order.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: there)
    try await receiver.durable(Order.self, stream: "ORDERS", as: "test")
    #expect(await log.entries(atLeast: 1000) == Array(0..<1000))
    await receiver.drain()
    #expect(log.count == 1000)
  }

  @Test("server away, outbox full: what is refused or dropped is counted, and the rest arrives", arguments: cores)
  func outboxFull(core: EventCentral.Core) async throws {
    for policy in [EventOverflowPolicy.refuse, .dropNewest, .dropOldest, .block(upTo: .milliseconds(1))] {
      let server = try ServerProcess()
      let world = EventCentral(core: core)
      let sender = try await NATSBridge.to(server, on: world) { $0.outbox = .bounded(10, whenFull: policy) }
      sender.publish(Reading.self)
      server.stop()
      #expect(await eventually { !sender.isConnected })
      let accepted = (0..<30).reduce(0) { $0 + Reading(number: $1).queue(on: world) }
      try server.restart()
      #expect(await sender.drain())
      let counts = sender.counts
      #expect(counts.outbox.accepted == UInt64(accepted))
      #expect(counts.outbox.accepted + counts.outbox.refused == 30, "\(policy)")
      #expect(UInt64(counts.sent) + counts.outbox.dropped == counts.outbox.accepted, "\(policy)")
      // Ten wait, and one may be with the thread that sends.
      #expect((10...11).contains(counts.sent), "\(policy)")
    }
  }

  @Test("server away for good: what waits at the end of a drain is counted as unsent")
  func drainWithoutServer() async throws {
    let server = try ServerProcess()
    let world = EventCentral()
    let sender = try await NATSBridge.to(server, on: world)
    sender.publish(Reading.self)
    server.stop()
    #expect(await eventually { !sender.isConnected })
    for number in 0..<100 { Reading(number: number).queue(on: world) }
    #expect(await !sender.drain(within: .milliseconds(100)))
    #expect(sender.counts.unsent == 100)
    #expect(sender.counts.sent == 0)
  }

  @Test("a bridge that was made before its server sends what waited, and tells")
  func waitsForServer() async throws {
    let server = try ServerProcess()
    server.stop()
    let world = EventCentral()
    let log = Log<NATSStatus.Change>()
    NATSStatus.addListener(nil, { status in log.append(status.change) }, executeOn: .listenerThread, on: world)
    let sender = try await NATSBridge.to(server, on: world) { $0.waitsForServer = true }
    sender.publish(Reading.self)
    let elsewhere = EventCentral()
    let receiver = try await NATSBridge.to(server, on: elsewhere) { $0.waitsForServer = true }
    try receiver.subscribe(Reading.self)
    let heard = Log<Int>()
    Reading.addListener(nil, { event in heard.append(event.number) }, executeOn: .listenerThread, on: elsewhere)
    for number in 0..<10 { Reading(number: number).queue(on: world) }
    #expect(!sender.isConnected)
    try server.restart()
    #expect(await eventually { sender.counts.sent == 10 && receiver.isConnected })
    // What was sent before the receiver was there is lost, and what comes now is not.
    try await receiver.settle()
    Reading(number: 10).queue(on: world)
    #expect(await eventually { heard.entries.last == 10 })
    await receiver.drain()
    #expect(await sender.drain())
    #expect(sender.counts.sent == 11)
    #expect(await log.entries(atLeast: 2) == [.connected, .closed])
  }

  // MARK: The connection breaks while events are under way

  @Test("plain, the server killed again and again: some may be lost, none doubled, all accounted for", arguments: cores)
  func plainUnderKills(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(core: core), EventCentral(core: core))
    let changes = Log<NATSStatus.Change>()
    NATSStatus.addListener(nil, { status in changes.append(status.change) }, executeOn: .listenerThread, on: here)
    let sender = try await NATSBridge.to(server, on: here)
    let receiver = try await NATSBridge.to(server, on: there)
    let log = Log<Int>()
    Reading.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: there)
    try receiver.subscribe(Reading.self)
    try await receiver.settle()
    sender.publish(Reading.self)
    var (number, accepted) = (0, 0)
    for round in 0..<(stressFactor == 1 ? 3 : 60) {
      let end = ContinuousClock.now + .milliseconds(stressFactor == 1 ? 100 : 900)
      while ContinuousClock.now < end {
        // As fast as they arrive, so that they are under way when the server goes.
        let arrived = log.count
        for _ in 0..<50 {
          accepted += Reading(number: number).queue(on: here)
          number += 1
        }
        _ = await log.entries(atLeast: arrived + 1)
      }
      server.stop()
      #expect(await eventually { !sender.isConnected && !receiver.isConnected }, "round \(round)")
      try server.restart()
      #expect(await eventually { sender.isConnected && receiver.isConnected }, "round \(round)")
    }
    #expect(await sender.drain())
    await receiver.drain()
    let counts = sender.counts
    #expect(counts.sent == accepted)
    #expect(accepted + Int(counts.outbox.refused) == number)
    let arrived = await log.entries(atLeast: receiver.counts.dispatched)
    #expect(arrived == arrived.sorted())
    #expect(Set(arrived).count == arrived.count, "None is doubled.")
    #expect(arrived.count <= counts.sent)
    #expect(!arrived.isEmpty)
    // The client tells of a connection after it is there.
    #expect(
      await eventually {
        let words = changes.entries
        return words.filter { $0 == .disconnected }.count == words.filter { $0 == .reconnected }.count
      })
  }

  @Test("durable, the server killed again and again: nothing is lost, some may be doubled", arguments: cores)
  func durableUnderKills(core: EventCentral.Core) async throws {
    let server = try ServerProcess(["--jetstream"])
    let (here, there) = (EventCentral(core: core), EventCentral(core: core))
    let sender = try await NATSBridge.to(server, on: here)
    let receiver = try await NATSBridge.to(server, on: there)
    try await sender.makeStream("ORDERS", of: [Order.self])
    let log = Log<Int>()
    Order.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: there)
    var options = NATSBridge.DurableOptions()
    options.patience = .seconds(1)
    try await receiver.durable(Order.self, stream: "ORDERS", as: "test", options: options)
    try await sender.publish(Order.self, stream: "ORDERS")
    var number = 0
    for _ in 0..<(stressFactor == 1 ? 3 : 60) {
      let end = ContinuousClock.now + .milliseconds(stressFactor == 1 ? 100 : 900)
      while ContinuousClock.now < end {
        let arrived = log.count
        for _ in 0..<10 {
          #expect(Order(number: number).queue(on: here) == 1)
          number += 1
        }
        _ = await log.entries(atLeast: arrived + 1)
      }
      server.stop()
      try server.restart()
    }
    #expect(await sender.drain(within: .seconds(60)))
    #expect(sender.counts.sent == number)
    #expect(await eventually { Set(log.entries).count == number })
    #expect(Set(log.entries) == Set(0..<number))
    receiver.close()
  }

  @Test("status events tell of a server that goes and comes back")
  func status() async throws {
    let server = try ServerProcess()
    let world = EventCentral()
    let log = Log<NATSStatus.Change>()
    NATSStatus.addListener(
      nil, { status in if status.bridge == "weather" { log.append(status.change) } }, executeOn: .listenerThread,
      on: world)
    let bridge = try await NATSBridge.to(server, on: world) { $0.name = "weather" }
    for _ in 0..<3 {
      server.stop()
      #expect(await eventually { !bridge.isConnected })
      try server.restart()
      #expect(await eventually { bridge.isConnected })
    }
    bridge.close()
    let expected = Array(repeating: [NATSStatus.Change.disconnected, .reconnected], count: 3).flatMap { $0 } 
    #expect(await eventually { log.entries.last == .closed })
    #expect(Array(log.entries.prefix(6)) == expected)
  }
}
