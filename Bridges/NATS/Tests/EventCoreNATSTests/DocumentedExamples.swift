// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// Compiles the examples of the README and of BeyondOneMachine.md, with the public interface alone. Change both
// together.

import EventCore
import EventCoreNATS
import Foundation
import Testing

private struct TemperatureEvent: RemoteEvent {
  static let subject = "sensors.temperature"
  var temperatureInCelsius: Float
}

private struct Job: RemoteEvent {
  static let subject = "jobs"
  var number: Int
}

private struct Position: RemoteEvent {
  static let subject = "game.position"
  var entity: UInt32
  var x: Float
  static var coding: RemoteCoding<Position> {
    RemoteCoding(
      encode: { event in withUnsafeBytes(of: (event.entity, event.x)) { Data($0) } },
      decode: { bytes, _ in
        guard bytes.count == 8 else { throw CocoaError(.coderInvalidValue) }
        return bytes.withUnsafeBytes {
          Position(
            entity: $0.loadUnaligned(as: UInt32.self), x: $0.loadUnaligned(fromByteOffset: 4, as: Float.self))
        }
      })
  }
}

private struct Track: RemoteEvent {
  static let subject = "radar.track"
  static var coding: RemoteCoding<Track> { .cbor }
  var number: Int
  var position: [Double]
  private enum CodingKeys: Int, CodingKey { case number = 1, position }
}

private enum AlarmEvents: CoordinateEvents, RemoteEvent {
  static let subject = "alarms"
  case fire
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
    let jobs = try bridge.subscribe(Job.self, group: "workers")

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

    bridge.publish(Position.self, batch: 64)
    try other.subscribe(Position.self)
    try await other.settle()
    let log = Log<Float>()
    Position.addListener(nil, { event in log.append(event.x) }, executeOn: .listenerThread, on: elsewhere)
    Position(entity: 1, x: 0.5).queue(on: world)
    #expect(await log.entries(atLeast: 1) == [0.5])

    let answers = Log<EventEmission?>()
    try await coordinators(bridge, other, answers)
    #expect(await answers.entries(atLeast: 1) == [.unhandled])

    let price = try await elsewhere.request(PriceQuery(id: 7), expecting: Price.self, within: .seconds(60))
    #expect(price == Price(cents: 7))
    #expect(await other.drain())
    #expect(await jobs.drain())
    #expect(await world.drain())
    #expect(await bridge.drain())
  }

  @MainActor
  private func coordinators(_ bridge: NATSBridge, _ other: NATSBridge, _ answers: Log<EventEmission?>) async throws {
    let (plant, hall) = (Coordinator(), Coordinator())
    try bridge.answerUnhandled(by: plant, as: "plant", carrying: [AlarmEvents.self])
    try other.forwardUnhandled(of: hall, to: "plant", carrying: [AlarmEvents.self]) { event, answer in
      answers.append(try? answer.get())
      if case .success(.handled) = answer { return }
      print("nobody takes care of \(event): \(answer)")
    }
    try await bridge.settle()
    hall.emitEvent(AlarmEvents.fire, includingEmitter: true)
    _ = await answers.entries(atLeast: 1)
    withExtendedLifetime((plant, hall)) {}
  }
}
