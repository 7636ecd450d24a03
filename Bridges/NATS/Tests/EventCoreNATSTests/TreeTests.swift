// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import Testing

@testable import EventCoreNATS

struct Alarm: RemoteEvent, Equatable {
  static let subject = "alarm"
  var level: Int
}

@Suite struct TreeTests {
  /// A plant with two halls, and two lines in the first of them.
  struct Plant: Sendable {
    let root: EventNode, hall1: EventNode, hall2: EventNode, line1: EventNode, line2: EventNode
    let log = Log<String>()

    init(_ core: EventCentral.Core) {
      root = EventNode(name: "plant", core: core)
      hall1 = EventNode(parent: root, name: "hall1")
      hall2 = EventNode(parent: root, name: "hall 2.b")
      line1 = EventNode(parent: hall1, name: "line1")
      line2 = EventNode(parent: hall1, name: "line2")
      for node in [root, hall1, hall2, line1, line2] {
        let log = log
        let name = node.name!
        node.addHandler(.onRaise) { (event: Alarm) in log.append("\(name) \(event.level)") }
      }
    }
  }

  @Test("what came in from another machine and a tree dispatches does not go out again", arguments: cores)
  func dispatchedByTree(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(core: core), EventCentral(core: core))
    let (sender, receiver) = (try await NATSBridge.to(server, on: here), try await NATSBridge.to(server, on: there))
    let (plant, mirror) = (Plant(core), Plant(core))
    try sender.mount(plant.root, at: "tests.plant", carrying: [Alarm.self])
    try receiver.mount(mirror.root, at: "tests.plant", carrying: [Alarm.self])
    try await receiver.settle()
    let log = Log<Int>()
    Alarm.addListener(nil, { event in log.append(event.level) }, executeOn: .listenerThread, on: there)
    mirror.root.dispatchEvents(of: Alarm.self, to: there, .onRaise)
    receiver.publish(Alarm.self)
    plant.line2.raise(event: Alarm(level: 1))
    #expect(await log.entries(atLeast: 1) == [1])
    // What is raised here is new.
    mirror.line2.raise(event: Alarm(level: 2))
    #expect(await log.entries(atLeast: 2) == [1, 2])
    #expect(await receiver.drain())
    // Once from the tree, and once from the central.
    #expect(receiver.counts.sent == 2)
    await sender.drain()
  }

  @Test("an event that is raised at a node is raised at the node of that name, and goes no further", arguments: cores)
  func raisedThere(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let plants = [Plant(core), Plant(core), Plant(core)]
    var bridges: [NATSBridge] = []
    for plant in plants {
      let bridge = try await NATSBridge.to(server, on: EventCentral(core: core))
      try bridge.mount(plant.root, at: "site.plant", carrying: [Alarm.self, Reading.self])
      try await bridge.settle()
      bridges.append(bridge)
    }
    plants[0].line2.raise(event: Alarm(level: 1))
    for plant in plants { #expect(await plant.log.entries(atLeast: 3) == ["line2 1", "hall1 1", "plant 1"]) }
    plants[1].hall2.raise(event: Alarm(level: 2))
    for plant in plants { #expect(await plant.log.entries(atLeast: 5).suffix(2) == ["hall 2.b 2", "plant 2"]) }
    plants[2].root.raise(event: Alarm(level: 3))
    for plant in plants { #expect(await plant.log.entries(atLeast: 6).suffix(1) == ["plant 3"]) }
    for bridge in bridges { #expect(await bridge.drain()) }
    #expect(plants.map(\.log.count) == [6, 6, 6])
    #expect(bridges.map(\.counts.sent) == [1, 1, 1])
  }

  @Test("subtrees, consumed events, and names that are nowhere")
  func edges() async throws {
    let server = try ServerProcess()
    let (here, there) = (Plant(.default), Plant(.default))
    let sender = try await NATSBridge.to(server, on: EventCentral())
    let receiver = try await NATSBridge.to(server, on: EventCentral())
    // A part of the tree here is the whole tree there.
    let mounted = try sender.mount(here.hall1, at: "hall", carrying: [Alarm.self])
    try receiver.mount(there.root, at: "hall", carrying: [Alarm.self])
    try await receiver.settle()
    let guarding = here.line1.addHandler([.onRaise, .consumeEvent]) { (_: Alarm) in }
    here.line1.raise(event: Alarm(level: 1))   // consumed below the node
    here.hall2.raise(event: Alarm(level: 2))   // beside the node
    here.root.raise(event: Alarm(level: 3))    // above the node
    here.line2.raise(event: Alarm(level: 4))   // the tree there has no line2 below its root
    here.hall1.raise(event: Alarm(level: 5))
    #expect(await there.log.entries(atLeast: 1) == ["plant 5"])
    #expect(receiver.counts.unheard == 1)
    guarding.remove()
    mounted.remove()
    here.hall1.raise(event: Alarm(level: 6))
    #expect(await sender.drain())
    await receiver.drain()
    #expect(sender.counts.sent == 2)
    #expect(there.log.count == 1)
  }

  @Test("what waits in the outbox when a mount is removed is not sent, and counted; when its node ends, it is sent")
  func removed() async throws {
    let server = try ServerProcess()
    let (sender, receiver) = (try await NATSBridge.to(server, on: .init()), try await NATSBridge.to(server, on: .init()))
    let log = Log<Int>()
    Alarm.addListener(nil, { event in log.append(event.level) }, executeOn: .listenerThread, on: receiver.central)
    try receiver.subscribe(Alarm.self, to: "plants.>")
    try await receiver.settle()
    let removed = EventNode(name: "removed")
    var ended: EventNode? = EventNode(name: "ended")
    let mounts = [
      try sender.mount(removed, at: "plants.removed", carrying: [Alarm.self]),
      try sender.mount(ended!, at: "plants.ended", carrying: [Alarm.self]),
    ]
    await Held.hold(sender)
    for level in 1...5 {
      removed.raise(event: Alarm(level: -level))
      ended!.raise(event: Alarm(level: level))
    }
    mounts[0].remove()
    ended = nil
    #expect(await eventually { !mounts[1].isActive })
    Held.gate.signal()
    #expect(await eventually { sender.counts.outbox.waiting == 0 })
    await sender.drain()
    await receiver.drain()
    await receiver.central.drain()
    #expect(log.entries == [1, 2, 3, 4, 5])
    #expect(sender.counts.sent == 6 && sender.counts.unsent == 5)
  }

  @Test("a pattern brings what many nodes raise, with their paths")
  func patterns() async throws {
    struct Seen: RemoteEvent {
      static let subject = Alarm.subject
      static let remoteName = Alarm.remoteName
      var level: Int
      var from: String?
      mutating func arrived(_ origin: RemoteOrigin) { from = origin.subject }
    }
    let server = try ServerProcess()
    let plant = Plant(.default)
    let world = EventCentral()
    let sender = try await NATSBridge.to(server, on: EventCentral())
    let receiver = try await NATSBridge.to(server, on: world)
    try sender.mount(plant.root, at: "plant", carrying: [Alarm.self])
    let log = Log<String>()
    Seen.addListener(nil, { event in log.append(event.from ?? "") }, executeOn: .listenerThread, on: world)
    try receiver.subscribe(Seen.self, to: "plant.hall1.*.alarm")
    try await receiver.settle()
    plant.line1.raise(event: Alarm(level: 1))
    plant.hall1.raise(event: Alarm(level: 2))
    plant.line2.raise(event: Alarm(level: 3))
    #expect(await log.entries(atLeast: 2) == ["plant.hall1.line1.alarm", "plant.hall1.line2.alarm"])
    #expect(await sender.drain())
    await receiver.drain()
  }

  @Test("what is raised below one of several mounted nodes of a bridge goes out once (D4)")
  func twoMounts() async throws {
    let server = try ServerProcess()
    let (here, there) = (Plant(.default), Plant(.default))
    let sender = try await NATSBridge.to(server, on: EventCentral())
    let receiver = try await NATSBridge.to(server, on: EventCentral())
    for (name, node) in [("line1", here.line1), ("line2", here.line2)] {
      try sender.mount(node, at: "lines.\(name)", carrying: [Alarm.self])
    }
    try receiver.mount(there.hall1, at: "lines", carrying: [Alarm.self])
    try await receiver.settle()
    for level in 1...3 { here.line1.raise(event: Alarm(level: level)) }
    #expect(await sender.drain())
    await receiver.drain()
    #expect(there.log.entries.filter { $0.hasPrefix("line1") } == ["line1 1", "line1 2", "line1 3"])
    #expect(sender.counts.sent == 3)
  }

  @Test("a path that is longer than the server takes is counted, and the bridge goes on")
  func longPath() async throws {
    let server = try ServerProcess()
    let (here, there) = (Plant(.default), Plant(.default))
    let sender = try await NATSBridge.to(server, on: EventCentral())
    let receiver = try await NATSBridge.to(server, on: EventCentral())
    let long = EventNode(parent: here.root, name: String(repeating: " ", count: 1400))
    // Another one that the server just takes.
    let short = EventNode(parent: here.root, name: String(repeating: " ", count: 1325))
    try sender.mount(here.root, at: "plant", carrying: [Alarm.self])
    try receiver.mount(there.root, at: "plant", carrying: [Alarm.self])
    try await receiver.settle()
    long.raise(event: Alarm(level: 1))
    short.raise(event: Alarm(level: 2))
    here.hall1.raise(event: Alarm(level: 3))
    #expect(await there.log.entries(atLeast: 2) == ["hall1 3", "plant 3"])
    #expect(sender.isConnected)
    #expect(await sender.drain())
    await receiver.drain()
    #expect(sender.counts.tooLarge == 1 && sender.counts.sent == 2)
    #expect(receiver.counts.unheard == 1)
  }

  @Test("a name may begin with a mark that combines with what is before it")
  func combiningNames() async throws {
    let server = try ServerProcess()
    let (here, there) = (Plant(.default), Plant(.default))
    let sender = try await NATSBridge.to(server, on: EventCentral())
    let receiver = try await NATSBridge.to(server, on: EventCentral())
    let name = "\u{301}a"
    let node = EventNode(parent: here.hall1, name: name)
    let twin = EventNode(parent: there.hall1, name: name)
    twin.addHandler(.onRaise) { [log = there.log] (event: Alarm) in log.append("twin \(event.level)") }
    try sender.mount(here.root, at: "plant", carrying: [Alarm.self])
    try receiver.mount(there.root, at: "plant", carrying: [Alarm.self])
    try await receiver.settle()
    node.raise(event: Alarm(level: 1))
    #expect(await sender.drain())
    await receiver.drain()
    #expect(there.log.entries == ["twin 1", "hall1 1", "plant 1"])
  }

  @Test("names that differ only in their Unicode form are those of two nodes")
  func unicodeForms() async throws {
    let server = try ServerProcess()
    let (here, there) = (Plant(.default), Plant(.default))
    let sender = try await NATSBridge.to(server, on: EventCentral())
    let receiver = try await NATSBridge.to(server, on: EventCentral())
    let names = ["\u{E9}", "e\u{301}"]
    let nodes = names.map { EventNode(parent: here.line1, name: $0) }
    let twins = names.map { EventNode(parent: there.line1, name: $0) }
    for (number, twin) in twins.enumerated() {
      twin.addHandler(.onRaise) { [log = there.log] (event: Alarm) in log.append("twin \(number), \(event.level)") }
    }
    try sender.mount(here.root, at: "plant", carrying: [Alarm.self])
    try receiver.mount(there.root, at: "plant", carrying: [Alarm.self])
    try await receiver.settle()
    for (number, node) in nodes.enumerated() { node.raise(event: Alarm(level: number)) }
    #expect(await sender.drain())
    await receiver.drain()
    #expect(there.log.entries.filter { $0.hasPrefix("twin") } == ["twin 0, 0", "twin 1, 1"])
  }

  @Test(
    "what a handler of an arrived event raises at the same node goes out, and what a task of its raises (D7)",
    arguments: cores, [false, true])
  func tasks(core: EventCentral.Core, isMeanwhile: Bool) async throws {
    let server = try ServerProcess()
    let (here, there) = (Plant(core), Plant(core))
    let sender = try await NATSBridge.to(server, on: EventCentral(core: core))
    let receiver = try await NATSBridge.to(server, on: EventCentral(core: core))
    let (gate, raised, hasRaised) = (Log<Void>(), Log<Void>(), DispatchSemaphore(value: 0))
    there.line1.addHandler(.onRaise) { [weak line1 = there.line1, line2 = there.line2] (event: Alarm) in
      guard event.level == 1 else { return }
      Task {
        _ = await gate.entries(atLeast: 1)
        line1?.raise(event: Alarm(level: 2))
        hasRaised.signal()
        raised.append(())
      }
      line1?.raise(event: Alarm(level: 3))
      line2.raise(event: Alarm(level: 4))
      guard isMeanwhile else { return }
      gate.append(())
      #expect(hasRaised.wait(timeout: .now() + 120) == .success)
    }
    try sender.mount(here.root, at: "plant", carrying: [Alarm.self])
    try receiver.mount(there.root, at: "plant", carrying: [Alarm.self])
    try await sender.settle()
    try await receiver.settle()
    here.line1.raise(event: Alarm(level: 1))
    // When the raise has returned.
    #expect(await eventually { receiver.counts.dispatched == 1 })
    gate.append(())
    #expect(await raised.entries(atLeast: 1).count == 1)
    #expect(await receiver.drain())
    await sender.drain()
    #expect(receiver.counts.sent == 3)
    #expect(here.log.entries.filter { $0.hasPrefix("line") } == ["line1 1", "line1 3", "line2 4", "line1 2"])
  }

  @Test("a mount ends with its node (D9)", arguments: cores)
  func nodeEnds(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let bridge = try await NATSBridge.to(server, on: EventCentral())
    let registration: RemoteRegistration
    do {
      let node = EventNode(name: "plant", core: core)
      registration = try bridge.mount(node, at: "plant", carrying: [Alarm.self, Reading.self])
      #expect(registration.isActive)
    }
    #expect(await eventually(within: .seconds(20)) { !registration.isActive })
    let raw = try RawClient(server)
    #expect(await eventually(within: .seconds(20)) { !raw.hasSubscribers("plant.alarm") })
    bridge.close()
  }

  @Test("a mount that throws leaves no handlers at the node")
  func failedMount() async throws {
    let server = try ServerProcess()
    let plant = Plant(.default)
    let bridge = try await NATSBridge.to(server, on: EventCentral())
    let before = plant.root.diagram()
    bridge.close()
    #expect(throws: NATSBridgeError.self) { try bridge.mount(plant.root, at: "plant", carrying: [Alarm.self]) }
    #expect(plant.root.diagram() == before)
  }

  @Test("the last reference of a bridge may go in a handler that it has called (D7, D9)")
  func endsInside() async throws {
    let server = try ServerProcess()
    let (here, there) = (EventNode(name: "a"), EventNode(name: "a"))
    let sender = try await NATSBridge.to(server, on: EventCentral())
    let holder = Locked<NATSBridge?>(try await NATSBridge.to(server, on: EventCentral()))
    let log = Log<Int>()
    there.addHandler(.onRaise) { (event: Alarm) in
      let last = holder.withLock { holder in
        defer { holder = nil }
        return holder
      }
      withExtendedLifetime(last) {}
      log.append(event.level)
    }
    try holder.withLock { $0 }?.mount(there, at: "a", carrying: [Alarm.self])
    try await holder.withLock { $0 }?.settle()
    try sender.mount(here, at: "a", carrying: [Alarm.self])
    here.raise(event: Alarm(level: 1))
    #expect(await log.entries(atLeast: 1) == [1])
    here.raise(event: Alarm(level: 2))
    #expect(await sender.drain())
    #expect(log.entries == [1])
  }
}
