// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

/// What the loop itself dispatches.
extension EventPumpTests {
  @Test("D1 to D3: events that only the loop dispatches keep the order of all", arguments: cores)
  func ownEvents(core: EventCentral.Core) {
    var random = SeededRandom(seed: announcedSeed("ownEvents"))
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    let game = Game()
    var model = LaneModel<Int>()
    var next = 0
    var expected: [Int] = []
    // In runs of one lane, since a lane's second event in succession may take another way than the first.
    func post(_ count: Int) {
      let lane = Int.random(in: 0..<10, using: &random)
      let (method, priority) = Self.lanes[lane]
      for _ in 0..<count {
        let ping = Ping(number: next)
        switch Int.random(in: 0..<5, using: &random) {
        case 0: Self.post(ping, lane, on: central)
        default:
          let isAccepted =
            method == .queue
            ? pump.queueEvent(ping, priority: priority) : pump.stackEvent(ping, priority: priority)
          #expect(isAccepted)
        }
        model.post(next, lane: lane)
        next += 1
      }
    }
    var replies = 0
    pump.addEventCallback { (ping: Ping) in
      game.seen.append(ping.number)
      if let number = model.take() { expected.append(number) }
      guard replies > 0 else { return }
      replies -= 1
      post(Int.random(in: 0..<4, using: &random))
    }
    for _ in 0..<300 {
      replies = 20
      post(Int.random(in: 0..<50, using: &random))
      pump.run(limit: Int.random(in: 0...60, using: &random))
    }
    replies = 0
    #expect(pump.eventCount == next - game.seen.count)
    #expect(pump.run().waiting == 0)
    #expect(game.seen.count == next)
    #expect(game.seen == expected)
    // The callback retains the pump.
    pump.cancel()
    pump.run()
  }

  #if URCU
    @Test("D2, D4: an event of the loop joins the open batch while it is for such events, and not after a change")
    func openBatch() throws {
      let central = EventCentral(core: .lockFree)
      let pump = EventPump(on: central)
      let game = Game()
      let batch = try #require(pump.openBatch)
      let normal = Lane(.queue, .normal)
      func isOpen(_ lane: Lane) -> Bool { batch.place(for: Ping.self, lane) != nil }
      func open() {
        for _ in 0..<3 { #expect(pump.queueEvent(Ping(number: 0))) }
        #expect(isOpen(normal))
      }
      #expect(!isOpen(normal))
      let first = pump.addEventCallback { (ping: Ping) in game.seen.append(ping.number) }
      #expect(!isOpen(normal))
      open()
      #expect(!isOpen(Lane(.queue, .high)) && !isOpen(Lane(.stack, .normal)))
      #expect(batch.place(for: Pong.self, normal) == nil)
      // What waits in the inbox comes first.
      Ping(number: 0).queue(on: central)
      #expect(!isOpen(normal))
      // A pump that ran dry is armed: the next event wakes it.
      #expect(pump.run().handled == 4)
      #expect(!isOpen(normal))
      open()
      // A registration changes the route.
      let second = pump.addEventCallback { (ping: Ping) in game.seen.append(ping.number) }
      #expect(!isOpen(normal))
      #expect(pump.queueEvent(Ping(number: 0)))
      #expect(pump.run().handled == 4)
      #expect(game.seen.count == 4 + 3 + 2)
      // Without a callback nobody gets it.
      open()
      first.remove()
      second.remove()
      #expect(!isOpen(normal))
      #expect(!pump.queueEvent(Ping(number: 0)))
      pump.addEventCallback { (ping: Ping) in game.seen.append(ping.number) }
      open()
      pump.cancel()
      #expect(!isOpen(normal))
      #expect(!pump.queueEvent(Ping(number: 0)))
    }
  #endif

  @Test("No batch is open for the locking core, nor where events carry a value")
  func noOpenBatch() {
    #expect(EventPump(on: EventCentral(core: .locking)).openBatch == nil)
    let carrier = EventCarrier(
      capture: { nil }, restore: { _, _, body in body() }, restoreInTask: { _, _, body in await body() })
    for core in cores {
      let central = EventCentral(CentralBasis(core: core, carrier: carrier), seed: nil)
      #expect(EventPump(on: central).openBatch == nil)
    }
  }

  @Test("D4: events with references that the loop dispatches are handled or freed, each once", arguments: cores)
  func ownReferences(core: EventCentral.Core) {
    let lifetime = Lifetime()
    do {
      let pump = EventPump(on: EventCentral(core: core))
      let game = Game()
      pump.addEventCallback { (heavy: Heavy) in game.seen.append(heavy.number) }
      // More than fit into one batch.
      for number in 0..<500 {
        let heavy = Heavy(number: number, token: lifetime.token())
        #expect(pump.queueEvent(heavy))
      }
      #expect(pump.run(limit: 200).waiting == 300)
      #expect(game.seen == Array(0..<200))
      #expect(lifetime.alive == 300)
    }
    #expect(lifetime.alive == 0)
  }

  @Test("D10: events of the loop that wait when the pump ends are freed and counted", arguments: cores)
  func ownEventsAtTheEnd(core: EventCentral.Core) {
    let lifetime = Lifetime()
    let pump = EventPump(on: EventCentral(core: core))
    pump.addEventCallback { (_: Heavy) in }
    for number in 0..<100 {
      #expect(pump.queueEvent(Heavy(number: number, token: lifetime.token())))
    }
    #expect(pump.run(limit: 30).waiting == 70)
    pump.cancel()
    #expect(!pump.queueEvent(Heavy(number: 100, token: lifetime.token())))
    #expect(pump.run() == Self.report(0))
    #expect(pump.statistics.cancelled == 70)
    #expect(lifetime.alive == 0)
  }
}
