// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// Requests and emissions go under subjects that no pattern of events has.
@Suite struct OwnSubjectTests {
  @Test("a stream of a pattern over the events' subjects answers neither requests nor emissions", arguments: cores)
  func stream(core: EventCentral.Core) async throws {
    let server = try ServerProcess(["--jetstream"])
    let raw = try RawClient(server)
    try raw.makeStream("ALL", of: "tests.>")
    let (here, there) = (EventCentral(core: core), EventCentral(core: core))
    let (asking, answering) = (try await NATSBridge.to(server, on: here), try await NATSBridge.to(server, on: there))
    try asking.forwardRequests(PriceQuery.self, expecting: Price.self, within: .seconds(60))
    await #expect(throws: EventWaitError.nobodyAnswers) {
      try await here.request(PriceQuery(id: 1), expecting: Price.self)
    }
    let gate = DispatchSemaphore(value: 0)
    PriceQuery.answer(on: there) { query in
      gate.wait()
      return Price(cents: query.id)
    }
    try answering.answerRequests(PriceQuery.self, with: Price.self)
    try await answering.settle()
    async let price = here.request(PriceQuery(id: 2), expecting: Price.self, within: .seconds(60))
    // The stream would have answered before.
    #expect(await eventually { answering.counts.dispatched == 1 })
    raw.flush()
    try await asking.settle()
    gate.signal()
    #expect(try await price == Price(cents: 2))
    let (hall, plant) = (try await Machine(server, core), try await Machine(server, core) { _ in .handled })
    try await hall.forward(to: "tests.plant", carrying: [Incident.self])
    await hall.emit(Incident.smoke(1))
    #expect(await hall.log.entries(atLeast: 1) == ["smoke(1) \(EventWaitError.nobodyAnswers)"])
    try await plant.answer(as: "tests.plant", carrying: [Incident.self])
    await hall.emit(Incident.smoke(2))
    #expect(await hall.log.entries(atLeast: 2).last == "smoke(2) handled")
    #expect(try raw.stream("ALL") { $0.State.Msgs } == 0)
    for bridge in [asking, answering, hall.bridge, plant.bridge] { await bridge.drain() }
  }

  @Test("that nobody answers is told at once, also to those whose subjects others hear by patterns", arguments: cores)
  func patterns(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let here = EventCentral(core: core)
    let (asking, other) = (
      try await NATSBridge.to(server, on: here), try await NATSBridge.to(server, on: EventCentral(core: core))
    )
    let plant = EventNode(name: "plant", core: core)
    try other.mount(plant, at: "plant", carrying: [Alarm.self])
    try other.subscribe(PriceQuery.self, to: "tests.>")
    try await other.settle()
    try asking.forwardRequests(PriceQuery.self, expecting: Price.self, within: .seconds(20))
    await #expect(throws: EventWaitError.nobodyAnswers) {
      try await here.request(PriceQuery(id: 1), expecting: Price.self, within: .seconds(60))
    }
    let hall = try await Machine(server, core)
    try await hall.forward(to: "plant", within: .seconds(20), carrying: [Incident.self])
    await hall.emit(Incident.smoke(1))
    #expect(await hall.log.entries(atLeast: 1) == ["smoke(1) \(EventWaitError.nobodyAnswers)"])
    #expect(other.counts.received == 0)
    for bridge in [asking, other, hall.bridge] { await bridge.drain() }
    withExtendedLifetime(plant) {}
  }
}
