// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreNATS
import Foundation
import Testing

struct Reading: RemoteEvent, Equatable {
  static let subject = "tests.reading"
  var number: Int
  var text = ""
}

@Suite struct PublishSubscribeTests {
  @Test("an event that is dispatched here is dispatched there, with its lane", arguments: cores)
  func lanes(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(core: core), EventCentral(core: core))
    let sender = try await NATSBridge.to(server, on: here)
    let receiver = try await NATSBridge.to(server, on: there)
    let log = Log<String>()
    let thread = EventThread(on: there)
    let gate = DispatchSemaphore(value: 0)
    thread.addEventCallback { (event: Reading, priority, _) in
      log.append("\(event.number) \(priority)")
      if event.number == 9 { gate.wait() }
    }
    try receiver.subscribe(Reading.self)
    try await receiver.settle()
    sender.publish(Reading.self)
    var expected: [String] = []
    for (number, priority) in EventPriority.allCases.enumerated() {
      #expect(Reading(number: number).queue(priority: priority, on: here) == 1)
      expected.append("\(number) \(priority)")
      // Each alone, so that none overtakes another.
      #expect(await log.entries(atLeast: number + 1) == expected)
    }
    Reading(number: 9).stack(on: here)
    #expect(await log.entries(atLeast: 6).last == "9 normal")
    // The receiver is busy with that one. What comes meanwhile, each alone, stands in its stacks before its queues, the
    // last first.
    for number in 10...14 {
      if number < 12 { Reading(number: number).queue(on: here) } else { Reading(number: number).stack(on: here) }
      #expect(await eventually { receiver.counts.dispatched == number - 3 })
    }
    #expect(await sender.drain())
    #expect(sender.counts.sent == 11)
    // Counted after the dispatch, which the handler may precede.
    await receiver.drain()
    #expect(receiver.counts.dispatched == 11)
    gate.signal()
    #expect(await log.entries(atLeast: 11).suffix(5) == [14, 13, 12, 10, 11].map { "\($0) normal" })
    await thread.drain()
  }

  @Test("nothing goes in circles: four bridges on two centrals, and each event arrives once", arguments: cores)
  func noLoops(core: EventCentral.Core) async throws {
    let servers = try [ServerProcess(), ServerProcess()]
    let worlds = [EventCentral(core: core), EventCentral(core: core)]
    let logs = [Log<Int>(), Log<Int>()]
    var bridges: [NATSBridge] = []
    for (world, log) in zip(worlds, logs) {
      Reading.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: world)
      for server in servers {
        let bridge = try await NATSBridge.to(server, on: world)
        bridge.publish(Reading.self)
        try bridge.subscribe(Reading.self)
        try await bridge.settle()
        bridges.append(bridge)
      }
    }
    for number in 0..<100 { Reading(number: number).queue(on: worlds[number % 2]) }
    // An event goes out through both bridges of its central, and so comes in through both of the other one.
    for (index, log) in logs.enumerated() {
      #expect(await log.entries(atLeast: 50 + 100).count == 150)
      #expect(Set(log.entries).count == 100, "central \(index)")
    }
    for bridge in bridges { #expect(await bridge.drain()) }
    // Nothing came after that.
    #expect(logs.map(\.count) == [150, 150])
    #expect(bridges.map(\.counts.sent) == [50, 50, 50, 50])
    #expect(bridges.map(\.counts.own) == [0, 0, 0, 0])
  }

  @Test("two bridges of one central to one server: what one sends, the other one passes over", arguments: cores)
  func ownEvents(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let world = EventCentral(core: core)
    let log = Log<Int>()
    Reading.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: world)
    let (sender, receiver) = (try await NATSBridge.to(server, on: world), try await NATSBridge.to(server, on: world))
    sender.publish(Reading.self)
    try receiver.subscribe(Reading.self)
    try await receiver.settle()
    for number in 0..<10 { Reading(number: number).queue(on: world) }
    #expect(await sender.drain())
    #expect(await eventually { receiver.counts.own == 10 })
    await receiver.drain()
    #expect(await log.entries(atLeast: 10) == Array(0..<10))
  }

  @Test("a group shares the events: each to one of its bridges", arguments: cores, [1, 2, 3])
  func groups(core: EventCentral.Core, members: Int) async throws {
    let server = try ServerProcess()
    let log = Log<Int>()
    let here = EventCentral(core: core)
    let sender = try await NATSBridge.to(server, on: here)
    var workers: [NATSBridge] = []
    for _ in 0..<members {
      let world = EventCentral(core: core)
      Reading.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: world)
      let bridge = try await NATSBridge.to(server, on: world)
      try bridge.subscribe(Reading.self, group: "workers")
      try await bridge.settle()
      workers.append(bridge)
    }
    sender.publish(Reading.self)
    let count = 300 * members
    for number in 0..<count { Reading(number: number).queue(on: here) }
    #expect(await sender.drain())
    #expect(await log.entries(atLeast: count).sorted() == Array(0..<count))
    for worker in workers { await worker.drain() }
    #expect(workers.allSatisfy { $0.counts.dispatched > 0 })
    #expect(log.count == count)
  }

  @Test("many events arrive once each, in order", arguments: cores)
  func many(core: EventCentral.Core) async throws {
    let count = stressFactor == 1 ? 50_000 : 1_000_000
    let server = try ServerProcess()
    let (here, there) = (EventCentral(core: core), EventCentral(core: core))
    let sender = try await NATSBridge.to(server, on: here) { $0.outbox = .unbounded }
    let receiver = try await NATSBridge.to(server, on: there) { $0.inbox = 2_000_000 }
    let thread = EventThread(on: there)
    let log = Log<Int>()
    thread.addEventCallback { (event: Reading) in log.append(event.number) }
    try receiver.subscribe(Reading.self)
    try await receiver.settle()
    sender.publish(Reading.self)
    for number in 0..<count { Reading(number: number).queue(on: here) }
    #expect(await sender.drain(within: .seconds(300)))
    #expect(await eventually(within: .seconds(300)) { log.count == count })
    #expect(log.entries == Array(0..<count))
    #expect(sender.counts.sent == count)
    await receiver.drain()
    #expect(receiver.counts.received == count)
    #expect(receiver.counts.dispatched == count)
    await thread.drain()
  }

  @Test("a pattern of subjects brings the events of all, and tells from where and when, by the clock of the dispatch")
  func patterns() async throws {
    struct Located: RemoteEvent {
      static let subject = "tests.located.north"
      var number: Int
      var origin: RemoteOrigin?
      mutating func arrived(_ origin: RemoteOrigin) { self.origin = origin }
      private enum CodingKeys: CodingKey { case number }
    }
    /// Whose coding keeps the outbox waiting.
    struct Slow: RemoteEvent {
      static let subject = "tests.slow"
      static let gate = DispatchSemaphore(value: 0)
      func encode(to encoder: any Encoder) { Self.gate.wait() }
    }
    let server = try ServerProcess()
    let (here, there) = (EventCentral(), EventCentral())
    let sender = try await NATSBridge.to(server, on: here)
    let receiver = try await NATSBridge.to(server, on: there)
    let log = Log<RemoteOrigin?>()
    Located.addListener(nil, { event in log.append(event.origin) }, executeOn: .listenerThread, on: there)
    try receiver.subscribe(Located.self, to: "tests.located.*")
    try await receiver.settle()
    sender.publish(Slow.self)
    sender.publish(Located.self)
    Slow().queue(on: here)
    let before = Date()
    Located(number: 1).queue(priority: .low, on: here)
    let after = Date()
    #expect(await eventually { Date() > after + 0.1 })
    Slow.gate.signal()
    let origin = try #require(await log.entries(atLeast: 1).first ?? nil)
    #expect(origin.subject == "tests.located.north" && origin.priority == .low && origin.method == .queue)
    // The clock was not set meanwhile; a date is that of the header to less than a microsecond.
    let sentAt = try #require(origin.sentAt)
    #expect(sentAt > before - 0.001 && sentAt < after + 0.001, "\(sentAt.timeIntervalSince(before))")
    #expect(await sender.drain())
    await receiver.drain()
  }

  @Test("a registration that is removed sends and receives nothing more (D6)")
  func removal() async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(), EventCentral())
    let sender = try await NATSBridge.to(server, on: here)
    let receiver = try await NATSBridge.to(server, on: there)
    let publishing = sender.publish(Reading.self)
    let subscription = try receiver.subscribe(Reading.self)
    #expect(publishing.remove())
    #expect(!publishing.remove())
    #expect(!publishing.isActive)
    #expect(Reading(number: 1).queue(on: here) == 0)
    #expect(subscription.remove())
    #expect(!subscription.remove())
    // And anew.
    let log = Log<Int>()
    Reading.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: there)
    try receiver.subscribe(Reading.self)
    try await receiver.settle()
    sender.publish(Reading.self)
    Reading(number: 2).queue(on: here)
    #expect(await log.entries(atLeast: 1) == [2])
    sender.close()
    receiver.close()
    #expect(throws: NATSBridgeError.self) { try receiver.subscribe(Reading.self) }
  }

  @Test("a bridge that nobody keeps ends, and so do its registrations (D9)")
  func ownership() async throws {
    let server = try ServerProcess()
    let world = EventCentral()
    weak var ended: NATSBridge?
    do {
      let bridge = try await NATSBridge.to(server, on: world)
      bridge.publish(Reading.self)
      try bridge.subscribe(Reading.self)
      #expect(Reading(number: 1).queue(on: world) == 1)
      ended = bridge
    }
    #expect(ended == nil)
    #expect(Reading(number: 2).queue(on: world) == 0)
  }

  @Test("without a server, a bridge throws, and says so")
  func noServer() async throws {
    let server = try ServerProcess()
    server.stop()
    await #expect {
      _ = try await NATSBridge.to(server, on: EventCentral())
    } throws: { ($0 as? NATSBridgeError)?.reason == .noServer }
  }

  @Test("handlers get the time of the arrival, by the clock of the central there (D8)", arguments: cores)
  func times(core: EventCentral.Core) async throws {
    let (server, clock, times) = (try ServerProcess(), ManualClock(), Log<DispatchTime>())
    let sender = try await NATSBridge.to(server, on: EventCentral(core: core))
    let receiver = try await NATSBridge.to(server, on: EventCentral(core: core, clock: clock))
    Reading.addListener(nil, { _, _, time in times.append(time) }, executeOn: .listenerThread, on: receiver.central)
    try receiver.subscribe(Reading.self)
    try await receiver.settle()
    sender.publish(Reading.self)
    await Held.hold(sender)
    Reading(number: 1).queue(on: sender.central)
    clock.advance(by: .seconds(3600))
    Held.gate.signal()
    #expect(await times.entries(atLeast: 1) == [receiver.central.now])
    for bridge in [sender, receiver] { await bridge.drain() }
  }

  struct Note: RemoteEvent, Equatable {
    static let subject = "tests.note"
    var number: Int
    var text: String
  }

  @Test(
    "batches: every event arrives once, in order, with its lane, beside events that go alone", arguments: cores,
    [2, 3, 64])
  func batches(core: EventCentral.Core, limit: Int) async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(core: core), EventCentral(core: core))
    let sender = try await NATSBridge.to(server, on: here)
    let receiver = try await NATSBridge.to(server, on: there)
    let log = Log<String>()
    let thread = EventThread(on: there)
    thread.addEventCallback { (event: Note, priority, _) in
      log.append("note \(event.number) \(event.text.count) \(priority)")
    }
    thread.addEventCallback { (event: Reading, priority, _) in log.append("reading \(event.number) 0 \(priority)") }
    try receiver.subscribe(Note.self)
    try receiver.subscribe(Reading.self)
    try await receiver.settle()
    sender.publish(Note.self, batch: limit)
    sender.publish(Reading.self)
    // One at a time: none is held back.
    for number in 0..<3 {
      Note(number: number, text: "").queue(on: here)
      #expect(await log.entries(atLeast: number + 1).count == number + 1)
    }
    // While the server takes nothing, all wait; among them events that are too long for a batch.
    server.stop()
    #expect(await eventually { !sender.isConnected && !receiver.isConnected })
    var expected: [String] = []
    for number in 0..<1000 {
      if number % 100 == 99 {
        Reading(number: number).queue(on: here)
        expected.append("reading \(number) 0 normal")
      } else {
        let length = number % 150 == 0 ? 70_000 : number % 7
        Note(number: number, text: String(repeating: "a", count: length)).queue(on: here)
        expected.append("note \(number) \(length) normal")
      }
    }
    for number in 0..<5 { Note(number: number, text: "").queue(priority: .low, on: here) }
    expected += (0..<5).map { "note \($0) 0 low" }
    try server.restart()
    #expect(await sender.drain())
    #expect(sender.counts.sent == 3 + 1005)
    // The receiver may have been back later than the sender: what arrived is a part of it, in order.
    await receiver.drain()
    await thread.drain()
    let arrived = Array(log.entries.dropFirst(3))
    let places = arrived.map { expected.firstIndex(of: $0) }
    #expect(places.allSatisfy { $0 != nil })
    for kind in ["note", "reading"] {
      for lane in ["normal", "low"] {
        let lines = arrived.filter { $0.hasPrefix(kind) && $0.hasSuffix(lane) }
        let numbers = lines.compactMap { Int($0.split(separator: " ")[1]) }
        #expect(numbers == numbers.sorted() && Set(numbers).count == numbers.count)
      }
    }
    #expect(receiver.counts.malformed == 0)
  }

  @Test("batches of a sender that is faster than its outbox: all arrive")
  func manyBatches() async throws {
    let count = 20_000 * (stressFactor == 1 ? 1 : 50)
    let server = try ServerProcess()
    let (here, there) = (EventCentral(), EventCentral())
    let sender = try await NATSBridge.to(server, on: here) { $0.outbox = .unbounded }
    let receiver = try await NATSBridge.to(server, on: there) { $0.inbox = 2_000_000 }
    let log = Log<Int>()
    let thread = EventThread(on: there)
    thread.addEventCallback { (event: Note) in log.append(event.number) }
    try receiver.subscribe(Note.self)
    try await receiver.settle()
    sender.publish(Note.self, batch: 64)
    for number in 0..<count { Note(number: number, text: "").queue(on: here) }
    #expect(await sender.drain(within: .seconds(300)))
    #expect(await eventually(within: .seconds(300)) { log.count == count })
    #expect(log.entries == Array(0..<count))
    #expect(sender.counts.sent == count)
    await receiver.drain()
    #expect(receiver.counts.received == count)
    await thread.drain()
  }

  @Test("a hundred bridges of one process to one server")
  func hundred() async throws {
    let server = try ServerProcess()
    let log = Log<Int>()
    var bridges: [(central: EventCentral, bridge: NATSBridge)] = []
    for _ in 0..<100 {
      let world = EventCentral()
      Reading.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: world)
      let bridge = try await NATSBridge.to(server, on: world)
      bridge.publish(Reading.self)
      try bridge.subscribe(Reading.self)
      try await bridge.settle()
      bridges.append((world, bridge))
    }
    for (number, one) in bridges.enumerated() { Reading(number: number).queue(on: one.central) }
    // Each hears its own event and those of the others.
    let entries = await log.entries(atLeast: 100 * 100)
    #expect(entries.count == 10_000)
    #expect((0..<100).allSatisfy { number in entries.count { $0 == number } == 100 })
    for one in bridges { #expect(await one.bridge.drain()) }
    #expect(log.count == 10_000)
  }

  // MARK: Servers that take shorter lines than bridges write

  @Test("a server that turns a bridge away for the length of a line: the status says the rule and what to do")
  func shortLines() async throws {
    struct Distant: RemoteEvent {
      static let subject = "tests." + String(repeating: "x", count: 2_000)
    }
    let server = try ServerProcess(configuration: "max_control_line: 1024")
    let world = EventCentral()
    let log = Log<NATSStatus.Change>()
    NATSStatus.addListener(nil, { status in log.append(status.change) }, executeOn: .listenerThread, on: world)
    let bridge = try await NATSBridge.to(server, on: world)
    bridge.publish(Distant.self)
    Distant().queue(on: world)
    #expect(await eventually { log.entries.last == .closed })
    let faults = log.entries.compactMap { if case .fault(let text) = $0 { text } else { nil } }
    #expect(faults.count == 1)
    let text = try #require(faults.first)
    #expect(text.contains("maximum control line exceeded") && text.contains("max_control_line: 4096"), "\(text)")
  }

  @Test("a bridge that a server turns away for the length of its first line: the error says the rule and what to do")
  func shortestLines() async throws {
    let server = try ServerProcess(configuration: "max_control_line: 64")
    let error = await #expect(throws: NATSBridgeError.self) { try await NATSBridge.to(server, on: EventCentral()) }
    let text = error?.description ?? ""
    #expect(text.contains("aximum control line exceeded") && text.contains("max_control_line: 4096"), "\(text)")
  }
}
