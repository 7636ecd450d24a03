// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// Batches beside the limits of servers and receivers.
@Suite struct OutboxBatchTests {
  private typealias Note = PublishSubscribeTests.Note

  /// Whose coding keeps the outbox waiting.
  struct Slow: RemoteEvent {
    static let subject = "tests.batch.slow"
    static let gate = DispatchSemaphore(value: 0)
    func encode(to encoder: any Encoder) { Self.gate.wait() }
  }

  @Test("a server that takes less than a batch gets each event, and shorter batches; a longer event is counted")
  func shortBatches() async throws {
    let server = try ServerProcess(configuration: "max_payload: 2048")
    let (here, there) = (EventCentral(), EventCentral())
    let sender = try await NATSBridge.to(server, on: here)
    let receiver = try await NATSBridge.to(server, on: there)
    let log = Log<Int>()
    let thread = EventThread(on: there)
    thread.addEventCallback { (event: Note) in log.append(event.number) }
    try receiver.subscribe(Note.self)
    try await receiver.settle()
    sender.publish(Slow.self)
    sender.publish(Note.self, batch: 1000)
    // All wait, and go in batches.
    Slow().queue(on: here)
    for number in 0..<5000 {
      Note(number: number, text: String(repeating: "a", count: number == 500 ? 3_000 : 5)).queue(on: here)
    }
    let before = sender.messagesOut
    Slow.gate.signal()
    #expect(await log.entries(atLeast: 4999) == (0..<5000).filter { $0 != 500 })
    #expect(await sender.drain())
    let counts = sender.counts
    #expect(counts.tooLarge == 1 && counts.sent + counts.unencodable == 5000 && counts.outbox.accepted == 5001)
    // Those of a few batches went alone, and the others together.
    #expect(sender.messagesOut - before < 2500)
    await receiver.drain()
    await thread.drain()
    #expect(receiver.counts.received == 4999)
  }

  @Test("events whose subject is longer than any server takes are counted, alone and in batches", arguments: [1, 64])
  func longSubject(batch: Int) async throws {
    struct Far: RemoteEvent {
      static let subject = String(repeating: "far.", count: 1200) + "away"
    }
    let server = try ServerProcess()
    let world = EventCentral()
    let sender = try await NATSBridge.to(server, on: world)
    sender.publish(Far.self, batch: batch)
    for _ in 0..<10 { Far().queue(on: world) }
    #expect(await sender.drain())
    #expect(sender.counts.tooLarge == 10 && sender.counts.sent == 0)
  }

  @Test("what goes out under no path holds back no batch before it", arguments: cores)
  func leftNode(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(core: core), EventCentral(core: core))
    let sender = try await NATSBridge.to(server, on: here)
    let receiver = try await NATSBridge.to(server, on: there)
    let log = Log<Int>()
    Note.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: there)
    try receiver.subscribe(Note.self)
    try await receiver.settle()
    let root = EventNode(name: "plant", core: core)
    let hall = EventNode(parent: root, name: "hall")
    hall.addHandler(.onRaise) { [weak hall] (_: Alarm) in hall?.detach() }
    try sender.mount(root, at: "plant", carrying: [Alarm.self])
    sender.publish(Note.self, batch: 64)
    await Held.hold(sender)
    Note(number: 1, text: "").queue(on: here)
    hall.raise(event: Alarm(level: 1))
    Held.gate.signal()
    #expect(await eventually(within: .seconds(20)) { log.count == 1 })
    #expect(await eventually { sender.counts.outbox.waiting == 0 })
    #expect(sender.counts.sent == 2 && sender.counts.unsent == 1)
    await sender.drain()
    await receiver.drain()
  }

  @Test("a batch goes with the next event if others that waited are not published any more", arguments: cores)
  func removedBehind(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(core: core), EventCentral(core: core))
    let sender = try await NATSBridge.to(server, on: here)
    let receiver = try await NATSBridge.to(server, on: there)
    let log = Log<Int>()
    Note.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: there)
    try receiver.subscribe(Note.self)
    try await receiver.settle()
    sender.publish(Note.self, batch: 64)
    let alarms = sender.publish(Alarm.self)
    await Held.hold(sender)
    Note(number: 1, text: "").queue(on: here)
    for level in 1...40 { Alarm(level: level).queue(on: here) }
    alarms.remove()
    Held.gate.signal()
    #expect(await eventually { sender.counts.unsent == 40 })
    Note(number: 2, text: "").queue(on: here)
    #expect(await eventually(within: .seconds(20)) { log.entries == [1, 2] })
    // What waits for certain is known again.
    Note(number: 3, text: "").queue(on: here)
    #expect(await eventually(within: .seconds(20)) { log.entries == [1, 2, 3] })
    #expect(await sender.drain())
    await receiver.drain()
  }

  @Test("a batch whose events wait for room does not come again meanwhile, by the patience of the name's first use")
  func batchWaitsInPatience() async throws {
    let server = try ServerProcess(["--jetstream"])
    let world = EventCentral()
    let bridge = try await NATSBridge.to(server, on: world)
    try await bridge.makeStream("ORDERS", of: [Order.self])
    var options = NATSBridge.DurableOptions()
    options.patience = .seconds(3)
    try await bridge.durable(Order.self, stream: "ORDERS", as: "test", options: options).remove()
    try await bridge.settle()
    let (log, gate) = (Log<String>(), DispatchSemaphore(value: 0))
    let thread = EventThread(on: world, mailbox: .bounded(1, whenFull: .refuse))
    thread.addEventCallback { (event: Order) in
      log.append("\(event.number) \(event.delivery?.attempt ?? 0)")
      gate.wait()
    }
    (options.patience, options.delay) = (.seconds(60), .seconds(20))
    try await bridge.durable(Order.self, stream: "ORDERS", as: "test", options: options)
    let client = try RawClient(server)
    var body: [UInt8] = []
    for number in 1...3 { EventBatch.append(Data(#"{"number": \#(number)}"#.utf8), to: &body) }
    client.publish(Order.subject, batch: "3", Data(body))
    client.flush()
    #expect(await log.entries(atLeast: 1) == ["1 1"])
    // The third one has waited for a while.
    #expect(await eventually { thread.mailboxStatistics.refused >= 2 })
    for _ in 1...3 { gate.signal() }
    #expect(await log.entries(atLeast: 3) == ["1 1", "2 1", "3 1"])
    #expect(try client.consumer("test", of: "ORDERS") { $0.NumRedelivered } == 0)
    bridge.close()
    thread.cancel()
  }

  @Test("of a batch that is longer than the longest message a bridge takes the events, but those that are longer")
  func longBatches() async throws {
    let server = try ServerProcess()
    let there = EventCentral()
    let receiver = try await NATSBridge.to(server, on: there) { $0.longestMessage = 100 }
    let log = Log<Int>()
    let thread = EventThread(on: there)
    thread.addEventCallback { (event: Note) in log.append(event.number) }
    try receiver.subscribe(Note.self)
    try await receiver.settle()
    var body: [UInt8] = []
    for number in 0..<10 {
      let text = String(repeating: "a", count: number == 5 ? 100 : 5)
      EventBatch.append(try Note.coding.encode(Note(number: number, text: text)), to: &body)
    }
    let raw = try RawClient(server)
    raw.publish(Note.subject, batch: "10", Data(body))
    raw.flush()
    #expect(await log.entries(atLeast: 9) == [0, 1, 2, 3, 4, 6, 7, 8, 9])
    await receiver.drain()
    await thread.drain()
    #expect(receiver.counts.tooLong == 1 && receiver.counts.received == 10)
  }
}
