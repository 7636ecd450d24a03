// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Testing

@testable import EventCoreNATS

extension LossCellTests {
  // MARK: Two registrations

  @Test(
    "subscribed to twice: dispatched twice, with a group once", arguments: [nil, "workers"], [false, true])
  func twice(group: String?, byTwo: Bool) async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(), EventCentral())
    let log = Log<Int>()
    Reading.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: there)
    let sender = try await NATSBridge.to(server, on: here)
    sender.publish(Reading.self)
    let one = try await NATSBridge.to(server, on: there)
    let receivers = [one, byTwo ? try await NATSBridge.to(server, on: there) : one]
    for (receiver, subject) in zip(receivers, [Reading.subject, ">"]) {
      if let group {
        try receiver.subscribe(Reading.self, group: group)
      } else {
        try receiver.subscribe(Reading.self, to: subject)
      }
      try await receiver.settle()
    }
    for number in 0..<20 { Reading(number: number).queue(on: here) }
    #expect(await sender.drain())
    for receiver in receivers { await receiver.drain() }
    await there.drain()
    #expect(log.entries.sorted() == (0..<20).flatMap { Array(repeating: $0, count: group == nil ? 2 : 1) })
  }

  @Test("a stream that is used twice under one name: delivered once", arguments: [false, true])
  func streamTwice(byTwo: Bool) async throws {
    let server = try ServerProcess(["--jetstream"])
    let (here, there) = (EventCentral(), EventCentral())
    let log = Log<Int>()
    Order.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: there)
    let sender = try await NATSBridge.to(server, on: here)
    try await sender.makeStream("ORDERS", of: [Order.self])
    try await sender.publish(Order.self, stream: "ORDERS")
    let one = try await NATSBridge.to(server, on: there)
    let receivers = [one, byTwo ? try await NATSBridge.to(server, on: there) : one]
    for receiver in receivers { try await receiver.durable(Order.self, stream: "ORDERS", as: "billing") }
    for number in 0..<20 { Order(number: number).queue(on: here) }
    #expect(await sender.drain())
    _ = await log.entries(atLeast: 20)
    for receiver in receivers { #expect(await receiver.drain()) }
    await there.drain()
    #expect(log.entries.sorted() == Array(0..<20))
  }

  @Test("a coordinator that is a parent twice: asked once")
  func parentTwice() async throws {
    let server = try ServerProcess()
    let asked = Log<String>()
    let plant = try await Machine(server) { event in
      asked.append("\(event)")
      return .handled
    }
    for _ in 1...2 { try await plant.answer(as: "plant") }
    let hall = try await Machine(server)
    try await hall.forward(to: "plant")
    for number in 1...20 { await hall.emit(Incident.smoke(number)) }
    #expect(await hall.log.entries(atLeast: 20).count == 20)
    #expect(await hall.bridge.drain())
    await plant.bridge.drain()
    #expect(asked.count == 20 && hall.log.count == 20)
  }
}
