// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreNATS
import Testing

/// A caller's mistake traps with a sentence (D12).
@Suite struct TrapTests {
  struct Wild: RemoteEvent {
    static let subject = "tests.*"
  }
  struct Nameless: RemoteEvent {
    static let subject = "tests.nameless"
    static let remoteName = "two\nlines"
  }

  private func expect(
    _ result: ExitTest.Result?, says sentence: String, _ location: SourceLocation = #_sourceLocation
  ) {
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(text.contains(sentence), "\(text.prefix(500))", sourceLocation: location)
  }

  @Test("a type is published once")
  func publishedTwice() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let server = try ServerProcess()
      let bridge = try await NATSBridge.to(server, on: EventCentral())
      bridge.publish(Reading.self).remove()
      bridge.publish(Reading.self)
      // So that the trap leaves no server behind.
      server.stop()
      bridge.publish(Reading.self)
    }
    expect(result, says: "A bridge publishes a type once, and Reading is published already")
  }

  @Test("a subject has no wildcards, a name is a line")
  func names() async throws {
    let wild = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let server = try ServerProcess()
      let bridge = try await NATSBridge.to(server, on: EventCentral())
      server.stop()
      bridge.publish(Wild.self)
    }
    expect(wild, says: #"that of the RemoteEvent Wild is "tests.*""#)
    let nameless = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let server = try ServerProcess()
      let bridge = try await NATSBridge.to(server, on: EventCentral())
      server.stop()
      bridge.publish(Nameless.self)
    }
    expect(nameless, says: "The name of a RemoteEvent is a line")
  }

  struct WildOrder: DurableEvent {
    static let subject = "tests.*"
    var delivery: NATSDelivery?
  }
  struct QuotedOrder: DurableEvent {
    static let subject = #"tests."quoted""#
    var delivery: NATSDelivery?
  }

  @Test("the subject of a durable event has no wildcards and quotes")
  func durableSubjects() async throws {
    let wild = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let server = try ServerProcess(["--jetstream"])
      let bridge = try await NATSBridge.to(server, on: EventCentral())
      server.stop()
      try await bridge.makeStream("ORDERS", of: [Order.self, WildOrder.self])
    }
    expect(wild, says: #"that of the DurableEvent WildOrder is "tests.*""#)
    let taken = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let server = try ServerProcess(["--jetstream"])
      let bridge = try await NATSBridge.to(server, on: EventCentral())
      server.stop()
      try await bridge.durable(WildOrder.self, stream: "ORDERS", as: "test")
    }
    expect(taken, says: #"that of the DurableEvent WildOrder is "tests.*""#)
    let quoted = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let server = try ServerProcess(["--jetstream"])
      let bridge = try await NATSBridge.to(server, on: EventCentral())
      server.stop()
      try await bridge.publish(QuotedOrder.self, stream: "ORDERS")
    }
    expect(quoted, says: #"that of the DurableEvent QuotedOrder is "tests."quoted""#)
  }

  struct Unborn: RemoteEvent {
    static let subject = "tests.unborn"
    static let version = -1
  }

  @Test("a version is 0 or more")
  func version() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let server = try ServerProcess()
      let bridge = try await NATSBridge.to(server, on: EventCentral())
      server.stop()
      bridge.publish(Unborn.self)
    }
    expect(result, says: "The version of a RemoteEvent is 0 or more, and that of Unborn is -1")
  }

  @Test("requests of a kind are forwarded or answered, by all bridges of a central alike")
  func bothByTwo() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let (server, world) = (try ServerProcess(), EventCentral())
      let (bridge, other) = (try await NATSBridge.to(server, on: world), try await NATSBridge.to(server, on: world))
      // Each of a kind may be answered by several, and by those of other centrals.
      try bridge.answerRequests(PriceQuery.self, with: Price.self, group: "others")
      try other.answerRequests(PriceQuery.self, with: Price.self).remove()
      let elsewhere = try await NATSBridge.to(server, on: EventCentral())
      try elsewhere.forwardRequests(PriceQuery.self, expecting: Price.self)
      server.stop()
      try other.forwardRequests(PriceQuery.self, expecting: Price.self)
    }
    expect(result, says: "are answered already: what was answered would go out again")
  }

  @Test("requests of a kind are forwarded or answered")
  func both() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let server = try ServerProcess()
      let bridge = try await NATSBridge.to(server, on: EventCentral())
      try bridge.answerRequests(PriceQuery.self, with: Price.self)
      server.stop()
      try bridge.forwardRequests(PriceQuery.self, expecting: Price.self)
    }
    expect(result, says: "The bridges of a central either forward the requests of a kind or answer them")
  }

  @Test("a durable subscription has room for an event, and time for it")
  func durableOptions() async throws {
    let room = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let server = try ServerProcess()
      let bridge = try await NATSBridge.to(server, on: EventCentral())
      server.stop()
      var options = NATSBridge.DurableOptions()
      options.inFlight = 0
      try await bridge.durable(Order.self, stream: "ORDERS", as: "test", options: options)
    }
    expect(room, says: "DurableOptions.inFlight is how many events may be on their way, at least 1, and this one is 0")
    let time = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let server = try ServerProcess()
      let bridge = try await NATSBridge.to(server, on: EventCentral())
      server.stop()
      var options = NATSBridge.DurableOptions()
      options.patience = .zero
      try await bridge.durable(Order.self, stream: "ORDERS", as: "test", options: options)
    }
    expect(time, says: "patience is how long an event may take, more than zero, and this one is 0.0 seconds")
  }

  @Test("one request or more may be answered at a time")
  func answerConcurrency() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let server = try ServerProcess()
      let bridge = try await NATSBridge.to(server, on: EventCentral())
      server.stop()
      try bridge.answerRequests(PriceQuery.self, with: Price.self, concurrency: 0)
    }
    expect(result, says: "at least 1, and this one is 0: pass 1 or more")
  }

  @Test("a batch has room for an event")
  func batch() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let server = try ServerProcess()
      let bridge = try await NATSBridge.to(server, on: EventCentral())
      bridge.publish(Reading.self, batch: 1).remove()
      server.stop()
      bridge.publish(Reading.self, batch: 0)
    }
    expect(result, says: "A batch is how many events may go in one message, at least 1, and this one is 0")
  }

  @Test("an inbox has room for a message, and no message is shorter than nothing")
  func options() async throws {
    let inbox = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      var options = NATSBridge.Options()
      options.inbox = 0
      _ = try await NATSBridge(.url("nats://127.0.0.1:0"), on: EventCentral(), options: options)
    }
    expect(inbox, says: "Options.inbox is how many messages of a subscription may wait, at least 1, and this one is 0")
    let longest = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      var options = NATSBridge.Options()
      options.longestMessage = -1
      _ = try await NATSBridge(.url("nats://127.0.0.1:0"), on: EventCentral(), options: options)
    }
    expect(longest, says: "Options.longestMessage is a number of bytes, at least 0, and this one is -1")
  }

  struct HallAlarm: RemoteEvent {
    static let subject = "hall.alarm"
  }

  @Test("of the subjects that a mounted node exchanges none ends with another one")
  func mountedSubjects() async throws {
    let longer = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let server = try ServerProcess()
      let bridge = try await NATSBridge.to(server, on: EventCentral())
      let plant = EventNode(name: "plant")
      // "hall.alarm" ends with "alarm", and "tests.reading" with neither.
      try bridge.mount(plant, at: "plant", carrying: [Alarm.self, Reading.self]).remove()
      server.stop()
      try bridge.mount(plant, at: "plant", carrying: [HallAlarm.self, Reading.self, Alarm.self])
    }
    expect(longer, says: #"and "hall.alarm" of HallAlarm ends with "alarm" of Alarm"#)
    let twice = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let server = try ServerProcess()
      let bridge = try await NATSBridge.to(server, on: EventCentral())
      let plant = EventNode(name: "plant")
      server.stop()
      try bridge.mount(plant, at: "plant", carrying: [Alarm.self, Alarm.self])
    }
    expect(twice, says: #"and "alarm" of Alarm ends with "alarm" of Alarm"#)
  }
}
