// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Testing

@testable import EventCore

/// A program of everything that would be concurrent, whose handlers dispatch on, as long as an event has lives left.
private final class Program {
  struct Ball: Eventable {
    var number: Int
    var lives: Int
    /// Decides what its handlers do: they have no other source of chance.
    var random: UInt64
  }
  struct Note: Eventable {
    var text: String
    var lives: Int
  }
  struct Latest: Eventable { var number: Int }
  /// Its keys are hashed, in another way in each process.
  struct Moved: Conflatable {
    var entity: String
    var number: Int
    var conflationKey: String { entity }
  }

  final class Player: EventThread, @unchecked Sendable {
    // It adds no state.
    override func registerEventListeners() { addEventCallback(Player.onBall) }

    func onBall(_ ball: Ball) {
      guard ball.lives > 0 else { return }
      var random = SeededRandom(seed: ball.random)
      for number in 0..<Int.random(in: 0...2, using: &random) {
        let next = Ball(number: ball.number * 10 + number, lives: ball.lives - 1, random: random.next())
        let priority = EventPriority.allCases.randomElement(using: &random)!
        switch Int.random(in: 0..<8, using: &random) {
        case 0: next.stack(priority: priority, on: central)
        case 1: next.scheduleQueue(after: .milliseconds(Int.random(in: 0..<5, using: &random)), on: central)
        case 2: queueEvent(next, priority: priority)
        case 3: Latest(number: next.number).queue(on: central)
        case 4:
          // Some of them have a key in common.
          (0..<5).map { Moved(entity: "entity \(next.number % (2 + $0 % 2))", number: $0) }.queue(on: central)
        case 5:
          Moved(entity: "entity \(next.number % 3)", number: next.number).queue(priority: priority, on: central)
          next.queue(priority: priority, on: central)
        default: next.queue(priority: priority, on: central)
        }
      }
      Note(text: "note of \(ball.number)", lives: 1).queue(priority: .high, on: central)
    }
  }

  final class Worker: EventThread, @unchecked Sendable {
    // It adds no state.
    override func registerEventListeners() {
      addEventCallback({ (_: Latest) in }, interestedIn: .latestOnly)
      addEventCallback({ (_: Moved) in }, interestedIn: .latestPerKey)
      addEventCallback(Worker.onNote)
    }

    func onNote(_ note: Note, _ priority: EventPriority, _ time: DispatchTime) {
      guard note.lives > 0 else { return }
      Note(text: note.text, lives: note.lives - 1).queue(on: central)
    }
  }

  /// The trace of one run, and how many events were handled.
  static func run(seed: UInt64, _ core: EventCentral.Core) -> (trace: EventTrace, handled: Int) {
    let clock = ManualClock()
    let world = EventCentral(deterministic: seed, core: core, clock: clock)
    let players = (0..<2).map { Player(on: world, name: "player \($0)") }
    let balanced = EventPool<Worker>(
      capacity: 2, balancer: .lowestLoad, on: world, name: "balanced") { _ in Worker() }
    let shared = EventPool<Worker>(capacity: 3, balancer: .shared, on: world, name: "shared") { _ in Worker() }
    let pump = EventPump(on: world)
    pump.addEventCallback({ (_: Latest) in }, interestedIn: .latestOnly)
    pump.addEventCallback({ (_: Moved) in }, interestedIn: .latestPerKey)
    // Drops what comes while two wait, and raises what it handles in a tree, whose handlers hand on to other threads.
    let bounded = EventThread(on: world, mailbox: .bounded(2, whenFull: .dropOldest), name: "bounded")
    let root = EventNode(core: core)
    let node = EventNode(parent: root)
    bounded.addEventCallback { (ball: Ball) in node.raise(event: ball) }
    bounded.addEventCallback({ (_: Moved) in }, interestedIn: .latestPerKey)
    node.addHandler(.onRaise, executeOn: players[0]) { (ball: Ball) in
      Latest(number: -ball.number).queue(on: world)
    }
    root.addHandler(.onPropagate, executeOn: bounded) { (_: Ball) in }
    let places: [ExecuteEventOn] = [
      .listenerThread, .taskThread, .dispatchQueue(DispatchQueue(label: "queue")), .pump(pump),
    ]
    let listeners = places.map { place in
      Note.addListener(
        nil, { note in Latest(number: note.text.utf8.count).queue(on: world) }, executeOn: place, on: world)
    }
    let own = EventListener(on: world, name: "own")
    Ball.addListener(nil, { _ in }, executeOn: .listenerThread, on: own)
    var handled = 0
    let trace = world.trace {
      for number in 1...2 {
        Ball(number: number, lives: 2, random: seed &* 31 &+ UInt64(number)).queue(on: world)
      }
      let tick = Latest(number: 0).scheduleQueue(every: .milliseconds(2), on: world)
      // Half of it in small runs.
      for _ in 0..<5 { handled += world.run(limit: 3) }
      for step in 0..<6 {
        handled += world.run()
        if step == 3 {
          shared.capacity = 1
          balanced.capacity = 3
          listeners[1].remove()
        }
        handled += pump.run(limit: step).handled
        clock.advance(by: .milliseconds(1))
      }
      tick.cancel()
      for _ in 0..<3 {
        handled += world.run()
        clock.advance(by: .milliseconds(1))
      }
      for player in players as [EventThread] + [bounded] {
        let waits = player.eventCount
        #expect(player.drain())
        #expect(waits == 0 || player.statistics.cancelled == 0)
      }
      #expect(balanced.drain() && shared.drain())
      handled = Int(players.reduce(0) { $0 + $1.statistics.delivered })
    }
    // The listeners' closures retain the central, which retains the listeners.
    for listener in listeners { listener.remove() }
    pump.cancel()
    pump.run()
    return (trace, handled)
  }
}

extension DeterminismTests {
  @Test("the same seed gives the same trace, in two runs and on all cores, for 1,000 seeds", .timeLimit(.minutes(20)))
  func thousandSeeds() {
    // From a fixed number on, so that a failure can be had again by its seed alone.
    let seeds = stride(from: UInt64(0), to: 1_000, by: seedStep)
    var first: EventTrace?
    var differing = 0
    for seed in seeds {
      let run = Program.run(seed: seed, .available[0])
      #expect(run.handled > 0)
      // Each seed twice: on the other core, and now and then, or if there is none, on the same one.
      for core in EventCentral.Core.available.dropFirst() + (seed % 10 == 0 || cores.count == 1 ? cores.prefix(1) : []) {
        let again = Program.run(seed: seed, core)
        guard run.trace == again.trace else {
          Issue.record("seed \(seed), \(core): \(run.trace.firstDifference(from: again.trace) ?? "")")
          return
        }
      }
      if let first, first != run.trace { differing += 1 }
      first = first ?? run.trace
    }
    #expect(differing == Array(seeds).count - 1)
  }

  /// Of the traces of the first seeds. A change of these numbers is one of what a seed means, which users will notice.
  private static let checksums: [UInt64] = [
    0xcaf7_1156_67df_63e8, 0x4497_9d98_9a7d_c037, 0x5844_f955_17a2_55db, 0x4bbd_2049_3e59_e03a, 0xc18a_1920_e66e_0ce9,
    0xe0d1_2c0b_90da_9712, 0xe4b4_cac3_89f1_2fb4, 0xdea0_4632_02d2_744e, 0x28e1_831a_060a_dab0, 0x6b50_d28d_edb5_d066,
  ]

  @Test("a seed gives the same trace in each process, on each machine and on all cores", arguments: cores)
  func eachProcess(core: EventCentral.Core) {
    for (seed, checksum) in Self.checksums.enumerated() {
      let trace = Program.run(seed: UInt64(seed), core).trace.description
      let found = Self.checksum(trace)
      #expect(found == checksum, "seed \(seed) gives \(String(found, radix: 16)):\n\(trace)")
    }
  }

  /// FNV-1a.
  private static func checksum(_ text: String) -> UInt64 {
    text.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
  }

  #if os(Linux)
    @Test("a deterministic central has no thread of its own")
    func noThread() async {
      await #expect(processExitsWith: .success) {
        for core in EventCentral.Core.available {
          for seed in UInt64(0)..<5 { _ = Program.run(seed: seed, core) }
        }
        let names = Set(threadNames())
        #expect(names.isEmpty, "\(names)")
      }
    }
  #endif
}
