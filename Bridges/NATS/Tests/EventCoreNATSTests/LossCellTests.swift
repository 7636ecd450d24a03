// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// Those cells of the table in BeyondOneMachine.md that say “the same”, or that something is lost, and have no test
/// among those of their row.
///
/// One file, though long: the cells of that one table, of which `LossTable` says which test holds which.
@Suite struct LossCellTests {
  @discardableResult
  private func subscribe(_ bridge: NATSBridge, _ group: String?) throws -> RemoteRegistration {
    guard let group else { return try bridge.subscribe(Reading.self) }
    return try bridge.subscribe(Reading.self, group: group)
  }

  /// A bridge that logs what it gets.
  private func receiver(_ server: ServerProcess, _ group: String?, _ log: Log<Int>) async throws -> NATSBridge {
    let world = EventCentral()
    Reading.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: world)
    let bridge = try await NATSBridge.to(server, on: world)
    try subscribe(bridge, group)
    try await bridge.settle()
    return bridge
  }

  // MARK: The server is away

  @Test("server away, with a group: what waits arrives once, at one of it; what the outbox refuses is counted")
  func groupAway() async throws {
    let server = try ServerProcess()
    let world = EventCentral()
    let log = Log<Int>()
    let sender = try await NATSBridge.to(server, on: world) { $0.outbox = .bounded(10, whenFull: .refuse) }
    let workers = [try await receiver(server, "workers", log), try await receiver(server, "workers", log)]
    sender.publish(Reading.self)
    await Held.hold(sender)
    server.stop()
    #expect(await eventually { ([sender] + workers).allSatisfy { !$0.isConnected } })
    #expect((0..<30).reduce(0) { $0 + Reading(number: $1).queue(on: world) } == 10)
    try server.restart()
    #expect(await eventually { ([sender] + workers).allSatisfy(\.isConnected) })
    for worker in workers { try await worker.settle() }
    Held.gate.signal()
    #expect(await sender.drain())
    #expect(sender.counts.sent == 11 && sender.counts.outbox.refused == 20)
    #expect(await log.entries(atLeast: 10).sorted() == Array(0..<10))
    for worker in workers { await worker.drain() }
    #expect(log.count == 10)
  }

  @Test(
    "server away, with a stream and a full outbox: what is refused or dropped is counted, the rest is stored once",
    arguments: [EventOverflowPolicy.refuse, .dropOldest])
  func streamAway(policy: EventOverflowPolicy) async throws {
    let server = try ServerProcess(["--jetstream"])
    let (here, there) = (EventCentral(), EventCentral())
    let sender = try await NATSBridge.to(server, on: here) { $0.outbox = .bounded(10, whenFull: policy) }
    try await sender.makeStream("ORDERS", of: [Order.self])
    try await sender.publish(Order.self, stream: "ORDERS")
    server.stop()
    #expect(await eventually { !sender.isConnected })
    for number in 0..<30 { Order(number: number).queue(on: here) }
    try server.restart()
    #expect(await sender.drain())
    let counts = sender.counts
    #expect(counts.outbox.accepted + counts.outbox.refused == 30)
    #expect(UInt64(counts.sent) + counts.outbox.dropped == counts.outbox.accepted)
    // Ten wait, and one may be with the thread that sends.
    #expect((10...11).contains(counts.sent))
    try await expectStored(counts.sent, server, there)
  }

  @Test("the server dies while a stream stores: each event is stored once")
  func streamKilled() async throws {
    let server = try ServerProcess(["--jetstream"])
    let (here, there) = (EventCentral(), EventCentral())
    let sender = try await NATSBridge.to(server, on: here)
    try await sender.makeStream("ORDERS", of: [Order.self])
    try await sender.publish(Order.self, stream: "ORDERS")
    for number in 0..<500 { Order(number: number).queue(on: here) }
    #expect(await eventually { sender.counts.sent > 100 })
    server.stop()
    try server.restart()
    #expect(await sender.drain())
    #expect(sender.counts.sent == 500)
    #expect(try await expectStored(500, server, there) == Array(0..<500))
  }

  /// Expects so many events in the stream, each once.
  @discardableResult
  private func expectStored(_ count: Int, _ server: ServerProcess, _ world: EventCentral) async throws -> [Int] {
    let log = Log<(number: Int, position: Int)>()
    Order.addListener(
      nil, { log.append(($0.number, $0.delivery?.position ?? 0)) }, executeOn: .listenerThread, on: world)
    let receiver = try await NATSBridge.to(server, on: world)
    try await receiver.durable(Order.self, stream: "ORDERS", as: "test")
    let orders = await log.entries(atLeast: count)
    #expect(await receiver.drain())
    #expect(orders.map(\.position) == Array(1...count))
    #expect(Set(orders.map(\.number)).count == count && log.count == count)
    return orders.map(\.number)
  }

  @Test("the server dies with events for a group: none is doubled, and what comes after it arrives")
  func groupKilled() async throws {
    let server = try ServerProcess()
    let world = EventCentral()
    let log = Log<Int>()
    let sender = try await NATSBridge.to(server, on: world)
    let workers = [try await receiver(server, "workers", log), try await receiver(server, "workers", log)]
    sender.publish(Reading.self)
    server.freeze()
    for number in 0..<100 { Reading(number: number).queue(on: world) }
    #expect(await eventually { sender.counts.sent == 100 })
    server.stop()
    #expect(await eventually { ([sender] + workers).allSatisfy { !$0.isConnected } })
    try server.restart()
    #expect(await eventually { ([sender] + workers).allSatisfy(\.isConnected) })
    for worker in workers { try await worker.settle() }
    for number in 100..<200 { Reading(number: number).queue(on: world) }
    #expect(await sender.drain())
    #expect(sender.counts.sent == 200)
    #expect(await eventually { Set(log.entries).isSuperset(of: 100..<200) })
    for worker in workers { await worker.drain() }
    #expect(Set(log.entries).count == log.count)
  }

  @Test("a partition that outlasts the patience of a durable subscription brings its event again")
  func longerThanPatience() async throws {
    let server = try ServerProcess(["--jetstream"])
    let world = EventCentral()
    let bridge = try await NATSBridge.to(server, on: world)
    try await bridge.makeStream("ORDERS", of: [Order.self])
    let kept = Log<Order>()
    let thread = EventThread(on: world)
    thread.addEventCallback { (event: Order) in if event.delivery != nil { kept.append(event) } }
    var options = NATSBridge.DurableOptions()
    options.patience = .milliseconds(200)
    try await bridge.durable(Order.self, stream: "ORDERS", as: "test", options: options)
    try await bridge.publish(Order.self, stream: "ORDERS")
    Order(number: 1).queue(on: world)
    #expect(await kept.entries(atLeast: 1).first?.delivery?.attempt == 1)
    server.freeze()
    let frozen = ContinuousClock.now
    #expect(await eventually { ContinuousClock.now > frozen + .milliseconds(300) })
    server.thaw()
    let attempts = await kept.entries(atLeast: 2).map { $0.delivery?.attempt }
    #expect(attempts.prefix(2) == [1, 2])
    bridge.close()
  }

  // MARK: The receiver

  @Test("no receiver is connected: lost", arguments: [nil, "workers"])
  func nobody(group: String?) async throws {
    let server = try ServerProcess()
    let world = EventCentral()
    let sender = try await NATSBridge.to(server, on: world)
    sender.publish(Reading.self)
    for number in 0..<20 { Reading(number: number).queue(on: world) }
    #expect(await eventually { sender.counts.sent == 20 })
    try await sender.settle()
    let log = Log<Int>()
    let late = try await receiver(server, group, log)
    Reading(number: 20).queue(on: world)
    #expect(await log.entries(atLeast: 1) == [20])
    #expect(await sender.drain())
    await late.drain()
    #expect(log.count == 1)
  }

  @Test("a receiver's machine takes its events along when it ends; others get theirs alone", arguments: [nil, "workers"])
  func ends(group: String?) async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(), EventCentral())
    let sender = try await NATSBridge.to(server, on: here)
    let ending = try await NATSBridge.to(server, on: there)
    let (handled, gate, thread) = (Log<Int>(), DispatchSemaphore(value: 0), EventThread(on: there))
    thread.addEventCallback { (event: Reading) in
      gate.wait()
      handled.append(event.number)
    }
    try subscribe(ending, group)
    try await ending.settle()
    let log = Log<Int>()
    let other = try await receiver(server, group, log)
    sender.publish(Reading.self)
    for number in 0..<100 { Reading(number: number).queue(on: here) }
    let copies = group == nil ? 200 : 100
    #expect(await eventually { ending.counts.dispatched + other.counts.dispatched == copies })
    ending.close()
    thread.cancel()
    gate.signal()
    await thread.join()
    #expect(await sender.drain())
    await other.drain()
    let share = other.counts.dispatched
    #expect(await log.entries(atLeast: share).count == share)
    #expect(ending.counts.dispatched > 1 && handled.count <= 1, "One may have been with the handler.")
  }

  @Test("what a receiver is too slow for, and the client drops, a stream keeps")
  func slow() async throws {
    let server = try ServerProcess(["--jetstream"])
    let (here, there) = (EventCentral(), EventCentral())
    let sender = try await NATSBridge.to(server, on: here)
    let receiver = try await NATSBridge.to(server, on: there) { $0.inbox = 10 }
    try await sender.makeStream("ORDERS", of: [Order.self])
    try await sender.publish(Order.self, stream: "ORDERS")
    let (log, gate) = (Log<Int>(), DispatchSemaphore(value: 0))
    let thread = EventThread(on: there, mailbox: .bounded(1, whenFull: .block(upTo: .seconds(600))))
    thread.addEventCallback { (event: Order) in
      gate.wait()
      log.append(event.number)
    }
    var options = NATSBridge.DurableOptions()
    options.patience = .milliseconds(300)
    try await receiver.durable(Order.self, stream: "ORDERS", as: "test", options: options)
    for number in 0..<200 { Order(number: number).queue(on: here) }
    #expect(await eventually { receiver.counts.overrun > 50 })
    for _ in 0..<100_000 { gate.signal() }
    #expect(await eventually { Set(log.entries) == Set(0..<200) })
    #expect(await sender.drain())
    await receiver.drain()
    thread.cancel()
  }

  @Test("what every local receiver refuses, or has none, is counted", arguments: [nil, "workers"])
  func refused(group: String?) async throws {
    let server = try ServerProcess()
    let there = EventCentral()
    let receiver = try await NATSBridge.to(server, on: there)
    let (log, gate) = (Log<Int>(), DispatchSemaphore(value: 0))
    let thread = EventThread(on: there, mailbox: .bounded(1, whenFull: .refuse))
    thread.addEventCallback { (event: Reading) in
      gate.wait()
      log.append(event.number)
    }
    try subscribe(receiver, group)
    try await receiver.settle()
    let raw = try RawClient(server)
    func send(_ number: Int) { raw.publish(Reading.subject, Data(#"{"number": \#(number), "text": ""}"#.utf8)) }
    for number in 0..<10 { send(number) }
    raw.flush()
    #expect(await eventually { receiver.counts.dispatched + receiver.counts.unheard == 10 })
    // One waits, and one may be with the handler.
    let taken = receiver.counts.dispatched
    #expect((1...2).contains(taken))
    for _ in 0..<taken { gate.signal() }
    await thread.drain()
    #expect(log.count == taken)
    send(10)
    raw.flush()
    #expect(await eventually { receiver.counts.unheard == 11 - taken })
    await receiver.drain()
  }

  @Test("what a local receiver refuses of a stream is delivered again")
  func streamRefused() async throws {
    let server = try ServerProcess(["--jetstream"])
    let (here, there) = (EventCentral(), EventCentral())
    let sender = try await NATSBridge.to(server, on: here)
    let receiver = try await NATSBridge.to(server, on: there)
    try await sender.makeStream("ORDERS", of: [Order.self])
    try await sender.publish(Order.self, stream: "ORDERS")
    let (log, gate) = (Log<Int>(), DispatchSemaphore(value: 0))
    let thread = EventThread(on: there, mailbox: .bounded(1, whenFull: .refuse))
    thread.addEventCallback { (event: Order) in
      gate.wait()
      log.append(event.number)
    }
    var options = NATSBridge.DurableOptions()
    options.delay = .milliseconds(5)
    try await receiver.durable(Order.self, stream: "ORDERS", as: "test", options: options)
    for number in 0..<10 { Order(number: number).queue(on: here) }
    #expect(await eventually { receiver.counts.givenBack >= 20 })
    for _ in 0..<10 { gate.signal() }
    #expect(await log.entries(atLeast: 10).sorted() == Array(0..<10))
    #expect(await sender.drain())
    await receiver.drain()
    await thread.drain()
    #expect(log.count == 10)
  }

  @Test("what a machine of a group cannot read is lost for all, and counted there")
  func unreadable() async throws {
    let server = try ServerProcess(configuration: "max_payload: 4194304")
    let log = Log<Int>()
    let workers = [try await receiver(server, "workers", log), try await receiver(server, "workers", log)]
    let raw = try RawClient(server)
    for _ in 0..<10 { raw.publish(Reading.subject, Data("{".utf8)) }
    for _ in 0..<2 { raw.publish(Reading.subject, Data(count: NATSBridge.Options().longestMessage + 1)) }
    raw.publish(Reading.subject, Data(#"{"number": 1, "text": ""}"#.utf8))
    raw.flush()
    #expect(await eventually { workers.reduce(0) { $0 + $1.counts.undecodable } == 10 })
    #expect(await eventually { workers.reduce(0) { $0 + $1.counts.tooLong } == 2 })
    #expect(await log.entries(atLeast: 1) == [1])
    for worker in workers { await worker.drain() }
    #expect(workers.reduce(0) { $0 + $1.counts.received } == 13 && log.count == 1)
  }

  // MARK: The sender

  @Test("a subject that the server forbids to the sender: lost, counted as sent, and told", arguments: [nil, "workers"])
  func forbidden(group: String?) async throws {
    let server = try ServerProcess(
      configuration: """
        authorization { users: [
          { user: a, password: b, permissions: { publish: { deny: "tests.reading" } } }, { user: c, password: d } ] }
        no_auth_user: c
        """)
    let world = EventCentral()
    let faults = Log<String>()
    NATSStatus.addListener(
      nil, { status in if case .fault(let text) = status.change { faults.append(text) } },
      executeOn: .listenerThread, on: world)
    let log = Log<Int>()
    let receiver = try await receiver(server, group, log)
    let sender = try await NATSBridge(.url(server.url, credentials: .user("a", password: "b")), on: world)
    sender.publish(Reading.self)
    Reading(number: 1).queue(on: world)
    #expect(await faults.entries(atLeast: 1).count == 1)
    #expect(await sender.drain())
    #expect(sender.counts.sent == 1 && sender.counts.unsent == 0)
    await receiver.drain()
    #expect(log.count == 0 && receiver.counts.received == 0)
  }

  @Test("close: what waits in the outbox is lost for a group, too")
  func closed() async throws {
    let server = try ServerProcess()
    let world = EventCentral()
    let log = Log<Int>()
    let sender = try await NATSBridge.to(server, on: world)
    let worker = try await receiver(server, "workers", log)
    sender.publish(Reading.self)
    await Held.hold(sender)
    for number in 0..<20 { Reading(number: number).queue(on: world) }
    sender.close()
    Held.gate.signal()
    #expect(await eventually { sender.counts.unsent == 21 })
    await worker.drain()
    #expect(log.count == 0 && worker.counts.received == 0)
  }
}
