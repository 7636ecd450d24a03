// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of the article on tasks and actors, compiled as a user would.

import EventCore
import EventCoreTestSupport
import Testing

@Suite("The examples of the article on tasks and actors")
struct TaskExamples {
  struct Score: Eventable { var points = 0 }
  struct Order: Eventable { var id = 0 }
  struct PriceQuery: Eventable { var id = 0 }
  struct PointsQuery: Eventable { var player = "" }
  struct Price: Sendable { var cents = 0 }
  struct Spawn: Eventable { var count = 1 }
  struct Hit: Eventable {
    var player = "Ann"
    var points = 1
  }

  actor Board {
    let shown = Log<Int>()
    func show(_ score: Score) { shown.append(score.points) }
  }

  actor Shop {
    func price(of id: Int) throws -> Int { 100 * id }
  }

  actor Ledger {
    let log = Log<Int>()
    func book(_ order: Order) throws { log.append(order.id) }
  }

  @Test func sequence() async {
    let (world, board) = (EventCentral(), Board())
    let scores = Score.events(on: world)
    let display = Task {
      for await score in scores { await board.show(score) }
    }
    Score(points: 3).queue(on: world)
    await offThePool { #expect(board.shown.entries(atLeast: 1) == [3]) }
    scores.end()
    await display.value
  }

  @Test func next() async throws {
    let world = EventCentral()
    let waiting = Task {
      let high = try await Score.next(on: world, where: { $0.points > 100 }, within: .seconds(600))
      return high.points
    }
    while Score(points: 101).queue(on: world) == 0 { await Task.yield() }
    #expect(try await waiting.value == 101)
  }

  @Test func handlersThatAwait() async {
    let (world, shop, ledger) = (EventCentral(), Shop(), Ledger())
    Order.addListener(shop, concurrency: .concurrent(4), on: world) { order in
      try await ledger.book(order)
    }
    Order(id: 1).queue(on: world)
    await offThePool { #expect(ledger.log.entries(atLeast: 1) == [1]) }
    withExtendedLifetime(shop) {}
  }

  @Test func askAndAnswer() async throws {
    let (world, shop) = (EventCentral(), Shop())
    PriceQuery.answer(on: world) { query in Price(cents: try await shop.price(of: query.id)) }

    let price = try await world.request(PriceQuery(id: 7), expecting: Price.self, within: .seconds(600))
    #expect(price.cents == 700)
  }

  actor Physics {
    let thread: EventThread
    var bodies = 0
    init(on thread: EventThread) { self.thread = thread }
    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }
    func add(_ count: Int) { bodies += count }
  }

  @Test func actors() async {
    let world = EventCentral()
    let thread = EventThread(on: world)
    let physics = Physics(on: thread)
    thread.addEventCallback { [weak physics] (spawn: Spawn) in
      physics?.assumeIsolated { $0.bodies += spawn.count }
    }
    await physics.add(1)
    Spawn(count: 2).queue(on: world)
    await physics.add(4)
    #expect(await physics.bodies == 7)
    thread.cancel()
  }

  @Test func worker() async throws {
    let world = EventCentral()
    let counter = EventWorker(on: world, state: [String: Int]()) { on in
      on(Hit.self) { points, hit in points[hit.player, default: 0] += hit.points }
      on.answer(PointsQuery.self) { points, query in points[query.player, default: 0] }
    }
    Hit().queue(on: world)
    let points: Int = try await world.request(PointsQuery(player: Hit().player), within: .seconds(600))
    #expect(points == Hit().points)
    #expect(await counter.thread.drain())
  }

  @Test func token() {
    let (world, log) = (EventCentral(), Log<Int>())
    let token = Score.listen(executeOn: .listenerThread, on: world) { score in log.append(score.points) }
    Score(points: 5).queue(on: world)
    #expect(log.entries(atLeast: 1) == [5])
    withExtendedLifetime(token) {}
  }
}
