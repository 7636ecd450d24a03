// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// A stream that forgets: the numbers of events after some time, and events where its limits say so.
extension LossTests {
  /// Takes what a stream has for a name, until nothing is left of it.
  private func read(_ count: Int, _ server: ServerProcess) async throws -> [(number: Int, position: Int)] {
    let world = EventCentral()
    let log = Log<(number: Int, position: Int)>()
    Order.addListener(
      nil, { log.append(($0.number, $0.delivery?.position ?? 0)) }, executeOn: .listenerThread, on: world)
    let receiver = try await NATSBridge.to(server, on: world)
    try await receiver.durable(Order.self, stream: "ORDERS", as: "test")
    _ = await log.entries(atLeast: count)
    #expect(await receiver.drain())
    return log.entries
  }

  @Test(
    "the connection breaks with the word that an event is stored: stored once while its number is known, or else twice",
    arguments: [false, true])
  func storedAgain(isForgotten: Bool) async throws {
    let server = try ServerProcess(["--jetstream"])
    let cable = try Cable(to: server)
    let world = EventCentral()
    let sender = try await NATSBridge.to(cable.url, on: world)
    let raw = try RawClient(server)
    let window = Duration.milliseconds(isForgotten ? 100 : 120_000)
    if isForgotten {
      try raw.makeStream("ORDERS", of: Order.subject) { $0.Duplicates = window.milliseconds * 1_000_000 }
    } else {
      try await sender.makeStream("ORDERS", of: [Order.self])
      let limits = try raw.stream("ORDERS") { [$0.Config.pointee.MaxMsgs, $0.Config.pointee.MaxBytes] }
      #expect(try limits == [-1, -1] && raw.stream("ORDERS") { $0.Config.pointee.MaxAge } == 0, "It has none.")
    }
    #expect(try raw.stream("ORDERS") { $0.Config.pointee.Duplicates } == window.milliseconds * 1_000_000)
    try await sender.publish(Order.self, stream: "ORDERS")
    Order(number: 1).queue(on: world)
    #expect(await eventually { sender.counts.sent == 1 })
    cable.swallow(.toClient)
    Order(number: 2).queue(on: world)
    #expect(await eventually { cable.swallowed(#""seq":2"#) == 1 })
    cable.cut()
    let stored = ContinuousClock.now
    if isForgotten { #expect(await eventually { ContinuousClock.now > stored + window * 3 }) }
    cable.mend()
    Order(number: 3).queue(on: world)
    #expect(await sender.drain())
    #expect(sender.counts.sent == 3)
    let expected = isForgotten ? [1, 2, 2, 3] : [1, 2, 3]
    let orders = try await read(expected.count, server)
    #expect(orders.map(\.number) == expected)
    #expect(orders.map(\.position) == Array(1...expected.count))
  }

  @Test("a stream with a limit forgets what a durable name has not got yet, and the positions of the others tell")
  func mostMessages() async throws {
    let server = try ServerProcess(["--jetstream"])
    let world = EventCentral()
    let sender = try await NATSBridge.to(server, on: world)
    let raw = try RawClient(server)
    try raw.makeStream("ORDERS", of: Order.subject) { $0.MaxMsgs = 5 }
    // The name is known, and nobody is there for it.
    #expect(try await read(0, server).isEmpty)
    try await sender.publish(Order.self, stream: "ORDERS")
    for number in 1...12 { Order(number: number).queue(on: world) }
    #expect(await sender.drain())
    #expect(sender.counts.sent == 12, "Nobody tells the sender.")
    let orders = try await read(5, server)
    #expect(orders.map(\.number) == Array(8...12) && orders.map(\.position) == Array(8...12))
  }

  @Test("a stream with a limit forgets what the client has dropped meanwhile, and delivers the rest again")
  func slowerThanLimit() async throws {
    let server = try ServerProcess(["--jetstream"])
    let (here, there) = (EventCentral(), EventCentral())
    let sender = try await NATSBridge.to(server, on: here)
    let receiver = try await NATSBridge.to(server, on: there) { $0.inbox = 10 }
    try RawClient(server).makeStream("ORDERS", of: Order.subject) { $0.MaxMsgs = 20 }
    let (log, gate) = (Log<Int>(), DispatchSemaphore(value: 0))
    let thread = EventThread(on: there, mailbox: .bounded(1, whenFull: .block(upTo: .seconds(600))))
    thread.addEventCallback { (event: Order) in
      gate.wait()
      log.append(event.number)
    }
    var options = NATSBridge.DurableOptions()
    // The client takes as many as may be in flight, if its inbox is less. What is forgotten is in flight no more.
    (options.inFlight, options.patience) = (2, .milliseconds(300))
    try await receiver.durable(Order.self, stream: "ORDERS", as: "test", options: options)
    try await sender.publish(Order.self, stream: "ORDERS")
    for number in 0..<200 { Order(number: number).queue(on: here) }
    #expect(await sender.drain())
    #expect(await eventually { receiver.counts.overrun > 150 })
    for _ in 0..<100_000 { gate.signal() }
    #expect(await eventually { Set(log.entries).isSuperset(of: 180..<200) })
    #expect(await receiver.drain())
    thread.cancel()
    // Those of the inbox, one that waits, and one or two that are handed over.
    #expect(Set(log.entries).subtracting(180..<200).count <= 13)
  }

  @Test("a stream with an age forgets what a durable name has not got by then, and keeps what comes later")
  func age() async throws {
    let server = try ServerProcess(["--jetstream"])
    let world = EventCentral()
    let sender = try await NATSBridge.to(server, on: world)
    let raw = try RawClient(server)
    let age = Duration.milliseconds(300)
    try raw.makeStream("ORDERS", of: Order.subject) {
      $0.MaxAge = age.milliseconds * 1_000_000
      $0.Duplicates = $0.MaxAge
    }
    #expect(try await read(0, server).isEmpty)
    try await sender.publish(Order.self, stream: "ORDERS")
    for number in 1...5 { Order(number: number).queue(on: world) }
    #expect(await eventually { sender.counts.sent == 5 })
    #expect(await eventually { (try? raw.stream("ORDERS") { $0.State.Msgs }) == 0 })
    // With somebody there it is handed on at once.
    let there = EventCentral()
    let log = Log<(number: Int, position: Int)>()
    Order.addListener(
      nil, { log.append(($0.number, $0.delivery?.position ?? 0)) }, executeOn: .listenerThread, on: there)
    let receiver = try await NATSBridge.to(server, on: there)
    try await receiver.durable(Order.self, stream: "ORDERS", as: "test")
    Order(number: 6).queue(on: world)
    let orders = await log.entries(atLeast: 1)
    #expect(orders.map(\.number) == [6] && orders.map(\.position) == [6])
    #expect(await sender.drain())
    await receiver.drain()
    #expect(log.count == 1)
  }

  @Test("a stream that refuses what is above its limit forgets nothing: the event waits in the outbox, which is told")
  func full() async throws {
    let server = try ServerProcess(["--jetstream"])
    let world = EventCentral()
    let changes = Log<NATSStatus.Change>()
    NATSStatus.addListener(nil, { status in changes.append(status.change) }, executeOn: .listenerThread, on: world)
    let sender = try await NATSBridge.to(server, on: world)
    let raw = try RawClient(server)
    try raw.makeStream("ORDERS", of: Order.subject) { ($0.MaxMsgs, $0.Discard) = (3, js_DiscardNew) }
    try await sender.publish(Order.self, stream: "ORDERS")
    for number in 1...4 { Order(number: number).queue(on: world) }
    guard case .fault(let text) = await changes.entries(atLeast: 1).first else {
      return #expect(Bool(false), "\(changes.entries)")
    }
    #expect(text.contains("ORDERS"), "\(text)")
    #expect(sender.counts.sent == 3)
    #expect(try await read(3, server).map(\.number) == [1, 2, 3])
    try raw.withStreams { js_PurgeStream($0, "ORDERS", nil, nil) }
    #expect(await sender.drain())
    #expect(sender.counts.sent == 4)
    #expect(try await read(1, server).map(\.number) == [4])
    #expect(changes.entries.count { if case .fault = $0 { true } else { false } } == 1)
  }
}
