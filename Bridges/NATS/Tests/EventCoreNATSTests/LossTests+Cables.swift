// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// The connection breaks, and the server lives.
extension LossTests {
  /// Waits until bridges know that their connections have ended, and are there again.
  private func breakDown(_ cable: Cable, _ bridges: [NATSBridge]) async {
    cable.cut()
    #expect(await eventually { bridges.allSatisfy { !$0.isConnected } })
    cable.mend()
    #expect(await eventually { bridges.allSatisfy(\.isConnected) })
  }

  @Test(
    "the connection breaks: what is on its way is lost, nothing is doubled", arguments: [nil, "workers"],
    [Cable.Direction.toServer, .toClient])
  func cut(group: String?, direction: Cable.Direction) async throws {
    let server = try ServerProcess()
    let cable = try Cable(to: server)
    let here = EventCentral()
    let sender = try await NATSBridge.to(direction == .toServer ? cable.url : server.url, on: here)
    let log = Log<Int>()
    let receivers = try await receivers(direction == .toClient ? cable.url : server.url, group, log)
    sender.publish(Reading.self)
    cable.swallow(direction)
    for number in 0..<20 { Reading(number: number).queue(on: here) }
    #expect(await eventually { cable.swallowed(#""number":"#) == 20 })
    #expect(sender.counts.sent == 20)
    await breakDown(cable, direction == .toServer ? [sender] : receivers)
    for receiver in receivers { try await receiver.settle() }
    for number in 20..<120 { Reading(number: number).queue(on: here) }
    #expect(await sender.drain())
    for receiver in receivers { await receiver.drain() }
    let count = receivers.reduce(0) { $0 + $1.counts.dispatched }
    let arrived = await log.entries(atLeast: count)
    // The server may not know yet that a member of the group has gone, and give that one an event.
    if group == nil || direction == .toServer { #expect(arrived.sorted() == Array(20..<120)) }
    #expect(Set(arrived).count == arrived.count && Set(arrived).isSubset(of: 20..<120))
    #expect(!arrived.isEmpty)
  }

  @Test("the connection of a durable receiver breaks: it gets again what the server does not know to be handled")
  func cutReceiver() async throws {
    let server = try ServerProcess(["--jetstream"])
    let cable = try Cable(to: server)
    let (here, there) = (EventCentral(), EventCentral())
    let sender = try await NATSBridge.to(server, on: here)
    try await sender.makeStream("ORDERS", of: [Order.self])
    try await sender.publish(Order.self, stream: "ORDERS")
    let receiver = try await NATSBridge.to(cable.url, on: there)
    let log = Log<String>()
    let thread = EventThread(on: there)
    thread.addEventCallback { (event: Order) in log.append("\(event.number) \(event.delivery?.attempt ?? 0)") }
    var options = NATSBridge.DurableOptions()
    options.patience = .milliseconds(500)
    try await receiver.durable(Order.self, stream: "ORDERS", as: "test", options: options)
    try await receiver.settle()
    cable.swallow(.toServer)
    for number in 1...3 { Order(number: number).queue(on: here) }
    // Three have been handled, of which the server does not hear.
    #expect(await eventually { cable.swallowed("+ACK") == 3 })
    #expect(log.entries == ["1 1", "2 1", "3 1"])
    await breakDown(cable, [receiver])
    #expect(await eventually { Set(log.entries).isSuperset(of: ["1 2", "2 2", "3 2"]) })
    #expect(await sender.drain())
    await receiver.drain()
    await thread.drain()
  }

  @Test("the connection breaks with an event for a parent, or with its answer: told as too late, and not doubled")
  func cutFromParent() async throws {
    let server = try ServerProcess()
    let cable = try Cable(to: server)
    let asked = Log<String>()
    let plant = try await Machine(server) { event in
      asked.append("\(event)")
      return .handled
    }
    try await plant.answer(as: "plant")
    let hall = try await Machine(at: cable.url)
    let limit = Duration.milliseconds(1000)
    try await hall.forward(to: "plant", within: limit)
    cable.swallow(.toServer)
    await hall.emit(Incident.smoke(1))
    #expect(await eventually { cable.swallowed("smoke") == 1 })
    await breakDown(cable, [hall.bridge])
    #expect(await hall.log.entries(atLeast: 1) == ["smoke(1) \(EventWaitError.timedOut(limit))"])
    cable.swallow(.toClient)
    await hall.emit(Incident.smoke(2))
    #expect(await eventually { cable.swallowed("handled") == 1 })
    await breakDown(cable, [hall.bridge])
    #expect(await hall.log.entries(atLeast: 2).last == "smoke(2) \(EventWaitError.timedOut(limit))")
    await hall.emit(Incident.smoke(3))
    #expect(await hall.log.entries(atLeast: 3).last == "smoke(3) handled")
    #expect(asked.entries == ["smoke(2)", "smoke(3)"])
    hall.bridge.close()
    plant.bridge.close()
  }
}
