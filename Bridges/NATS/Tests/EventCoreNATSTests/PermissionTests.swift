// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import Testing

@testable import EventCoreNATS

/// Users who may do what the table of “Who may listen” in BeyondOneMachine.md says, and nothing else.
@Suite struct PermissionTests {
  /// A server with one user for each row, and the faults that their bridges tell.
  private final class Guarded: Sendable {
    typealias User = (name: String, publish: [String], subscribe: [String])
    let server: ServerProcess
    let faults = Log<String>()
    /// One for each bridge that has ended, after all that it had to tell.
    let ended = Log<Void>()

    init(_ users: [User]) throws {
      func subjects(_ all: [String]) -> String { all.isEmpty ? #"{ deny: ">" }"# : "\(all)" }
      let lines = users.map { user in
        """
        { user: \(user.name), password: x, permissions: {
          publish: \(subjects(user.publish)), subscribe: \(subjects(user.subscribe)) } }
        """
      }
      server = try ServerProcess(
        ["--jetstream"], configuration: "authorization { users: [\n\(lines.joined(separator: "\n"))\n] }")
    }

    func url(of user: String) -> String { "nats://\(user):x@127.0.0.1:\(server.port)" }

    func world() -> EventCentral {
      let world = EventCentral()
      NATSStatus.addListener(
        nil,
        { [faults, ended] status in
          switch status.change {
          case .fault(let text): faults.append(text)
          case .closed: ended.append(())
          default: break
          }
        },
        executeOn: .listenerThread, on: world)
      return world
    }

    func bridge(as user: String) async throws -> NATSBridge { try await NATSBridge.to(url(of: user), on: world()) }
  }

  @Test("plain events and trees need their subjects")
  func eventsAndTrees() async throws {
    let guarded = try Guarded([
      ("sender", [Reading.subject], []), ("receiver", [], [Reading.subject]), ("tree", ["plant.>"], ["plant.>"]),
    ])
    let (sender, receiver) = (try await guarded.bridge(as: "sender"), try await guarded.bridge(as: "receiver"))
    let log = Log<Int>()
    Reading.addListener(nil, { log.append($0.number) }, executeOn: .listenerThread, on: receiver.central)
    try receiver.subscribe(Reading.self)
    try await receiver.settle()
    sender.publish(Reading.self)
    Reading(number: 1).queue(on: sender.central)
    #expect(await log.entries(atLeast: 1) == [1])
    let trees = (try await guarded.bridge(as: "tree"), try await guarded.bridge(as: "tree"))
    let (here, there) = (EventNode(name: "plant"), EventNode(name: "plant"))
    there.addHandler(.onRaise) { (event: Alarm) in log.append(event.level) }
    try trees.1.mount(there, at: "plant", carrying: [Alarm.self])
    try await trees.1.settle()
    try trees.0.mount(here, at: "plant", carrying: [Alarm.self])
    here.raise(event: Alarm(level: 2))
    #expect(await log.entries(atLeast: 2) == [1, 2])
    for bridge in [sender, receiver, trees.0, trees.1] { #expect(await bridge.drain()) }
    #expect(await guarded.ended.entries(atLeast: 4).count == 4)
    #expect(guarded.faults.entries == [])
  }

  @Test("requests and coordinators need the subjects of both ways")
  func requestsAndCoordinators() async throws {
    let (request, emission) = ("eventcore.request.tests.price.Price", "eventcore.emission.plant.tests.incident")
    let guarded = try Guarded([
      ("asking", [request], ["_INBOX.>"]), ("answering", ["_INBOX.>"], [request]),
      ("child", [emission], ["_INBOX.>"]), ("parent", ["_INBOX.>"], [emission]),
    ])
    let (asking, answering) = (try await guarded.bridge(as: "asking"), try await guarded.bridge(as: "answering"))
    PriceQuery.answer(on: answering.central) { Price(cents: $0.id) }
    try answering.answerRequests(PriceQuery.self, with: Price.self)
    try await answering.settle()
    try asking.forwardRequests(PriceQuery.self, expecting: Price.self, within: .seconds(60))
    #expect(try await asking.central.request(PriceQuery(id: 7), expecting: Price.self) == Price(cents: 7))
    let parent = try await Machine(at: guarded.url(of: "parent"), on: guarded.world()) { _ in .handled }
    let child = try await Machine(at: guarded.url(of: "child"), on: guarded.world())
    try await parent.answer(as: "plant", carrying: [Incident.self])
    try await child.forward(to: "plant", carrying: [Incident.self])
    await child.emit(Incident.smoke(1))
    #expect(await child.log.entries(atLeast: 1) == ["smoke(1) handled"])
    for bridge in [asking, answering, child.bridge, parent.bridge] { #expect(await bridge.drain()) }
    #expect(await guarded.ended.entries(atLeast: 4).count == 4)
    #expect(guarded.faults.entries == [])
  }

  @Test("streams need the server's own subjects as well, and a durable name one of the bridge's")
  func streams() async throws {
    let (api, replies) = ("$JS.API.>", "_INBOX.>")
    let guarded = try Guarded([
      ("maker", [api], [replies]), ("sender", [api, Order.subject], [replies]),
      ("receiver", [api, "$JS.ACK.>"], [replies, "eventcore.deliver.ORDERS.billing"]),
    ])
    let maker = try await guarded.bridge(as: "maker")
    try await maker.makeStream("ORDERS", of: [Order.self])
    let (sender, receiver) = (try await guarded.bridge(as: "sender"), try await guarded.bridge(as: "receiver"))
    let log = Log<Int>()
    Order.addListener(nil, { log.append($0.number) }, executeOn: .listenerThread, on: receiver.central)
    try await sender.publish(Order.self, stream: "ORDERS")
    try await receiver.durable(Order.self, stream: "ORDERS", as: "billing")
    Order(number: 1).queue(on: sender.central)
    #expect(await log.entries(atLeast: 1) == [1])
    for bridge in [maker, sender, receiver] { #expect(await bridge.drain()) }
    #expect(await guarded.ended.entries(atLeast: 3).count == 3)
    #expect(guarded.faults.entries == [])
    // Under a name that this user may not hear nothing comes, and the fault says which.
    let deaf = try await guarded.bridge(as: "receiver")
    try await deaf.durable(Order.self, stream: "ORDERS", as: "shipping")
    let told = await guarded.faults.entries(atLeast: 1)
    #expect(told.count == 1 && told[0].contains("eventcore.deliver.ORDERS.shipping"), "\(told)")
    deaf.close()
  }
}
