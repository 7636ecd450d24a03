// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// Holds up the thread of the client that takes it from the network.
private enum Parcel: CoordinateEvents, RemoteEvent, Equatable {
  static let subject = "tests.parcel"
  static let gate = DispatchSemaphore(value: 0)
  case number(Int)
  mutating func arrived(_ origin: RemoteOrigin) { Self.gate.wait() }
}

/// What is too late, refused or lost on the way to a parent, and who is told of it.
extension CoordinatorTests {
  @Test("too late: the parent takes longer than the child waits, or the server is away")
  func late() async throws {
    let server = try ServerProcess()
    let gate = DispatchSemaphore(value: 0)
    let asked = Log<String>()
    let plant = try await Machine(server) { event in
      asked.append("\(event)")
      if case Incident.smoke(1) = event { gate.wait() }
      return .handled
    }
    try await plant.answer(as: "plant")
    let hall = try await Machine(server)
    let timedOut = "\(EventWaitError.timedOut(.milliseconds(50)))"
    let forwarding = try await hall.forward(to: "plant", within: .milliseconds(50))
    await hall.emit(Incident.smoke(1))
    #expect(await hall.log.entries(atLeast: 1) == ["smoke(1) \(timedOut)"])
    gate.signal()
    server.stop()
    #expect(await eventually { !hall.bridge.isConnected })
    await hall.emit(Incident.smoke(2))
    #expect(await hall.log.entries(atLeast: 2).last == "smoke(2) \(timedOut)")
    forwarding.remove()
    try server.restart()
    #expect(await eventually { hall.bridge.isConnected && plant.bridge.isConnected })
    try await plant.bridge.settle()
    // What was too late does not leave when the server is back; what comes after it does.
    try await hall.forward(to: "plant")
    await hall.emit(Incident.smoke(3))
    #expect(await hall.log.entries(atLeast: 3).last == "smoke(3) handled")
    #expect(asked.entries.last == "smoke(3)" && !asked.entries.contains("smoke(2)"))
    // It was too late before the drain.
    #expect(await hall.bridge.drain())
    // The first one as well, if this machine takes so long.
    #expect((1...2).contains(hall.bridge.counts.unsent))
    await plant.bridge.drain()
  }

  @Test("a parent that is slower than its children: the client drops, which is counted and told as too late")
  func overrun() async throws {
    let server = try ServerProcess()
    let asked = Log<String>()
    let plant = try await Machine(server, inbox: 10) { event in
      asked.append("\(event)")
      return .handled
    }
    try await plant.answer(as: "plant", carrying: [Parcel.self])
    let hall = try await Machine(server)
    let limit = Duration.milliseconds(1500)
    try await hall.forward(to: "plant", within: limit, carrying: [Parcel.self])
    for number in 0..<100 { await hall.emit(Parcel.number(number)) }
    #expect(await eventually { plant.bridge.counts.overrun > 80 })
    for _ in 0..<100 { Parcel.gate.signal() }
    // Each once.
    let told = await hall.log.entries(atLeast: 100)
    #expect(Set(told.map { $0.prefix { $0 != " " } }).count == 100)
    await plant.bridge.drain()
    #expect(await hall.bridge.drain())
    #expect(hall.log.count == 100)
    let counts = plant.bridge.counts
    // The hall keeps back what was too late before it left, if this machine takes so long.
    #expect(counts.received + counts.overrun + hall.bridge.counts.unsent == 100)
    #expect(asked.count == counts.dispatched)
    let late = Set(told.filter { $0.hasSuffix(" \(EventWaitError.timedOut(limit))") })
    let handled = Set(told.filter { $0.hasSuffix(" handled") })
    #expect(late.count + handled.count == 100)
    #expect(late.count >= counts.overrun)
    #expect(handled.isSubset(of: asked.entries.map { "\($0) handled" }))
  }

  @Test("closed, full, and removed")
  func ends() async throws {
    let server = try ServerProcess()
    let gate = DispatchSemaphore(value: 0)
    let plant = try await Machine(server) { _ in
      gate.wait()
      return .handled
    }
    try await plant.answer(as: "plant")
    let hall = try await Machine(server)
    let forwarding = try await hall.forward(to: "plant")
    await hall.emit(Incident.smoke(1))
    #expect(await eventually { plant.bridge.counts.dispatched == 1 })
    forwarding.remove()
    #expect(await hall.log.entries(atLeast: 1) == ["smoke(1) closed"])
    // Nobody tells of what is not passed on any more.
    #expect(await hall.emit(Incident.smoke(2)) == [.unhandled])
    try await hall.forward(to: "plant")
    await hall.emit(Incident.smoke(3))
    hall.bridge.close()
    #expect(await hall.log.entries(atLeast: 2).last == "smoke(3) closed")
    gate.signal()
    gate.signal()
    plant.bridge.close()
  }

  @Test("with the server away and the outbox full, what it refuses is told at once")
  func full() async throws {
    let server = try ServerProcess()
    let hall = try await Machine(server, outbox: .bounded(1, whenFull: .refuse))
    try await hall.forward(to: "plant")
    server.stop()
    #expect(await eventually { !hall.bridge.isConnected })
    // One waits, and one may be with the thread that sends.
    for number in 0..<5 { await hall.emit(Incident.smoke(number)) }
    #expect(await hall.log.entries(atLeast: 3).allSatisfy { $0.hasSuffix(" other") })
    hall.bridge.close()
    let closed = await hall.log.entries(atLeast: 5).filter { $0.hasSuffix(" closed") }
    // It is told before it is counted as dropped.
    #expect(await eventually { closed.count == hall.bridge.counts.outbox.accepted })
  }

  @Test("what the outbox displaces is told at once", arguments: cores)
  func displaced(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let hall = try await Machine(server, core, outbox: .bounded(1, whenFull: .dropOldest))
    try await hall.forward(to: "plant")
    server.stop()
    #expect(await eventually { !hall.bridge.isConnected })
    // The last one waits, and one may be with the thread that sends.
    for number in 0..<5 { await hall.emit(Incident.smoke(number)) }
    #expect(await hall.log.entries(atLeast: 3).allSatisfy { $0.hasSuffix(" other") })
    hall.bridge.close()
    #expect(await hall.log.entries(atLeast: 5).contains("smoke(4) closed"))
  }

  /// A parent that logs what it is asked, and keeps a leak until the gate opens.
  private func plant(
    _ server: ServerProcess, _ asked: Log<String>, _ gate: DispatchSemaphore
  ) async throws -> Machine {
    let plant = try await Machine(server) { event in
      asked.append("\(event)")
      if case Incident.leak = event { gate.wait() }
      return .handled
    }
    try await plant.answer(as: "plant")
    return plant
  }

  @Test("a partition that ends in time costs nothing; a parent that ends with the event is too late; a drain tells")
  func breaks() async throws {
    let server = try ServerProcess()
    let gate = DispatchSemaphore(value: 0)
    let asked = Log<String>()
    let plant = try await plant(server, asked, gate)
    let hall = try await Machine(server)
    try await hall.forward(to: "plant")
    server.freeze()
    await hall.emit(Incident.smoke(1))
    server.thaw()
    #expect(await hall.log.entries(atLeast: 1) == ["smoke(1) handled"])
    try await hall.forward(to: "plant", within: .milliseconds(200))
    await hall.emit(Incident.leak(pipe: "a"))
    // If this machine takes so long, it is too late before it leaves.
    #expect(await eventually { asked.count == 2 || hall.log.count == 2 })
    plant.bridge.close()
    #expect(
      await hall.log.entries(atLeast: 2).last == #"leak(pipe: "a") \#(EventWaitError.timedOut(.milliseconds(200)))"#)
    gate.signal()
    let (begun, last) = (Log<String>(), DispatchSemaphore(value: 0))
    let other = try await Machine(server) { event in
      begun.append("\(event)")
      last.wait()
      return .handled
    }
    try await other.answer(as: "plant")
    try await hall.forward(to: "plant")
    await hall.emit(Incident.leak(pipe: "b"))
    #expect(await begun.entries(atLeast: 1).count == 1)
    #expect(await hall.bridge.drain())
    #expect(await hall.log.entries(atLeast: 3).last == #"leak(pipe: "b") closed"#)
    last.signal()
    other.bridge.close()
  }

  @Test("the server dies with an event, or with its answer: told as too late, and not doubled")
  func serverDies() async throws {
    let server = try ServerProcess()
    let (asked, gate) = (Log<String>(), DispatchSemaphore(value: 0))
    let plant = try await plant(server, asked, gate)
    let hall = try await Machine(server)
    let limit = Duration.milliseconds(2000)
    try await hall.forward(to: "plant", within: limit)
    func die() async throws {
      server.stop()
      #expect(await eventually { !hall.bridge.isConnected && !plant.bridge.isConnected })
      try server.restart()
      #expect(await eventually { hall.bridge.isConnected && plant.bridge.isConnected })
      try await plant.bridge.settle()
    }
    await hall.emit(Incident.leak(pipe: "a"))
    #expect(await asked.entries(atLeast: 1).count == 1)
    server.freeze()
    let before = plant.bridge.messagesOut
    gate.signal()
    #expect(await eventually { plant.bridge.messagesOut > before })
    // Its client has written the answer, to a server that does not read it.
    await #expect(throws: NATSBridgeError.self) { try await plant.bridge.settle(within: .milliseconds(50)) }
    try await die()
    #expect(await hall.log.entries(atLeast: 1) == ["leak(pipe: \"a\") \(EventWaitError.timedOut(limit))"])
    server.freeze()
    await hall.emit(Incident.smoke(1))
    #expect(await eventually { hall.bridge.counts.sent == 2 })
    await #expect(throws: NATSBridgeError.self) { try await hall.bridge.settle(within: .milliseconds(50)) }
    try await die()
    #expect(await hall.log.entries(atLeast: 2).last == "smoke(1) \(EventWaitError.timedOut(limit))")
    await hall.emit(Incident.smoke(2))
    #expect(await hall.log.entries(atLeast: 3).last == "smoke(2) handled")
    #expect(asked.entries == ["leak(pipe: \"a\")", "smoke(2)"])
    hall.bridge.close()
    plant.bridge.close()
  }

  @Test("while the server is away an event waits in the outbox, and is answered within the limit")
  func waits() async throws {
    let server = try ServerProcess()
    let plant = try await Machine(server) { _ in .handled }
    try await plant.answer(as: "plant")
    let hall = try await Machine(server)
    try await hall.forward(to: "plant")
    // Until the plant is there again, or else the event would come to nobody.
    await Held.hold(hall.bridge)
    server.stop()
    #expect(await eventually { !hall.bridge.isConnected && !plant.bridge.isConnected })
    await hall.emit(Incident.smoke(1))
    try server.restart()
    #expect(await eventually { hall.bridge.isConnected && plant.bridge.isConnected })
    try await plant.bridge.settle()
    Held.gate.signal()
    #expect(await hall.log.entries(atLeast: 1) == ["smoke(1) handled"])
    hall.bridge.close()
    plant.bridge.close()
  }

  @Test("an event whose subject the server forbids is told as too late, and as a fault")
  func forbidden() async throws {
    let server = try ServerProcess(
      configuration: """
        authorization { users: [ { user: a, password: b, permissions: { publish: { deny: "eventcore.emission.plant.>" } } } ] }
        no_auth_user: a
        """)
    let world = EventCentral()
    let faults = Log<String>()
    NATSStatus.addListener(
      nil, { status in if case .fault(let text) = status.change { faults.append(text) } },
      executeOn: .listenerThread, on: world)
    let plant = try await Machine(server) { _ in .handled }
    try await plant.answer(as: "plant")
    let hall = try await Machine(server, on: world)
    let limit = Duration.milliseconds(300)
    try await hall.forward(to: "plant", within: limit)
    await hall.emit(Incident.smoke(1))
    #expect(await hall.log.entries(atLeast: 1) == ["smoke(1) \(EventWaitError.timedOut(limit))"])
    #expect(await faults.entries(atLeast: 1).count == 1)
    hall.bridge.close()
    plant.bridge.close()
  }
}
