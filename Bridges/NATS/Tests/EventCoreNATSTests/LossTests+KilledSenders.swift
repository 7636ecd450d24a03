// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// The sender's process is killed, as when its machine loses its power.
extension LossTests {
  @Test("the sender's process is killed: what waits in its outbox is lost, what was stored or read is not")
  func killedSender() async throws {
    let server = try ServerProcess(["--jetstream"])
    let there = EventCentral()
    let receiver = try await NATSBridge.to(server, on: there)
    try await receiver.makeStream("ORDERS", of: [Order.self])
    let log = Log<Int>()
    Reading.addListener(nil, { event in log.append(-event.number) }, executeOn: .listenerThread, on: there)
    Order.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: there)
    try receiver.subscribe(Reading.self)
    try await receiver.settle()
    await #expect(processExitsWith: .signal(SIGKILL)) { [url = server.url as String] in
      let here = EventCentral()
      let sender = try await NATSBridge(.url(url), on: here)
      sender.publish(Reading.self)
      for number in 1...50 { Reading(number: number).queue(on: here) }
      guard await eventually({ sender.counts.sent == 50 }) else { return }
      // The server has read what was sent.
      try await sender.settle()
      try await sender.publish(Order.self, stream: "ORDERS")
      for number in 1...10_000 { Order(number: number).queue(on: here) }
      guard await eventually({ sender.counts.sent >= 60 }) else { return }
      kill(getpid(), SIGKILL)
    }
    #expect(await log.entries(atLeast: 50) == (1...50).map { -$0 })
    try await receiver.durable(Order.self, stream: "ORDERS", as: "test")
    let stored = await log.entries(atLeast: 60).dropFirst(50)
    await receiver.drain()
    #expect(stored.count >= 10)
    let orders = Array(log.entries.dropFirst(50))
    #expect(orders == Array(1...orders.count), "Those that were stored, and no gap among them.")
    #expect(orders.count < 10_000)
  }
}
