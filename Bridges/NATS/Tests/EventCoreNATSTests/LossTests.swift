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

/// Each cell of the table in BeyondOneMachine.md: what may be lost or doubled in which mode.
@Suite struct LossTests {
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

  // MARK: The sender ends

  @Test("close: what waits in the outbox is lost and counted, what a stream has stored is not", arguments: cores)
  func close(core: EventCentral.Core) async throws {
    let server = try ServerProcess(["--jetstream"])
    let (here, there) = (EventCentral(core: core), EventCentral(core: core))
    let sender = try await NATSBridge.to(server, on: here)
    try await sender.makeStream("ORDERS", of: [Order.self])
    try await sender.publish(Order.self, stream: "ORDERS")
    sender.publish(Reading.self)
    for number in 0..<10 { Order(number: number).queue(on: here) }
    #expect(await eventually { sender.counts.sent == 10 })
    server.stop()
    #expect(await eventually { !sender.isConnected })
    for number in 10..<110 {
      Order(number: number).queue(on: here)
      Reading(number: number).queue(on: here)
    }
    sender.close()
    #expect(Reading(number: 0).queue(on: here) == 0)
    #expect(sender.counts.sent == 10)
    // Counted when the bridge's thread has freed them.
    #expect(await eventually(within: .seconds(20)) { sender.counts.unsent == 200 })
    #expect(sender.counts.outbox.accepted == 210 && sender.counts.outbox.waiting == 0)
    try server.restart()
    let receiver = try await NATSBridge.to(server, on: there) { $0.waitsForServer = true }
    #expect(await eventually { receiver.isConnected })
    let log = Log<Int>()
    Order.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: there)
    Reading.addListener(nil, { event in log.append(-event.number) }, executeOn: .listenerThread, on: there)
    try receiver.subscribe(Reading.self)
    try await receiver.durable(Order.self, stream: "ORDERS", as: "test")
    #expect(await log.entries(atLeast: 10) == Array(0..<10))
    await receiver.drain()
    #expect(log.count == 10)
  }

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

  // MARK: The receiver is away, or ends

  @Test("receiver away: plain events are lost, durable ones wait")
  func receiverAway() async throws {
    let server = try ServerProcess(["--jetstream"])
    let (here, there) = (EventCentral(), EventCentral())
    let sender = try await NATSBridge.to(server, on: here)
    try await sender.makeStream("ORDERS", of: [Order.self])
    try await sender.publish(Order.self, stream: "ORDERS")
    sender.publish(Reading.self)
    let log = Log<Int>()
    Reading.addListener(nil, { event in log.append(-event.number) }, executeOn: .listenerThread, on: there)
    Order.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: there)
    for number in 1...50 {
      Order(number: number).queue(on: here)
      Reading(number: number).queue(on: here)
    }
    #expect(await sender.drain())
    let receiver = try await NATSBridge.to(server, on: there)
    try receiver.subscribe(Reading.self)
    try await receiver.durable(Order.self, stream: "ORDERS", as: "test")
    #expect(await log.entries(atLeast: 50) == Array(1...50))
    await receiver.drain()
    #expect(log.count == 50)
  }

  @Test("a durable event that is not handled goes to another bridge: at least once", arguments: cores)
  func receiverEnds(core: EventCentral.Core) async throws {
    let server = try ServerProcess(["--jetstream"])
    let here = EventCentral(core: core)
    let sender = try await NATSBridge.to(server, on: here)
    try await sender.makeStream("ORDERS", of: [Order.self])
    try await sender.publish(Order.self, stream: "ORDERS")
    var options = NATSBridge.DurableOptions()
    options.patience = .milliseconds(200)
    // The first keeps every event, and ends with them.
    let first = EventCentral(core: core)
    let kept = Log<Order>()
    Order.addListener(nil, { event in kept.append(event) }, executeOn: .listenerThread, on: first)
    let ending = try await NATSBridge.to(server, on: first)
    try await ending.durable(Order.self, stream: "ORDERS", as: "test", options: options)
    for number in 0..<20 { Order(number: number).queue(on: here) }
    #expect(await kept.entries(atLeast: 20).map(\.delivery?.attempt) .contains(1))
    ending.close()
    let second = EventCentral(core: core)
    let log = Log<Int>()
    Order.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: second)
    let next = try await NATSBridge.to(server, on: second)
    try await next.durable(Order.self, stream: "ORDERS", as: "test")
    #expect(await eventually { Set(log.entries) == Set(0..<20) })
    #expect(await sender.drain())
    await next.drain()
  }

  @Test("a durable event that a listener keeps does not keep the central on which that listens (D9)")
  func kept() async throws {
    let server = try ServerProcess(["--jetstream"])
    let here = EventCentral()
    let sender = try await NATSBridge.to(server, on: here)
    try await sender.makeStream("ORDERS", of: [Order.self])
    try await sender.publish(Order.self, stream: "ORDERS")
    Order(number: 1).queue(on: here)
    #expect(await sender.drain())
    weak var central: EventCentral?
    do {
      let there = EventCentral()
      central = there
      let kept = Log<Order>()
      Order.addListener(nil, { event in kept.append(event) }, executeOn: .listenerThread, on: there)
      let receiver = try await NATSBridge.to(server, on: there)
      try await receiver.durable(Order.self, stream: "ORDERS", as: "test")
      #expect(await kept.entries(atLeast: 1).count == 1)
      receiver.close()
    }
    #expect(await eventually(within: .seconds(20)) { central == nil })
  }

  @Test("durable: what nobody takes, or a handler gives back, comes again; what was handled does not")
  func givenBack() async throws {
    let server = try ServerProcess(["--jetstream"])
    let (here, there) = (EventCentral(), EventCentral())
    let sender = try await NATSBridge.to(server, on: here)
    let receiver = try await NATSBridge.to(server, on: there)
    try await sender.makeStream("ORDERS", of: [Order.self])
    try await sender.makeStream("ORDERS", of: [Order.self])
    try await sender.publish(Order.self, stream: "ORDERS")
    var options = NATSBridge.DurableOptions()
    options.delay = .milliseconds(5)
    try await receiver.durable(Order.self, stream: "ORDERS", as: "test", options: options)
    Order(number: 1).queue(on: here)
    #expect(await eventually { receiver.counts.unheard >= 2 })
    let log = Log<Int>()
    Order.addListener(
      nil,
      { event in
        guard let delivery = event.delivery else { return }
        log.append(delivery.attempt)
        if log.count < 3 { delivery.giveBack() }
      }, executeOn: .listenerThread, on: there)
    let attempts = await log.entries(atLeast: 3)
    #expect(attempts.count == 3)
    #expect(attempts == [attempts[0], attempts[0] + 1, attempts[0] + 2])
    #expect(await sender.drain())
    await receiver.drain()
    #expect(log.count == 3)
  }

  /// Waits until the thread of the client that writes has its lock, and will until the server takes something.
  private func hasStalled(_ bridge: NATSBridge) async -> Bool {
    var (sent, since) = (-1, ContinuousClock.now)
    return await eventually {
      let now = bridge.counts.sent
      if now != sent { (sent, since) = (now, ContinuousClock.now) }
      return ContinuousClock.now - since > .milliseconds(200)
    }
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

  @Test("what was handled before a drain or a close does not come again", arguments: [false, true])
  func lastAnswers(drains: Bool) async throws {
    let server = try ServerProcess(["--jetstream"])
    let (here, there) = (EventCentral(), EventCentral())
    let sender = try await NATSBridge.to(server, on: here)
    try await sender.makeStream("ORDERS", of: [Order.self])
    try await sender.publish(Order.self, stream: "ORDERS")
    var options = NATSBridge.DurableOptions()
    options.patience = .milliseconds(200)
    let receiver = try await NATSBridge.to(server, on: there)
    let thread = EventThread(on: there)
    let log = Log<Int>()
    thread.addEventCallback { (event: Order) in log.append(event.number) }
    try await receiver.durable(Order.self, stream: "ORDERS", as: "test", options: options)
    for number in 0..<100 { Order(number: number).queue(on: here) }
    // At least once: the server sends one again whose answer takes longer than its patience. In order, apart from that.
    #expect(await eventually { Set(log.entries).count == 100 })
    var seen: Set<Int> = []
    #expect(log.entries.filter { seen.insert($0).inserted } == Array(0..<100))
    #expect(await sender.drain())
    // The last copies are gone.
    await thread.drain()
    if drains { #expect(await receiver.drain()) } else { receiver.close() }
    let next = EventCentral()
    let again = Log<Int>()
    Order.addListener(nil, { event in again.append(event.number) }, executeOn: .listenerThread, on: next)
    let other = try await NATSBridge.to(server, on: next)
    try await other.durable(Order.self, stream: "ORDERS", as: "test", options: options)
    let begin = ContinuousClock.now
    #expect(await eventually { ContinuousClock.now > begin + .milliseconds(500) })
    #expect(again.count == 0)
    await other.drain()
  }

  @Test("a receiver that is too slow: the client drops, and both counts and status tell", arguments: [nil, "workers"])
  func overrun(group: String?) async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(), EventCentral())
    let sender = try await NATSBridge.to(server, on: here)
    let receiver = try await NATSBridge.to(server, on: there) { $0.inbox = 10 }
    let slow = Log<Int>()
    NATSStatus.addListener(
      nil,
      { status in
        if case .slowConsumer(let subject, let dropped) = status.change, subject == Reading.subject {
          slow.append(dropped)
        }
      }, executeOn: .listenerThread, on: there)
    // The thread of the client waits for a receiver that is full.
    let gate = DispatchSemaphore(value: 0)
    let thread = EventThread(on: there, mailbox: .bounded(1, whenFull: .block(upTo: .seconds(600))))
    let log = Log<Int>()
    thread.addEventCallback { (event: Reading) in
      gate.wait()
      log.append(event.number)
    }
    if let group {
      try receiver.subscribe(Reading.self, group: group)
    } else {
      try receiver.subscribe(Reading.self)
    }
    try await receiver.settle()
    sender.publish(Reading.self)
    for number in 0..<1000 { Reading(number: number).queue(on: here) }
    #expect(await sender.drain())
    #expect(await eventually { receiver.counts.overrun > 900 && slow.count > 0 })
    for _ in 0..<1000 { gate.signal() }
    await receiver.drain()
    await thread.drain()
    let counts = receiver.counts
    #expect(counts.received + counts.overrun == 1000)
    #expect(log.count == counts.dispatched)
  }

  @Test("what the client drops while a bridge is drained is counted to the last message")
  func overrunDuringDrain() async throws {
    let (server, count) = (try ServerProcess(), 3_000)
    for round in 0..<20 {
      let (here, there) = (EventCentral(), EventCentral())
      let sender = try await NATSBridge.to(server, on: here) { $0.outbox = .unbounded }
      let receiver = try await NATSBridge.to(server, on: there) { $0.inbox = 1 }
      let log = Log<Int>()
      let thread = EventThread(on: there)
      thread.addEventCallback { (event: Reading) in log.append(event.number) }
      try receiver.subscribe(Reading.self)
      try await receiver.settle()
      sender.publish(Reading.self)
      for number in 0..<count { Reading(number: number).queue(on: here) }
      #expect(await sender.drain())
      // The server has all of them, and the receiver's client takes and drops what comes.
      await receiver.drain()
      await thread.drain()
      let counts = receiver.counts
      #expect(counts.received + counts.overrun == count, "round \(round)")
      #expect(counts.overrun > 0 && log.count == counts.dispatched)
    }
  }

  @Test("a message that alone is longer than all that may wait is accounted for, also as the last of a drain")
  func longLastMessage() async throws {
    let body = #"{"number": 1, "text": "\#(String(repeating: "x", count: 5_000))"}"#
    let server = try ScriptedServer { line in
      // The last message for the subscription that the client ends: the client hears next that nothing more will come.
      let words = line.split(separator: " ")
      return words.first == "UNSUB" ? "MSG \(Reading.subject) \(words[1]) \(body.utf8.count)\r\n\(body)\r\n" : nil
    }
    var options = NATSBridge.Options()
    options.inbox = 1
    let receiver = try await NATSBridge(.url(server.url), on: EventCentral(), options: options)
    try receiver.subscribe(Reading.self)
    try await receiver.settle()
    #expect(await receiver.drain())
    let counts = receiver.counts
    #expect(counts.received + counts.overrun == 1)
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
