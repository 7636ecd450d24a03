// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// Requests that have to wait, and answers that are too long.
@Suite struct RequestLimitTests {
  @Test("an answer that is longer than the asking bridge takes is a failure")
  func longerAnswers() async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(), EventCentral())
    let asking = try await NATSBridge.to(server, on: here) { $0.longestMessage = 100 }
    let answering = try await NATSBridge.to(server, on: there)
    PriceQuery.answer(on: there) { query in Data(repeating: 0, count: query.id) }
    try answering.answerRequests(PriceQuery.self, with: Data.self, coding: .cbor)
    try await answering.settle()
    try asking.forwardRequests(PriceQuery.self, expecting: Data.self, coding: .cbor, within: .seconds(60))
    // With the head of the data.
    #expect(try await here.request(PriceQuery(id: 98), expecting: Data.self).count == 98)
    await #expect {
      try await here.request(PriceQuery(id: 99), expecting: Data.self)
    } throws: {
      ($0 as? NATSBridgeError)?.reason == .answerFailed && "\($0)".contains("longestMessage")
    }
    asking.close()
    answering.close()
  }

  /// Tells when it is encoded, which is right before it is sent.
  struct ToldQuery: RemoteEvent {
    static let subject = "tests.told.query"
    static let encoded = Log<Int>()
    var id: Int

    init(id: Int) { self.id = id }
    init(from decoder: any Decoder) throws { id = try decoder.singleValueContainer().decode(Int.self) }
    func encode(to encoder: any Encoder) throws {
      Self.encoded.append(id)
      var container = encoder.singleValueContainer()
      try container.encode(id)
    }
  }

  @Test("requests that are made before the first connection wait for it, within the limit, or until the bridge ends")
  func beforeTheServer() async throws {
    let server = try ServerProcess()
    server.stop()
    let (here, there) = (EventCentral(), EventCentral())
    let asking = try await NATSBridge.to(server, on: here) { $0.waitsForServer = true }
    let hasty = try asking.forwardRequests(ToldQuery.self, expecting: Price.self, within: .milliseconds(50))
    await #expect(throws: EventWaitError.timedOut(.milliseconds(50))) {
      try await here.request(ToldQuery(id: 1), expecting: Price.self)
    }
    hasty.remove()
    try asking.forwardRequests(ToldQuery.self, expecting: Price.self, within: .seconds(60))
    let answering = try await NATSBridge.to(server, on: there) { $0.waitsForServer = true }
    let asked = Log<Int>()
    ToldQuery.answer(on: there) { query in
      asked.append(query.id)
      return Price(cents: query.id)
    }
    try answering.answerRequests(ToldQuery.self, with: Price.self)
    let requests = (2...3).map { id in Task { try await here.request(ToldQuery(id: id), expecting: Price.self) } }
    #expect(await ToldQuery.encoded.entries(atLeast: 3).count == 3)
    try server.restart()
    for (index, request) in requests.enumerated() {
      // Nobody answers if the server has the request before it knows of the answerer.
      let price = await request.result
      switch price {
      case .success(let price): #expect(price == Price(cents: index + 2))
      case .failure(let error): #expect(error as? EventWaitError == .nobodyAnswers)
      }
    }
    try await answering.settle()
    #expect(try await here.request(ToldQuery(id: 4), expecting: Price.self) == Price(cents: 4))
    #expect(!asked.entries.contains(1))
    asking.close()
    answering.close()
    // One whose server never comes.
    server.stop()
    let other = EventCentral()
    let waiting = try await NATSBridge.to(server, on: other) { $0.waitsForServer = true }
    try waiting.forwardRequests(ToldQuery.self, expecting: Price.self, within: .seconds(60))
    let request = Task { try await other.request(ToldQuery(id: 5), expecting: Price.self) }
    #expect(await ToldQuery.encoded.entries(atLeast: 5).count == 5)
    waiting.close()
    await #expect { try await request.value } throws: { ($0 as? NATSBridgeError)?.reason == .closed }
  }

  @Test("a request that waits for a place is not sent once its requester has given up", arguments: cores)
  func givenUp(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(core: core), EventCentral(core: core))
    let asking = try await NATSBridge.to(server, on: here)
    let answering = try await NATSBridge.to(server, on: there)
    let (asked, gate) = (Log<Int>(), Log<Void>())
    PriceQuery.answer(on: there) { query in
      asked.append(query.id)
      if query.id == 1 { _ = await gate.entries(atLeast: 1) }
      return Price(cents: query.id)
    }
    try answering.answerRequests(PriceQuery.self, with: Price.self)
    try await answering.settle()
    try asking.forwardRequests(PriceQuery.self, expecting: Price.self, within: .seconds(60), concurrency: 1)
    let first = Task { try await here.request(PriceQuery(id: 1), expecting: Price.self) }
    #expect(await asked.entries(atLeast: 1) == [1])
    for id in 2...3 {
      await #expect(throws: EventWaitError.timedOut(.milliseconds(20))) {
        try await here.request(PriceQuery(id: id), expecting: Price.self, within: .milliseconds(20))
      }
    }
    gate.append(())
    #expect(try await first.value == Price(cents: 1))
    #expect(try await here.request(PriceQuery(id: 4), expecting: Price.self) == Price(cents: 4))
    #expect(asked.entries == [1, 4])
    asking.close()
    answering.close()
  }

  @Test("a machine without an answerer, or one that goes, leaves a request to those of the asker", arguments: cores)
  func nobodyThere(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(core: core), EventCentral(core: core))
    let asking = try await NATSBridge.to(server, on: here)
    let answering = try await NATSBridge.to(server, on: there)
    let answers = try answering.answerRequests(PriceQuery.self, with: Price.self)
    try await answering.settle()
    try asking.forwardRequests(PriceQuery.self, expecting: Price.self, within: .seconds(60))
    await #expect(throws: EventWaitError.nobodyAnswers) {
      try await here.request(PriceQuery(id: 1), expecting: Price.self)
    }
    // It waits here until nobody answers there.
    let gate = Log<Void>()
    let local = PriceQuery.answer(on: here) { query in
      _ = await gate.entries(atLeast: 1)
      return Price(cents: query.id)
    }
    let before = answering.messagesOut
    let request = Task { try await here.request(PriceQuery(id: 2), expecting: Price.self) }
    #expect(await eventually { answering.messagesOut > before })
    // The server has the reply, and then the bridge that asks has read it.
    try await answering.settle()
    try await asking.settle()
    gate.append(())
    #expect(try await request.value == Price(cents: 2))
    local.remove()
    // A registration that ends with it.
    let begun = Log<Void>()
    let silent = PriceQuery.answer(on: there) { (_: PriceQuery) async -> Price in
      begun.append(())
      _ = await begun.entries(atLeast: 3)
      return Price(cents: 0)
    }
    let left = Task { try await here.request(PriceQuery(id: 3), expecting: Price.self) }
    _ = await begun.entries(atLeast: 1)
    answers.remove()
    await #expect(throws: EventWaitError.nobodyAnswers) { try await left.value }
    begun.append(())
    begun.append(())
    silent.remove()
    asking.close()
    answering.close()
  }

  @Test("what an answerer throws is a failure, also if it says that a bridge was closed")
  func thrownThere() async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(), EventCentral())
    let asking = try await NATSBridge.to(server, on: here)
    let answering = try await NATSBridge.to(server, on: there)
    PriceQuery.answer(on: there) { query -> Price in
      if query.id == 1 { throw NATSBridgeError(.closed, "Another bridge was closed.") }
      throw EventWaitError.timedOut(.seconds(1))
    }
    try answering.answerRequests(PriceQuery.self, with: Price.self)
    try await answering.settle()
    try asking.forwardRequests(PriceQuery.self, expecting: Price.self, within: .seconds(60))
    for id in 1...2 {
      await #expect { try await here.request(PriceQuery(id: id), expecting: Price.self) } throws: {
        // One sentence, with one end.
        ($0 as? NATSBridgeError)?.reason == .answerFailed && "\($0)".hasSuffix(".") && !"\($0)".hasSuffix("..")
      }
    }
    asking.close()
    answering.close()
  }

  private struct Wordless: Error, CustomStringConvertible {
    let description: String
  }

  @Test(
    "an answerer that throws an error without a description has failed, and not answered",
    arguments: ["", "  ", "\r\n\t", "\0"])
  func withoutDescription(_ text: String) async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(), EventCentral())
    let asking = try await NATSBridge.to(server, on: here)
    let answering = try await NATSBridge.to(server, on: there)
    // To which each body is an answer, also an empty one.
    let coding = RemoteCoding<Data>(encode: { $0 }, decode: { bytes, _ in bytes })
    PriceQuery.answer(on: there) { _ -> Data in throw Wordless(description: text) }
    try answering.answerRequests(PriceQuery.self, with: Data.self, coding: coding)
    try await answering.settle()
    try asking.forwardRequests(PriceQuery.self, expecting: Data.self, coding: coding, within: .seconds(60))
    await #expect { try await here.request(PriceQuery(id: 1), expecting: Data.self) } throws: {
      ($0 as? NATSBridgeError)?.reason == .answerFailed && "\($0)".hasSuffix("without a description.")
    }
    asking.close()
    answering.close()
  }

  /// Waits while it is decoded, on the client's thread.
  struct SlowQuery: RemoteEvent {
    static let subject = "tests.slow.query"
    static let gate = DispatchSemaphore(value: 0)
    static let begun = Log<Void>()
    static var coding: RemoteCoding<SlowQuery> {
      RemoteCoding(
        encode: { _ in Data([1]) },
        decode: { _, _ in
          begun.append(())
          gate.wait()
          return SlowQuery()
        })
    }
  }

  @Test("when answers end, nobody answers the requests that wait in the client")
  func waitInTheClient() async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(), EventCentral())
    let asking = try await NATSBridge.to(server, on: here)
    let answering = try await NATSBridge.to(server, on: there)
    SlowQuery.answer(on: there) { _ in Price(cents: 1) }
    let answers = try answering.answerRequests(SlowQuery.self, with: Price.self)
    try await answering.settle()
    try asking.forwardRequests(SlowQuery.self, expecting: Price.self, within: .seconds(20))
    let requests = (1...3).map { _ in Task { try await here.request(SlowQuery(), expecting: Price.self) } }
    _ = await SlowQuery.begun.entries(atLeast: 1)
    #expect(await eventually { asking.messagesOut >= 3 })
    // The server has sent them, and the client has read them.
    try await asking.settle()
    try await answering.settle()
    #expect(answers.remove())
    for _ in requests { SlowQuery.gate.signal() }
    for request in requests { await #expect(throws: EventWaitError.nobodyAnswers) { try await request.value } }
    asking.close()
    answering.close()
  }

  @Test("a failure whose description is one sign of a million marks arrives, cut")
  func longSign() async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(), EventCentral())
    let asking = try await NATSBridge.to(server, on: here)
    let answering = try await NATSBridge.to(server, on: there)
    PriceQuery.answer(on: there) { _ -> Price in
      throw Wordless(description: "e" + String(repeating: "\u{301}", count: 1_000_000))
    }
    try answering.answerRequests(PriceQuery.self, with: Price.self)
    try await answering.settle()
    try asking.forwardRequests(PriceQuery.self, expecting: Price.self, within: .seconds(20))
    await #expect { try await here.request(PriceQuery(id: 1), expecting: Price.self) } throws: {
      ($0 as? NATSBridgeError)?.reason == .answerFailed && "\($0)".utf8.count < 2000
    }
    asking.close()
    answering.close()
  }
}
