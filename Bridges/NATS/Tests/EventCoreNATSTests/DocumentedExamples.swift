// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// Compiles the examples of the README and of BeyondOneMachine.md, with the public interface alone. Change both together.

import EventCore
import EventCoreNATS
import Testing

private struct TemperatureEvent: RemoteEvent {
  static let subject = "sensors.temperature"
  var temperatureInCelsius: Float
}

private struct Job: RemoteEvent {
  static let subject = "jobs"
  var number: Int
}

private struct Placed: DurableEvent {
  static let subject = "orders.placed"
  var number: Int
  var delivery: NATSDelivery?
}

@Suite struct DocumentedExamples {
  @Test("the examples of the documentation run as printed, on a server of their own")
  func examples() async throws {
    let server = try ServerProcess(["--jetstream"])
    let world = EventCentral()
    let plant = EventNode(name: "plant")

    let bridge = try await NATSBridge(.url(server.url), on: world)
    bridge.publish(TemperatureEvent.self)
    try bridge.subscribe(TemperatureEvent.self)
    try bridge.subscribe(Job.self, group: "workers")

    try await bridge.makeStream("ORDERS", of: [Placed.self])
    try await bridge.publish(Placed.self, stream: "ORDERS")
    try await bridge.durable(Placed.self, stream: "ORDERS", as: "billing")
    Placed.addListener(nil, { event in event.delivery?.giveBack() }, executeOn: .listenerThread, on: world)

    try bridge.mount(plant, at: "plant", carrying: [Alarm.self])
    try bridge.subscribe(Alarm.self, to: "plant.*.line2.alarm")

    PriceQuery.answer(on: world) { query in Price(cents: query.id) }
    try bridge.answerRequests(PriceQuery.self, with: Price.self)
    let elsewhere = EventCentral()
    let other = try await NATSBridge(.url(server.url, credentials: .none), on: elsewhere)
    try await bridge.settle()
    try other.forwardRequests(PriceQuery.self, expecting: Price.self)
    let price = try await elsewhere.request(PriceQuery(id: 7), expecting: Price.self, within: .seconds(60))
    #expect(price == Price(cents: 7))
    #expect(await other.drain())
    #expect(await bridge.drain())
  }
}
