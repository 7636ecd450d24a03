// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreNATS
import Foundation
import Testing

struct PriceQuery: RemoteEvent {
  static let subject = "tests.price"
  var id: Int
}

struct Price: Codable, Sendable, Equatable {
  var cents: Int
}

@Suite struct RequestTests {
  struct NoSuchThing: Error {}

  @Test("a request finds its answer on another machine", arguments: cores, [false, true])
  func answers(core: EventCentral.Core, atOnce: Bool) async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(core: core), EventCentral(core: core))
    let asking = try await NATSBridge.to(server, on: here) { $0.sendsAtOnce = atOnce }
    let answering = try await NATSBridge.to(server, on: there) { $0.sendsAtOnce = atOnce }
    PriceQuery.answer(on: there) { query in
      guard query.id >= 0 else { throw NoSuchThing() }
      return Price(cents: query.id * 100)
    }
    try answering.answerRequests(PriceQuery.self, with: Price.self)
    try await answering.settle()
    try asking.forwardRequests(PriceQuery.self, expecting: Price.self, within: .seconds(60))
    try await withThrowingTaskGroup(of: Bool.self) { group in
      for id in 0..<200 {
        group.addTask {
          let price = try await here.request(PriceQuery(id: id), expecting: Price.self, within: .seconds(60))
          return price == Price(cents: id * 100)
        }
      }
      for try await isRight in group { #expect(isRight) }
    }
    await #expect {
      try await here.request(PriceQuery(id: -1), expecting: Price.self)
    } throws: { ($0 as? NATSBridgeError)?.reason == .answerFailed && "\($0)".contains("NoSuchThing") }
    #expect(await asking.drain())
    await answering.drain()
  }

  @Test("nobody there, too late, and nobody any more")
  func failures() async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(), EventCentral())
    let asking = try await NATSBridge.to(server, on: here)
    let patient = try asking.forwardRequests(PriceQuery.self, expecting: Price.self, within: .seconds(60))
    await #expect(throws: EventWaitError.nobodyAnswers) {
      try await here.request(PriceQuery(id: 1), expecting: Price.self)
    }
    // A bridge that has no answerer behind it.
    let answering = try await NATSBridge.to(server, on: there)
    try answering.answerRequests(PriceQuery.self, with: Price.self)
    try await answering.settle()
    await #expect(throws: EventWaitError.nobodyAnswers) {
      try await here.request(PriceQuery(id: 1), expecting: Price.self)
    }
    // One that does not come to an end.
    let gate = DispatchSemaphore(value: 0)
    PriceQuery.answer(on: there) { _ in
      gate.wait()
      return Price(cents: 1)
    }
    patient.remove()
    let forwarding = try asking.forwardRequests(PriceQuery.self, expecting: Price.self, within: .milliseconds(50))
    await #expect(throws: EventWaitError.timedOut(.milliseconds(50))) {
      try await here.request(PriceQuery(id: 1), expecting: Price.self)
    }
    gate.signal()
    forwarding.remove()
    await #expect(throws: EventWaitError.nobodyAnswers) {
      try await here.request(PriceQuery(id: 1), expecting: Price.self)
    }
    asking.close()
    answering.close()
  }

  @Test("while an answerer here has a request, it does not count that nobody answers there", arguments: cores)
  func slowerHere(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let here = EventCentral(core: core)
    let asking = try await NATSBridge.to(server, on: here)
    let forwarding = try asking.forwardRequests(
      PriceQuery.self, expecting: Price.self, within: .seconds(60), concurrency: 1)
    let gate = DispatchSemaphore(value: 0)
    let answerer = PriceQuery.answer(on: here) { query in
      gate.wait()
      guard query.id >= 0 else { throw NoSuchThing() }
      return Price(cents: query.id)
    }
    for round in 1...3 {
      let before = asking.messagesOut
      let requests = (1...2).map { id in
        Task { try await here.request(PriceQuery(id: id * round), expecting: Price.self, within: .seconds(60)) }
      }
      // The second one leaves when the bridge has heard that nobody answers the first.
      #expect(await eventually { asking.messagesOut >= before + 2 })
      for _ in requests { gate.signal() }
      for (number, request) in requests.enumerated() {
        #expect(try await request.value == Price(cents: (number + 1) * round))
      }
    }
    gate.signal()
    await #expect(throws: NoSuchThing.self) { try await here.request(PriceQuery(id: -1), expecting: Price.self) }
    gate.signal()
    let all = try await here.requestAll(PriceQuery(id: 4), expecting: Price.self)
    #expect(try all.map { try $0.get() } == [Price(cents: 4)])
    answerer.remove()
    await #expect(throws: EventWaitError.nobodyAnswers) {
      try await here.request(PriceQuery(id: 5), expecting: Price.self)
    }
    forwarding.remove()
    asking.close()
  }

  @Test("an answer that is too late comes to the machine where it was made, as a failure")
  func lateAnswers() async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(), EventCentral())
    let asking = try await NATSBridge.to(server, on: here)
    let answering = try await NATSBridge.to(server, on: there)
    let gate = DispatchSemaphore(value: 0)
    PriceQuery.answer(on: there) { query in
      gate.wait()
      return Price(cents: query.id)
    }
    let failures = Log<EventFailure>()
    let thread = EventThread(on: there)
    thread.addEventCallback { (failure: EventFailure) in failures.append(failure) }
    try answering.answerRequests(PriceQuery.self, with: Price.self, within: .milliseconds(50))
    try await answering.settle()
    try asking.forwardRequests(PriceQuery.self, expecting: Price.self, within: .seconds(60))
    await #expect { try await here.request(PriceQuery(id: 7), expecting: Price.self) } throws: {
      ($0 as? NATSBridgeError)?.reason == .answerFailed
    }
    gate.signal()
    let failure = try #require(await failures.entries(atLeast: 1).first)
    #expect(failure.lateAnswer as? Price == Price(cents: 7) && failure.eventType == PriceQuery.self)
    thread.cancel()
    asking.close()
    answering.close()
  }

  @Test("an answer that is longer than the server takes is told as a failure, and not waited for", arguments: [false, true])
  func longAnswers(atOnce: Bool) async throws {
    let server = try ServerProcess(configuration: "max_payload: 2048")
    let (here, there) = (EventCentral(), EventCentral())
    let asking = try await NATSBridge.to(server, on: here) { $0.sendsAtOnce = atOnce }
    let answering = try await NATSBridge.to(server, on: there) { $0.sendsAtOnce = atOnce }
    PriceQuery.answer(on: there) { query in Data(repeating: 0, count: query.id) }
    try answering.answerRequests(PriceQuery.self, with: Data.self, coding: .cbor)
    try await answering.settle()
    try asking.forwardRequests(PriceQuery.self, expecting: Data.self, coding: .cbor, within: .seconds(20))
    // With the head of the data.
    #expect(try await here.request(PriceQuery(id: 2045), expecting: Data.self).count == 2045)
    await #expect {
      try await here.request(PriceQuery(id: 2046), expecting: Data.self)
    } throws: {
      ($0 as? NATSBridgeError)?.reason == .answerFailed && "\($0)".contains("2049 bytes")
    }
    #expect(try await here.request(PriceQuery(id: 1), expecting: Data.self).count == 1)
    asking.close()
    answering.close()
  }

  @Test("a request to which no answer can be sent is counted, and asked of nobody")
  func malice() async throws {
    let server = try ServerProcess()
    let there = EventCentral()
    let answering = try await NATSBridge.to(server, on: there)
    let asked = Log<Int>()
    PriceQuery.answer(on: there) { query in
      asked.append(query.id)
      return Price(cents: query.id)
    }
    try answering.answerRequests(PriceQuery.self, with: Price.self)
    try await answering.settle()
    // Nowhere to send the answer to.
    let raw = try RawClient(server)
    raw.publish("eventcore.request.\(PriceQuery.subject).Price", Data(#"{"id":1}"#.utf8))
    #expect(await eventually { answering.counts.malformed == 1 })
    let counts = answering.counts
    #expect(counts.received == 1 && counts.dispatched == 0)
    #expect(asked.count == 0)
    answering.close()
  }

  @Test("a call that throws can be made again, as it should have been")
  func corrected() async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(), EventCentral())
    let asking = try await NATSBridge.to(server, on: here)
    let answering = try await NATSBridge.to(server, on: there)
    PriceQuery.answer(on: there) { query in Price(cents: query.id) }
    #expect(throws: NATSBridgeError.self) {
      try answering.answerRequests(PriceQuery.self, with: Price.self, group: "two words")
    }
    // The server would end the connection for good.
    #expect(throws: NATSBridgeError.self) {
      try answering.answerRequests(PriceQuery.self, with: Price.self, group: String(repeating: "x", count: 5000))
    }
    try answering.answerRequests(PriceQuery.self, with: Price.self, group: "words")
    try await answering.settle()
    try asking.forwardRequests(PriceQuery.self, expecting: Price.self, within: .seconds(60))
    #expect(try await here.request(PriceQuery(id: 3), expecting: Price.self) == Price(cents: 3))
    asking.close()
    answering.close()
    for _ in 0..<2 {
      #expect(throws: NATSBridgeError.self) { try asking.forwardRequests(PriceQuery.self, expecting: Price.self) }
    }
  }

  @Test("of a group of machines one answers each request")
  func groups() async throws {
    let server = try ServerProcess()
    let here = EventCentral()
    let asking = try await NATSBridge.to(server, on: here)
    let log = Log<Int>()
    var bridges: [NATSBridge] = []
    for machine in 0..<3 {
      let world = EventCentral()
      PriceQuery.answer(on: world) { query in
        log.append(machine)
        return Price(cents: query.id)
      }
      let bridge = try await NATSBridge.to(server, on: world)
      try bridge.answerRequests(PriceQuery.self, with: Price.self)
      try await bridge.settle()
      bridges.append(bridge)
    }
    try asking.forwardRequests(PriceQuery.self, expecting: Price.self, within: .seconds(60))
    for id in 0..<90 {
      #expect(try await here.request(PriceQuery(id: id), expecting: Price.self) == Price(cents: id))
    }
    #expect(log.count == 90)
    #expect(Set(log.entries) == [0, 1, 2])
    for bridge in bridges { await bridge.drain() }
    #expect(await asking.drain())
  }

  /// With the fields of a price, which would be read from it.
  private struct Offer: Codable, Equatable {
    var cents: Int
    var count: Int
  }

  @Test("a query with answers of two types gets that which it asks for, of one machine or of two", arguments: 1...2)
  func twoTypes(machines: Int) async throws {
    let server = try ServerProcess()
    let here = EventCentral()
    let asking = try await NATSBridge.to(server, on: here)
    try asking.forwardRequests(PriceQuery.self, expecting: Price.self, within: .seconds(60))
    try asking.forwardRequests(PriceQuery.self, expecting: [Offer?].self, within: .seconds(60))
    try asking.forwardRequests(PriceQuery.self, expecting: Offer.self, within: .seconds(60))
    var bridges: [NATSBridge] = []
    for _ in 0..<machines { bridges.append(try await NATSBridge.to(server, on: EventCentral())) }
    PriceQuery.answer(on: bridges[0].central) { query in Price(cents: query.id) }
    PriceQuery.answer(on: bridges[machines - 1].central) { query in Offer(cents: -1, count: query.id) }
    PriceQuery.answer(on: bridges[machines - 1].central) { query in [nil, Offer(cents: -2, count: query.id)] }
    try bridges[0].answerRequests(PriceQuery.self, with: Price.self)
    try bridges[machines - 1].answerRequests(PriceQuery.self, with: Offer.self)
    // Whose name has signs that subjects cannot have.
    try bridges[machines - 1].answerRequests(PriceQuery.self, with: [Offer?].self)
    for bridge in bridges { try await bridge.settle() }
    for id in 0..<50 {
      let query = PriceQuery(id: id)
      #expect(try await here.request(query, expecting: Price.self) == Price(cents: id))
      #expect(try await here.request(query, expecting: Offer.self) == Offer(cents: -1, count: id))
      #expect(try await here.request(query, expecting: [Offer?].self) == [nil, Offer(cents: -2, count: id)])
    }
    for bridge in bridges { await bridge.drain() }
    #expect(await asking.drain())
  }

  @Test("requests above the concurrency wait where they are asked, and are turned away where they are answered", arguments: 1...3)
  func concurrency(limit: Int) async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(), EventCentral())
    let asking = try await NATSBridge.to(server, on: here)
    let answering = try await NATSBridge.to(server, on: there)
    let (begun, gate) = (Log<Int>(), DispatchSemaphore(value: 0))
    let queue = DispatchQueue(label: "answers", attributes: .concurrent)
    PriceQuery.answer(on: there, concurrency: .concurrent(100)) { query in
      begun.append(query.id)
      await withCheckedContinuation { continuation in
        queue.async {
          gate.wait()
          continuation.resume()
        }
      }
      return Price(cents: query.id)
    }
    let answers = try answering.answerRequests(PriceQuery.self, with: Price.self)
    try await answering.settle()
    try asking.forwardRequests(PriceQuery.self, expecting: Price.self, within: .seconds(60), concurrency: limit)
    let tasks = (0..<3 * limit).map { id in
      Task { try await here.request(PriceQuery(id: id), expecting: Price.self) }
    }
    for count in stride(from: limit, through: 3 * limit, by: limit) {
      #expect(await begun.entries(atLeast: count).count == count)
      #expect(answering.counts.received == count)
      for _ in 0..<limit { gate.signal() }
    }
    for task in tasks { _ = try await task.value }
    answers.remove()
    // The other way round.
    try answering.answerRequests(PriceQuery.self, with: Price.self, concurrency: limit)
    try await answering.settle()
    let other = EventCentral()
    let asker = try await NATSBridge.to(server, on: other)
    try asker.forwardRequests(PriceQuery.self, expecting: Price.self, within: .seconds(60))
    let waiting = (0..<limit).map { id in
      Task { try await other.request(PriceQuery(id: id), expecting: Price.self) }
    }
    _ = await begun.entries(atLeast: 4 * limit)
    await #expect { try await other.request(PriceQuery(id: 9), expecting: Price.self) } throws: {
      ($0 as? NATSBridgeError)?.reason == .answerFailed && "\($0)".contains("\(limit) requests in the making")
    }
    for _ in 0..<limit { gate.signal() }
    for task in waiting { _ = try await task.value }
    for bridge in [asking, asker, answering] { bridge.close() }
  }
}
