// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("Outcomes: what each receiver did with an event")
struct ReceiverOutcomeTests {
  struct Small: Eventable { var number = 0 }
  /// Shared by its receivers in a box.
  struct Large: Eventable {
    var number = 0
    var token: Lifetime.Token?
    // A tuple, which the event holds itself.
    var rest = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    var more: InlineBytes = InlineBytes()
  }
  struct InlineBytes { var words = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) }

  final class Quiet: EventThread, @unchecked Sendable {
    override func registerEventListeners() { addEventCallback { (_: Small) in } }
  }

  private static func text(_ outcomes: [EventReceiverOutcome]) -> [String] {
    outcomes.map { "\($0.receiver) \($0.fate)\($0.hasDisplaced ? ", displacing" : "")" }
  }

  @Test("Each receiver is named with what it did, in every policy", arguments: cores)
  func policies(core: EventCentral.Core) {
    let (central, lifetime) = (EventCentral(core: core), Lifetime())
    let capacities: [EventMailboxCapacity] = [
      .unbounded, .bounded(1, whenFull: .refuse), .bounded(1, whenFull: .dropNewest),
      .bounded(1, whenFull: .dropOldest), .bounded(1, whenFull: .block(upTo: .zero)),
    ]
    let pumps = capacities.map { EventPump(on: central, mailbox: $0) }
    for pump in pumps { pump.addEventCallback { (_: Large) in } }
    let names = central.statistics.receivers.map(\.name)
    #expect(names.count == 5 && Set(names).count == 5)
    let token = lifetime.token()
    #expect(Self.text(Large(token: token).queueToEach(on: central)) == names.map { "\($0) accepted" })
    #expect(
      Self.text(Large(token: token).stackToEach(on: central))
        == zip(names, ["accepted", "refused", "dropped", "accepted, displacing", "refused"]).map { "\($0) \($1)" })
    for pump in pumps {
      pump.cancel()
      pump.run()
    }
    #expect(Large(token: token).queueToEach(on: central).isEmpty)
  }

  @Test("A pool is one receiver, with its own name; a latest-only callback is one more", arguments: cores)
  func pools(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let shared = EventPool(capacity: 2, balancer: .shared, on: central, name: "shared") { _ in Quiet() }
    let balanced = EventPool(
      capacity: 2, mailbox: .bounded(100, whenFull: .refuse), on: central, name: "balanced") { _ in Quiet() }
    let pump = EventPump(on: central)
    pump.addEventCallback { (_: Small) in }
    pump.addEventCallback({ (_: Small) in }, interestedIn: .latestOnly)
    let own = central.statistics.receivers.map(\.name).last!
    let outcomes = Small().queueToEach(on: central)
    let expected = ["\(own) accepted", "\(own) accepted", "balanced accepted", "shared accepted"]
    #expect(Self.text(outcomes).sorted() == expected.sorted())
    #expect(Small().queueWithOutcome(on: central).accepted == 4)
    shared.drain()
    balanced.drain()
    pump.cancel()
    pump.run()
    #expect(Small().queueToEach(on: central).isEmpty)
  }

  @Test("A receiver that comes and goes leaves no name behind, and each has its own", arguments: cores)
  func churn(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    for round in 0..<100 {
      let thread = EventThread(on: central, name: "thread \(round)")
      thread.addEventCallback { (_: Small) in }
      #expect(Small().queueToEach(on: central).map(\.receiver) == ["thread \(round)"])
      thread.cancel()
      thread.join()
    }
  }
}
