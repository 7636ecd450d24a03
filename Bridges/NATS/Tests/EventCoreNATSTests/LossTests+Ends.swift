// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// The sender ends, or the receiver is away or ends.
extension LossTests {
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
}
