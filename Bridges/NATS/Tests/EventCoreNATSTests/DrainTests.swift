// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// What the answer of a drain says.
@Suite struct DrainTests {
  @Test("a drain waits for durable events that handlers have, which then do not come again", arguments: cores)
  func waitsForHandlers(core: EventCentral.Core) async throws {
    let server = try ServerProcess(["--jetstream"])
    let (here, there) = (EventCentral(core: core), EventCentral(core: core))
    let sender = try await NATSBridge.to(server, on: here)
    try await sender.makeStream("ORDERS", of: [Order.self])
    try await sender.publish(Order.self, stream: "ORDERS")
    for number in 1...5 { Order(number: number).queue(on: here) }
    #expect(await sender.drain())
    let receiver = try await NATSBridge.to(server, on: there)
    let (begun, gate) = (Log<Int>(), DispatchSemaphore(value: 0))
    let thread = EventThread(on: there)
    thread.addEventCallback { (event: Order) in
      begun.append(event.number)
      gate.wait()
    }
    var options = NATSBridge.DurableOptions()
    options.patience = .seconds(60)
    let orders = try await receiver.durable(Order.self, stream: "ORDERS", as: "test", options: options)
    #expect(await begun.entries(atLeast: 1) == [1])
    #expect(await eventually { receiver.counts.dispatched == 5 })
    async let isDrained = receiver.drain()
    #expect(await eventually { !orders.isActive || receiver.link.timeLeft(atMost: .max) < .max })
    #expect(await !eventually(within: .milliseconds(200)) { receiver.link.hasEnded }, "It waits.")
    for _ in 1...5 { gate.signal() }
    #expect(await isDrained)
    #expect(begun.count == 5)
    await thread.drain()
    #expect(try pending(server) == 0)
  }

  /// Whose coding waits for a gate, and throws.
  enum Unwritable: CoordinateEvents, RemoteEvent {
    static let subject = "tests.unwritable"
    static let (begun, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    struct Failure: Error {}
    case one
    init(from decoder: any Decoder) throws { throw Failure() }
    func encode(to encoder: any Encoder) throws {
      Self.begun.signal()
      Self.mayEnd.wait()
      throw Failure()
    }
  }

  @Test("what cannot be written while a drain has time left is told with its own cause, and not as closed")
  func toldWithItsCause() async throws {
    let server = try ServerProcess()
    let hall = try await Machine(server)
    try await hall.forward(to: "plant", carrying: [Unwritable.self])
    await hall.emit(Unwritable.one)
    await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        Unwritable.begun.wait()
        continuation.resume()
      }
    }
    async let isDrained = hall.bridge.drain(within: .seconds(60))
    #expect(await eventually { hall.bridge.link.endsOrHasEnded })
    Unwritable.mayEnd.signal()
    #expect(await hall.log.entries(atLeast: 1) == ["one other"])
    _ = await isDrained
    withExtendedLifetime(server) {}
  }

  @Test("what has not left for a parent when the drain gives up is told as closed")
  func toldAsClosed() async throws {
    let server = try ServerProcess()
    let hall = try await Machine(server)
    try await hall.forward(to: "plant")
    server.stop()
    #expect(await eventually { !hall.bridge.isConnected })
    await hall.emit(Incident.smoke(1), Incident.smoke(2))
    #expect(await !hall.bridge.drain(within: .milliseconds(100)))
    #expect(await hall.log.entries(atLeast: 2).sorted() == ["smoke(1) closed", "smoke(2) closed"])
    #expect(hall.bridge.counts.unsent == 2)
  }

  @Test("a drain is false while a handler keeps a durable event, which comes again")
  func keptEvent() async throws {
    let server = try ServerProcess(["--jetstream"])
    let world = EventCentral()
    let bridge = try await NATSBridge.to(server, on: world)
    try await bridge.makeStream("ORDERS", of: [Order.self])
    let kept = Log<Order>()
    Order.addListener(
      nil, { event in if event.delivery != nil { kept.append(event) } }, executeOn: .listenerThread, on: world)
    try await bridge.durable(Order.self, stream: "ORDERS", as: "test")
    try await bridge.publish(Order.self, stream: "ORDERS")
    Order(number: 1).queue(on: world)
    let delivery = await kept.entries(atLeast: 1).first?.delivery
    #expect(await !bridge.drain(within: .milliseconds(100)))
    // Nobody hears of it any more.
    delivery?.giveBack()
    #expect(bridge.counts.givenBack == 0)
    #expect(try pending(server) == 1)
  }

  /// A bridge of a machine that answers what the gate lets through.
  private func answerPrices(
    _ server: ServerProcess, on central: EventCentral, _ asked: Log<Int>, _ gate: DispatchSemaphore
  ) async throws -> NATSBridge {
    let bridge = try await NATSBridge.to(server, on: central)
    PriceQuery.answer(on: central) { query in
      asked.append(query.id)
      gate.wait()
      return Price(cents: query.id)
    }
    try bridge.answerRequests(PriceQuery.self, with: Price.self)
    try await bridge.settle()
    return bridge
  }

  @Test("a drain waits for durable events whose handlers await answers of other machines (D10)", arguments: cores)
  func waitsForAnswers(core: EventCentral.Core) async throws {
    let server = try ServerProcess(["--jetstream"])
    let (here, there) = (EventCentral(core: core), EventCentral(core: core))
    let (asked, log, gate) = (Log<Int>(), Log<Int?>(), DispatchSemaphore(value: 0))
    let answering = try await answerPrices(server, on: there, asked, gate)
    let worker = try await NATSBridge.to(server, on: here)
    try worker.forwardRequests(PriceQuery.self, expecting: Price.self, within: .seconds(60))
    Order.addListener(nil, on: here) { (order: Order) async in
      let query = PriceQuery(id: order.number)
      log.append(try? await here.request(query, expecting: Price.self, within: .seconds(60)).cents)
    }
    try await worker.makeStream("ORDERS", of: [Order.self])
    try await worker.durable(Order.self, stream: "ORDERS", as: "test")
    try await answering.publish(Order.self, stream: "ORDERS")
    for number in 1...2 { Order(number: number).queue(on: there) }
    #expect(await asked.entries(atLeast: 1) == [1])
    #expect(await eventually { worker.counts.dispatched == 2 })
    async let isDrained = worker.drain()
    #expect(await eventually { worker.link.timeLeft(atMost: .max) < .max })
    #expect(await !eventually(within: .milliseconds(200)) { worker.link.hasEnded }, "It waits.")
    for _ in 1...2 { gate.signal() }
    #expect(await isDrained)
    #expect(log.entries == [1, 2])
    #expect(try pending(server) == 0)
    await answering.drain()
  }

  @Test("handlers that a drain of their central waits for still ask other machines (D10)", arguments: cores)
  func asksWhileDrained(core: EventCentral.Core) async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(core: core), EventCentral(core: core))
    let (asked, log, gate) = (Log<Int>(), Log<Int?>(), DispatchSemaphore(value: 0))
    let answering = try await answerPrices(server, on: there, asked, gate)
    let worker = try await NATSBridge.to(server, on: here)
    let forwarding = try worker.forwardRequests(PriceQuery.self, expecting: Price.self, within: .seconds(60))
    Reading.addListener(nil, on: here) { (job: Reading) async in
      let query = PriceQuery(id: job.number)
      log.append(try? await here.request(query, expecting: Price.self, within: .seconds(60)).cents)
    }
    // To see when the drain has begun.
    Alarm.addListener(nil, { _ in }, executeOn: .listenerThread, on: here)
    let jobs = try worker.subscribe(Reading.self, group: "workers")
    try await worker.settle()
    answering.publish(Reading.self)
    for number in 1...5 { Reading(number: number).queue(on: there) }
    #expect(await asked.entries(atLeast: 1) == [1])
    #expect(await eventually { worker.counts.dispatched == 5 })
    #expect(await jobs.drain())
    async let isDrained = here.drain()
    #expect(await eventually { Alarm(level: 0).queue(on: here) == 0 })
    for _ in 1...5 { gate.signal() }
    #expect(await isDrained)
    #expect(log.entries == [1, 2, 3, 4, 5])
    #expect(await worker.drain() && !forwarding.isActive)
    await answering.drain()
  }

  @Test("orders that handlers did not come to in time come again if the bridge is drained before their receiver")
  func givesUp() async throws {
    let server = try ServerProcess(["--jetstream"])
    let world = EventCentral()
    let bridge = try await NATSBridge.to(server, on: world)
    try await bridge.makeStream("ORDERS", of: [Order.self])
    let (begun, gate) = (Log<Int>(), DispatchSemaphore(value: 0))
    let thread = EventThread(on: world)
    thread.addEventCallback { (order: Order) in
      guard order.delivery != nil else { return }
      begun.append(order.number)
      gate.wait()
    }
    try await bridge.durable(Order.self, stream: "ORDERS", as: "test")
    try await bridge.publish(Order.self, stream: "ORDERS")
    for number in 1...3 { Order(number: number).queue(on: world) }
    #expect(await begun.entries(atLeast: 1) == [1])
    #expect(await eventually { bridge.counts.dispatched == 3 })
    #expect(await !bridge.drain(within: .milliseconds(100)))
    thread.cancel()
    gate.signal()
    await thread.drain()
    #expect(begun.entries == [1])
    #expect(try pending(server) == 3)
  }

  /// How many events of the stream are with receivers.
  private func pending(_ server: ServerProcess) throws -> Int64 {
    try RawClient(server).consumer("test", of: "ORDERS") { $0.NumAckPending }
  }

  @Test("a worker that drains its registration, its listeners and its bridge in turn answers each job that it got")
  func worker() async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(), EventCentral())
    let (sender, worker) = (try await NATSBridge.to(server, on: here), try await NATSBridge.to(server, on: there))
    let (begun, done, gate) = (Log<Int>(), Log<Int>(), DispatchSemaphore(value: 0))
    Reading.addListener(
      nil,
      { job in
        begun.append(job.number)
        gate.wait()
        Alarm(level: job.number).queue(on: there)
      }, executeOn: .listenerThread, on: there)
    Alarm.addListener(nil, { alarm in done.append(alarm.level) }, executeOn: .listenerThread, on: here)
    let results = worker.publish(Alarm.self)
    let jobs = try worker.subscribe(Reading.self, group: "workers")
    try await worker.settle()
    try sender.subscribe(Alarm.self)
    try await sender.settle()
    sender.publish(Reading.self)
    for number in 0..<20 { Reading(number: number).queue(on: here) }
    #expect(await begun.entries(atLeast: 1) == [0])
    #expect(await eventually { worker.counts.received == 20 })
    #expect(await jobs.drain())
    #expect(await !jobs.drain() && !jobs.isActive, "It has ended.")
    #expect(await !results.drain() && results.isActive, "It is for what comes.")
    for _ in 0..<20 { gate.signal() }
    #expect(await there.drain())
    #expect(await worker.drain())
    #expect(await done.entries(atLeast: 20) == Array(0..<20))
    await sender.drain()
  }

  @Test("a drain is false if events that waited were not sent, since their type was not published any more")
  func unsent() async throws {
    let server = try ServerProcess()
    let world = EventCentral()
    let bridge = try await NATSBridge.to(server, on: world)
    await Held.hold(bridge)
    let readings = bridge.publish(Reading.self)
    for number in 1...3 { Reading(number: number).queue(on: world) }
    readings.remove()
    async let isDrained = bridge.drain()
    // Until it takes no more, which is when it has begun.
    var held = 1
    #expect(
      await eventually {
        held += Held().queue(on: world)
        return bridge.link.timeLeft(atMost: .max) < .max
      })
    for _ in 1...held { Held.gate.signal() }
    #expect(await !isDrained)
    #expect(bridge.counts.unsent == 3 && bridge.counts.sent == held)
  }

  @Test(
    "what waits in the client when a subscription ends is counted", arguments: ["remove", "close", "drain", "bridge"])
  func leftBehind(how: String) async throws {
    let server = try ServerProcess()
    let (here, there) = (EventCentral(), EventCentral())
    let sender = try await NATSBridge.to(server, on: here)
    let receiver = try await NATSBridge.to(server, on: there)
    sender.publish(Waiting.self)
    let subscription = try receiver.subscribe(Waiting.self)
    try await receiver.settle()
    for number in 0..<50 { Waiting(number: number).queue(on: here) }
    #expect(await sender.drain())
    #expect(await eventually { receiver.counts.received == 1 })
    // All have come.
    try await receiver.settle()
    switch how {
    case "remove": subscription.remove()
    case "close": receiver.close()
    case "drain": #expect(await !subscription.drain(within: .milliseconds(50)))
    default: #expect(await !receiver.drain(within: .milliseconds(50)))
    }
    #expect(receiver.counts.overrun == 49)
    Waiting.gate.signal()
    #expect(await eventually { receiver.counts.unheard == 1 })
    let counts = receiver.counts
    #expect(counts.received == 1 && counts.overrun == 49)
    #expect(!subscription.remove())
    receiver.close()
    #expect(receiver.counts.overrun == 49)
  }

  /// Keeps the client's thread waiting, until a test lets it go on.
  struct Waiting: RemoteEvent {
    static let subject = "tests.waiting"
    static let gate = DispatchSemaphore(value: 0)
    var number: Int
    mutating func arrived(_ origin: RemoteOrigin) { Self.gate.wait() }
  }

  @Test("a drain has all subscriptions end at once, and not each after the handlers of another one (D10)")
  func allAtOnce() async throws {
    let server = try ServerProcess()
    let (raw, receiver) = (try RawClient(server), try await NATSBridge.to(server, on: EventCentral()))
    let subjects = ["tests.waiting.a", "tests.waiting.b"]
    for subject in subjects { try receiver.subscribe(Waiting.self, to: subject) }
    try await receiver.settle()
    for subject in subjects { raw.publish(subject, Data(#"{"number":1}"#.utf8)) }
    #expect(await eventually { receiver.counts.received == 2 })
    async let isDrained = receiver.drain()
    // Both handlers wait. What this sends is no such event.
    for subject in subjects { #expect(await eventually(within: .seconds(20)) { !raw.hasSubscribers(subject) }) }
    for _ in subjects { Waiting.gate.signal() }
    #expect(await isDrained)
    #expect(receiver.counts.unheard == 2 && receiver.counts.overrun == 0)
  }

  /// Whose coding waits for a gate.
  struct Slow: RemoteEvent {
    static let subject = "tests.slow"
    static let (begun, gate) = (Log<Void>(), DispatchSemaphore(value: 0))
    func encode(to encoder: any Encoder) throws {
      Self.begun.append(())
      Self.gate.wait()
      var container = encoder.singleValueContainer()
      try container.encode(1)
    }
  }

  @Test("a drain whose time is over encodes nothing more, and counts what waits as unsent (D10)", arguments: [1, 64])
  func encodesNoMore(batch: Int) async throws {
    let server = try ServerProcess()
    let world = EventCentral()
    let sender = try await NATSBridge.to(server, on: world)
    sender.publish(Slow.self, batch: batch)
    let before = Slow.begun.count
    for _ in 0..<100 { Slow().queue(on: world) }
    #expect(await Slow.begun.entries(atLeast: before + 1).count == before + 1)
    // Some time after its limit, since the coding does not return.
    #expect(await !sender.drain(within: .milliseconds(100)))
    Slow.gate.signal()
    let isCounted = await eventually(within: .seconds(20)) {
      let counts = sender.counts
      return counts.unsent == 100 && counts.outbox.waiting == 0
    }
    #expect(isCounted && sender.counts.outbox.accepted == 100, "\(sender.counts)")
    #expect(Slow.begun.count == before + 1)
  }

  /// Cannot be JSON if it is no number.
  struct Temperature: RemoteEvent {
    static let subject = "tests.temperature"
    var celsius: Double
  }

  @Test("what can never be sent does not make a drain false, and is counted", arguments: [1, 64])
  func neverSent(batch: Int) async throws {
    let server = try ServerProcess()
    let world = EventCentral()
    let sender = try await NATSBridge.to(server, on: world)
    sender.publish(Temperature.self, batch: batch)
    let top = EventNode(name: "top")
    let far = EventNode(parent: top, name: String(repeating: "x", count: longestSubjects))
    try sender.mount(top, at: "plant", carrying: [Alarm.self])
    for number in 0..<10 { Temperature(celsius: number == 5 ? .nan : 1).queue(on: world) }
    withExtendedLifetime(top) { _ = far.raise(event: Alarm(level: 1)) }
    #expect(await sender.drain())
    let counts = sender.counts
    #expect(counts.sent == 9 && counts.unencodable == 1 && counts.tooLarge == 1 && counts.outbox.accepted == 11)
  }
}
