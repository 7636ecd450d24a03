// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// Under which path what is raised below a mounted node goes out, and how far it goes there.
@Suite struct MountTests {
  /// An alarm that tells under which subject it came.
  struct Placed: RemoteEvent {
    static let subject = Alarm.subject
    static let remoteName = Alarm.remoteName
    var level: Int
    var from: String?
    mutating func arrived(_ origin: RemoteOrigin) { from = origin.subject }
  }

  private struct Plant {
    let root: EventNode, hall: EventNode, line: EventNode, store: EventNode
    init(_ core: EventCentral.Core) {
      root = EventNode(name: "plant", core: core)
      hall = EventNode(parent: root, name: "hall")
      line = EventNode(parent: hall, name: "line")
      store = EventNode(name: "store", core: core)
    }
  }

  @Test(
    "an event whose node leaves the mounted one while it climbs goes out under no path, and is counted",
    arguments: cores)
  func leaves(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let (plant, world) = (Plant(core), EventCentral(core: core))
    let sender = try await NATSBridge.to(server, on: EventCentral(core: core))
    let receiver = try await NATSBridge.to(server, on: world)
    let log = Log<String>()
    Placed.addListener(
      nil, { event in log.append("\(event.level) \(event.from ?? "")") }, executeOn: .listenerThread, on: world)
    try receiver.subscribe(Placed.self, to: "plant.>")
    try await receiver.settle()
    try sender.mount(plant.root, at: "plant", carrying: [Alarm.self])
    // Each hears of it before the mounted node does.
    plant.hall.addHandler(.onRaise) { [weak line = plant.line, store = plant.store] (event: Alarm) in
      if event.level == 2 { line?.detach() }
      if event.level == 3 { line?.attach(to: store) }
    }
    plant.line.raise(event: Alarm(level: 1))
    for level in 2...3 {
      plant.line.raise(event: Alarm(level: level))
      plant.line.attach(to: plant.hall)
    }
    plant.line.raise(event: Alarm(level: 4))
    #expect(await log.entries(atLeast: 2) == ["1 plant.hall.line.alarm", "4 plant.hall.line.alarm"])
    #expect(await eventually { sender.counts.outbox.waiting == 0 })
    let counts = sender.counts
    #expect(counts.sent == 2 && counts.unsent == 2 && counts.outbox.accepted == 4)
    #expect(await sender.drain())
    await receiver.drain()
    #expect(log.count == 2)
  }

  @Test(
    "while another thread attaches and detaches its node, an event goes out under its path or is counted",
    arguments: cores)
  func leavesMeanwhile(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let (plant, world) = (Plant(core), EventCentral(core: core))
    let sender = try await NATSBridge.to(server, on: EventCentral(core: core))
    let receiver = try await NATSBridge.to(server, on: world)
    let log = Log<String>()
    Placed.addListener(nil, { event in log.append(event.from ?? "") }, executeOn: .listenerThread, on: world)
    let subscription = try receiver.subscribe(Placed.self, to: "plant.>")
    try await receiver.settle()
    try sender.mount(plant.root, at: "plant", carrying: [Alarm.self])
    let (isOver, rounds) = (Locked(false), Locked(0))
    async let mover: Void = blocking { [line = plant.line, hall = plant.hall] in
      while !isOver.withLock({ $0 }) {
        line.detach()
        line.attach(to: hall)
        rounds.withLock { $0 += 1 }
      }
    }
    // Until some have gone out, and the other thread was at work meanwhile.
    #expect(await eventually { rounds.withLock { $0 } > 0 })
    let begun = rounds.withLock { $0 }
    let isMixed = await eventually {
      for level in 0..<2000 * stressFactor { plant.line.raise(event: Alarm(level: level)) }
      return sender.counts.sent > 0 && rounds.withLock { $0 } > begun + 100
    }
    #expect(isMixed)
    isOver.withLock { $0 = true }
    await mover
    #expect(await eventually { sender.counts.outbox.waiting == 0 })
    #expect(await sender.drain())
    await subscription.drain()
    await world.drain()
    let counts = sender.counts
    #expect(counts.sent == log.count && counts.sent + counts.unsent == counts.outbox.accepted)
    #expect(log.entries.allSatisfy { $0 == "plant.hall.line.alarm" }, "\(Set(log.entries))")
  }

  @Test("an event goes as far there as here, and one that does not climb stays here", arguments: cores)
  func scopes(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let (here, there) = (Plant(core), Plant(core))
    let sender = try await NATSBridge.to(server, on: EventCentral(core: core))
    let receiver = try await NATSBridge.to(server, on: EventCentral(core: core))
    let log = Log<String>()
    for node in [there.root, there.hall, there.line] {
      for mode in [CaptureMode.onCapture, .onRaise, .onPropagate] {
        node.addHandler(mode, for: Alarm.self) { [log, name = node.name!] context in
          log.append("\(context.event.level) \(context.phase) \(name)")
          return .continue
        }
      }
    }
    try receiver.mount(there.root, at: "plant", carrying: [Alarm.self])
    try await receiver.settle()
    try sender.mount(here.root, at: "plant", carrying: [Alarm.self])
    let scopes: [EventRaiseScope] = [
      .bubbling, [.capturing, .bubbling], [.bubbling, .propagating], .tree, .propagating, .capturing,
      [.capturing, .propagating], [],
    ]
    for (level, scope) in scopes.enumerated() { here.hall.raise(event: Alarm(level: level), scope: scope) }
    here.hall.propagate(event: Alarm(level: 8))
    #expect(await sender.drain())
    await receiver.drain()
    let (down, up) = (["capture plant", "capture hall"], ["raise hall", "raise plant"])
    let all = ["propagate plant", "propagate hall", "propagate line"]
    let expected = [up, down + up, up + all, down + up + all].enumerated().flatMap { level, calls in
      calls.map { "\(level) \($0)" }
    }
    #expect(log.entries == expected)
    #expect(sender.counts.sent == 4 && receiver.counts.dispatched == 4)
  }

  @Test("a scope that is none is counted, and not raised", arguments: ["", "bubbling sideways", "tree"])
  func noScope(words: String) async throws {
    let server = try ServerProcess()
    let plant = Plant(.default)
    let bridge = try await NATSBridge.to(server, on: EventCentral())
    let log = Log<Int>()
    plant.root.addHandler(.onRaise) { (event: Alarm) in log.append(event.level) }
    try bridge.mount(plant.root, at: "plant", carrying: [Alarm.self])
    try await bridge.settle()
    let raw = try RawClient(server)
    raw.publish("plant.alarm", scope: words, Data(#"{"level":1}"#.utf8))
    raw.publish("plant.alarm", scope: "propagating  bubbling", Data(#"{"level":2}"#.utf8))
    #expect(await log.entries(atLeast: 1) == [2])
    await bridge.drain()
    let counts = bridge.counts
    #expect(counts.received == 2 && counts.malformed == 1 && counts.dispatched == 1 && log.count == 1)
  }
}
