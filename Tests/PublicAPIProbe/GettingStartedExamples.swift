// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of "Getting started" and "Testing your handlers", compiled and run as a user would.

import EventCore
import EventCoreTesting
import Synchronization
import Testing

// "Make an event".
struct ScoreChanged: Eventable {
  var player: String
  var points: Int
}

// "Let a listener end with its owner".
@MainActor
final class Scoreboard {
  private(set) var points: [String: Int] = [:]

  init() {
    ScoreChanged.addListener(self) { [weak self] event in
      self?.points[event.player] = event.points
    }
  }
}

final class ScoreLog: Sendable {
  private let lines = Mutex<[String]>([])

  init(on source: any EventListenable = EventCentral.shared) {
    ScoreChanged.addListener(self, ScoreLog.onScore, executeOn: .listenerThread, on: source)
  }

  var text: [String] { lines.withLock { $0 } }

  func onScore(_ event: ScoreChanged) {
    lines.withLock { $0.append("\(event.player): \(event.points)") }
  }
}

// "Give work a thread of its own".
struct Hit: Eventable {
  var player: String
  var points: Int
}

final class Referee: EventThread, @unchecked Sendable {
  private var totals: [String: Int] = [:]

  override func registerEventListeners() {
    addEventCallback(Referee.onHit)
  }

  func onHit(_ event: Hit) {
    totals[event.player, default: 0] += event.points
    ScoreChanged(player: event.player, points: totals[event.player]!).queue(on: central)
  }

  /// After the thread has ended.
  func total(of player: String) -> Int { totals[player, default: 0] }
}

func play() async {
  let referee = Referee()
  Hit(player: "Ann", points: 10).queue()
  Hit(player: "Bob", points: 5).queue(priority: .high)
  Hit(player: "Cleo", points: 50).stack(priority: .highest)
  await referee.drain()
}

// "Hold a thread to build up a backlog".
struct Hold: Eventable {
  let begun: CheckedContinuation<Void, Never>
}

final class HeldReferee: EventThread, @unchecked Sendable {
  private let gate = DispatchSemaphore(value: 0)
  private(set) var order: [String] = []

  override func registerEventListeners() {
    addEventCallback(HeldReferee.onHold)
    addEventCallback(HeldReferee.onHit)
  }

  func onHold(_ event: Hold) {
    event.begun.resume()
    gate.wait()
  }

  func onHit(_ event: Hit) { order.append(event.player) }

  func open() { gate.signal() }
}

// "How a thread waits", of "Choosing a facility".
func makePhysics(on world: EventCentral) -> EventThread {
  let physics = EventThread(on: world, waitStrategy: .spinThenPark(.microseconds(50)), name: "physics")
  return physics
}

@Suite("The examples of \"Getting started\" and \"Testing your handlers\"", .serialized)
struct GettingStartedExamples {
  struct ItemAdded: Eventable {
    var count: Int
  }

  // "Listen, and dispatch" sleeps until the listener has printed, so it is compiled but not run.
  @MainActor
  func listenAndDispatch() async throws {
    ScoreChanged.addListener(nil) { event in
      print("\(event.player) has \(event.points) points")
    }

    ScoreChanged(player: "Ann", points: 10).queue()
    try await Task.sleep(for: .milliseconds(100))
  }

  @Test("a listener on the MainActor is called there")
  @MainActor
  func scoreboard() async {
    let board = Scoreboard()
    ScoreChanged(player: "Ann", points: 10).queue()
    while board.points["Ann"] != 10 { await Task.yield() }
  }

  @Test("the event thread of \"Getting started\" runs and ends")
  func firstThread() async {
    await play()
    _ = ScoreLog()
    #expect(await makePhysics(on: EventCentral()).drain())
  }

  @Test func hitsAddUp() async {
    let world = EventCentral()
    let referee = Referee(on: world)
    Hit(player: "Ann", points: 10).queue(on: world)
    Hit(player: "Ann", points: 5).queue(on: world)
    #expect(await referee.drain())
    #expect(referee.total(of: "Ann") == 15)
  }

  @Test func scoresAreLogged() async {
    let world = EventCentral()
    let stage = EventThread(on: world)
    let log = ScoreLog(on: stage)
    ScoreChanged(player: "Ann", points: 10).queue(on: world)
    #expect(await stage.drain())
    #expect(log.text == ["Ann: 10"])
  }

  @Test(.timeLimit(.minutes(1))) func hitsChangeTheScore() async {
    let world = EventCentral()
    let referee = Referee(on: world)
    let scores = ScoreChanged.events(on: world)   // from here on
    Hit(player: "Ann", points: 10).queue(on: world)
    #expect(await scores.first { _ in true }?.points == 10)
    #expect(await referee.drain())
  }

  @Test func urgentHitsComeFirst() async {
    let world = EventCentral()
    let referee = HeldReferee(on: world)
    await withCheckedContinuation { begun in
      _ = Hold(begun: begun).queue(on: world)
    }
    Hit(player: "Ann", points: 1).queue(on: world)
    Hit(player: "Bob", points: 1).stack(priority: .highest, on: world)
    referee.open()
    #expect(await referee.drain())
    #expect(referee.order == ["Bob", "Ann"])
  }

  @Test func theBadgeHears() {
    let app = EventNode(name: "app")
    let cart = EventNode(parent: app, name: "cart")
    let badge = EventNode(parent: app, name: "badge")
    badge.addHandler { (event: ItemAdded) in }
    #expect(cart.raise(event: ItemAdded(count: 1)).handlerCount == 1)
  }

  @Test func hitsChangeTheScoreInOrder() async throws {
    let world = EventCentral(deterministic: 1)
    let referee = Referee(on: world)
    let scores = EventProbe(ScoreChanged.self, on: world)
    Hit(player: "Ann", points: 10).queue(on: world)
    let score = try await world.next(ScoreChanged.self, within: .seconds(1))
    #expect(score.points == 10)
    Hit(player: "Ann", points: 5).scheduleQueue(after: .seconds(60), on: world)
    try await world.expect(no: ScoreChanged.self, within: .seconds(59))
    world.advance(by: .seconds(1))
    #expect(scores.events.map(\.points) == [10, 15])
    referee.cancel()
  }

  @Test(arguments: UInt64(0)..<100)
  func hitsAddUpInEveryOrder(seed: UInt64) {
    let world = EventCentral(deterministic: seed)
    let referees = [Referee(on: world), Referee(on: world)]
    Hit(player: "Ann", points: 10).queue(on: world)
    world.run()
    for referee in referees { #expect(referee.total(of: "Ann") == 10) }
  }

  @Test func theBreakIsScheduled() {
    let world = EventCentral()
    let pause = ScoreChanged(player: "break", points: 0).scheduleQueue(after: .seconds(3600), on: world)
    #expect(pause.state == .waiting)
    #expect(pause.cancel())
    #expect(world.scheduleStatistics.cancelled == 1)
  }

  @Test func aBusyPoolDoesNotShrink() {
    let scaler = EventPoolDynamicScaler(minimum: 1, maximum: 4)
    let busy = EventPoolReading(capacity: 2, threads: 2, busyThreads: 2, waiting: 100, handled: 0)
    #expect(scaler.capacity(for: busy) >= 2)
  }

  @Test(arguments: EventCentral.Core.available)
  func hitsAddUp(core: EventCentral.Core) async {
    let world = EventCentral(core: core)
    let referee = Referee(on: world)
    Hit(player: "Ann", points: 10).queue(on: world)
    #expect(await referee.drain())
  }
}
