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
        case 4, 5:
          Moved(entity: "entity \(next.number % 3)", number: next.number).queue(priority: priority, on: central)
          next.queue(priority: priority, on: central)
        default: next.queue(priority: priority, on: central)
        }
      }
      Note(text: "note of \(ball.number)", lives: 1).queue(priority: .high, on: central)
    }
  }

  final class Worker: EventThread, @unchecked Sendable {
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

@Suite("Determinism: a seed decides what runs when")
struct DeterminismTests {
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
    0x61e2_3ec9_78d1_b6e1, 0xee13_7c03_d65f_d573, 0xc445_b49f_0413_c00b, 0xe4ab_5b40_da6f_4886, 0x9606_23ba_f7c7_0b96,
    0xb60e_06ad_324a_484f, 0x8d9a_bb78_5ad1_a23d, 0xdea0_4632_02d2_744e, 0x785a_d4f2_1dab_b11a, 0x4cfb_762f_9224_02f8,
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

  struct Number: Eventable { var value = 0 }

  @Test("seeds lead to every order of two threads that have an event each", arguments: cores)
  func everyOrder(core: EventCentral.Core) {
    var orders: Set<[String]> = []
    for seed in UInt64(0)..<200 {
      let world = EventCentral(deterministic: seed, core: core)
      let threads = ["a", "b", "c"].map { name in
        let thread = EventThread(on: world, name: name)
        thread.addEventCallback { (_: Number) in }
        return thread
      }
      let trace = world.trace {
        Number().queue(on: world)
        #expect(world.run() == 3)
      }
      orders.insert(trace.entries.map(\.receiver))
      for thread in threads { thread.cancel() }
    }
    #expect(orders.count == 6)
  }

  @Test("seeds lead to every distribution of two events over two threads of a shared pool", arguments: cores)
  func everyWorker(core: EventCentral.Core) {
    final class Worker: EventThread, @unchecked Sendable {
      override func registerEventListeners() { addEventCallback { (_: Number) in } }
    }
    var orders: Set<[String]> = []
    for seed in UInt64(0)..<100 {
      let world = EventCentral(deterministic: seed, core: core)
      let pool = EventPool<Worker>(capacity: 2, balancer: .shared, on: world, name: "w") { _ in Worker() }
      let trace = world.trace {
        Number().queue(on: world)
        Number().queue(on: world)
        #expect(world.run() == 2)
      }
      orders.insert(trace.entries.map(\.receiver))
      pool.cancel()
    }
    #expect(orders == [["w-0", "w-0"], ["w-0", "w-1"], ["w-1", "w-0"], ["w-1", "w-1"]])
  }

  @Test("D1: within each receiver the most urgent event comes first, whatever the seed", arguments: cores)
  func lanes(core: EventCentral.Core) {
    for seed in UInt64(0)..<50 {
      let world = EventCentral(deterministic: seed, core: core)
      let (first, second) = (Log<Int>(), Log<Int>())
      let threads = [first, second].map { log in
        let thread = EventThread(on: world)
        thread.addEventCallback { (number: Number) in
          log.append(number.value)
          // Overtakes the backlog.
          if number.value == 3 { Number(value: 99).stack(on: world) }
        }
        return thread
      }
      for value in 0..<4 { Number(value: value).queue(priority: value < 2 ? .low : .normal, on: world) }
      world.run()
      for log in [first, second] {
        // The second thread's own 3 comes at its own time, so that it gets a 99 before or after that.
        #expect(log.entries.filter { $0 != 99 } == [2, 3, 0, 1])
        #expect(log.entries.count == 6)
      }
      for thread in threads { thread.cancel() }
    }
  }

  @Test("a run handles as many events as it is told to, and at 0 none", arguments: cores)
  func limits(core: EventCentral.Core) {
    let world = EventCentral(deterministic: 1, core: core)
    let thread = EventThread(on: world)
    thread.addEventCallback { (_: Number) in }
    #expect(world.run() == 0)
    for value in 0..<10 { Number(value: value).queue(on: world) }
    #expect(world.run(limit: 0) == 0)
    #expect(world.run(limit: 1) == 1)
    #expect(thread.eventCount == 9)
    #expect(world.run(limit: 3) == 3)
    #expect(world.run(limit: 7) == 6)
    #expect(thread.statistics.delivered == 10)
    thread.cancel()
    Number().queue(on: world)
    #expect(world.run() == 0)
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

  @Test("everything runs on the thread that calls run", arguments: cores)
  func oneThread(core: EventCentral.Core) {
    let world = EventCentral(deterministic: 3, core: core)
    let thread = EventThread(on: world)
    let places = Log<UInt>()
    thread.addEventCallback { (_: Number) in places.append(currentThread()) }
    for place in [ExecuteEventOn.listenerThread, .taskThread, .dispatchQueue(.global())] {
      Number.addListener(nil, { _ in places.append(currentThread()) }, executeOn: place, on: world)
    }
    let node = EventNode(core: core)
    node.addHandler(.onRaise, executeOn: thread) { (_: Number) in places.append(currentThread()) }
    node.raise(event: Number())
    Number().queue(on: world)
    #expect(places.entries.isEmpty)
    world.run()
    #expect(places.entries == Array(repeating: currentThread(), count: 5))
    thread.cancel()
  }

  @Test("D9, D10: listeners, threads and pools end in a deterministic central as in any other", arguments: cores)
  func endings(core: EventCentral.Core) {
    final class Owner: Sendable {}
    final class Worker: EventThread, @unchecked Sendable {
      override func registerEventListeners() { addEventCallback { (_: Held) in } }
    }
    struct Held: Eventable { let token: Lifetime.Token }
    let lifetime = Lifetime()
    let world = EventCentral(deterministic: 5, core: core)
    var owner: Owner? = Owner()
    let count = Log<Int>()
    Number.addListener(owner, { _ in count.append(1) }, executeOn: .listenerThread, on: world)
    Number().queue(on: world)
    world.run()
    owner = nil
    Number().queue(on: world)
    world.run()
    #expect(count.entries == [1])
    for balancer: any EventPoolBalancing in [.roundRobin, .shared] {
      var pool: EventPool<Worker>? = EventPool(capacity: 3, balancer: balancer, on: world) { _ in Worker() }
      for _ in 0..<5 { Held(token: lifetime.token()).queue(on: world) }
      #expect(world.run(limit: 2) == 2)
      pool = nil
      #expect(lifetime.waitUntilNone())
      #expect(pool == nil)
    }
    let thread = EventThread(on: world)
    thread.addEventCallback { (_: Held) in }
    for _ in 0..<5 { Held(token: lifetime.token()).queue(on: world) }
    #expect(thread.drain())
    #expect(thread.statistics.delivered == 5)
    thread.join()
    // Retired threads of a pool handle what was promised to them.
    let pool = EventPool<Worker>(capacity: 4, on: world) { _ in Worker() }
    for _ in 0..<8 { Held(token: lifetime.token()).queue(on: world) }
    pool.capacity = 1
    #expect(world.run() == 8)
    #expect(pool.withThreads { $0.count } == 1)
    pool.join(afterCancel: true)
    #expect(lifetime.waitUntilNone())
  }

  @Test("D9: a drained pool leaves nothing behind, also what its threads were subscribed to", arguments: cores)
  func drainedPool(core: EventCentral.Core) {
    struct Held: Eventable { let token: Lifetime.Token }
    final class Worker: EventThread, @unchecked Sendable {
      override func registerEventListeners() { addEventCallback { (_: Held) in } }
    }
    let (world, lifetime) = (EventCentral(deterministic: 7, core: core), Lifetime())
    let pool = EventPool<Worker>(capacity: 2, balancer: .shared, on: world, name: "w") { _ in
      let (thread, token) = (Worker(), lifetime.token())
      thread.addEventCallback { (_: Number) in withExtendedLifetime(token) {} }
      return thread
    }
    Held(token: lifetime.token()).queue(on: world)
    #expect(pool.drain())
    #expect(lifetime.waitUntilNone())
  }

  @Test("D9: a central that is released with events that wait leaves nothing behind", arguments: cores)
  func releasedEarly(core: EventCentral.Core) {
    struct Held: Eventable { let token: Lifetime.Token }
    let lifetime = Lifetime()
    do {
      let world = EventCentral(deterministic: 6, core: core)
      let thread = EventThread(on: world)
      thread.addEventCallback { (_: Held) in }
      Held.addListener(nil, { _ in }, executeOn: .listenerThread, on: world)
      Held(token: lifetime.token()).queue(on: world)
    }
    #expect(lifetime.waitUntilNone())
  }

  @Test("D6: a handler that is removed is not called, and removals need no wait", arguments: cores)
  func removals(core: EventCentral.Core) {
    let world = EventCentral(deterministic: 8, core: core)
    let thread = EventThread(on: world)
    let handle = thread.addEventCallback { (_: Number) in _ = Issue.record("D6: called after its removal") }
    Number().queue(on: world)
    handle.removeAndWait()
    #expect(world.run() == 1)
    #expect(thread.statistics.skipped == 1)
    thread.cancel()
  }

  @Test("a task awaits the end of a thread without anybody else running the central", arguments: cores)
  func asynchronousEnds(core: EventCentral.Core) async {
    let world = EventCentral(deterministic: 9, core: core)
    let thread = EventThread(on: world)
    let count = Log<Int>()
    thread.addEventCallback { (number: Number) in
      count.append(number.value)
      if number.value < 3 { thread.queueEvent(Number(value: number.value + 1)) }
    }
    Number(value: 0).queue(on: world)
    world.run()
    Number(value: 3).queue(on: world)
    #expect(await thread.drain())
    await thread.join()
    #expect(count.entries == [0, 1, 2, 3, 3])
  }

  @Test("the MainActor's handlers run inside a run on the main thread", arguments: cores)
  @MainActor func mainActor(core: EventCentral.Core) {
    final class Screen: UIEventThread, @unchecked Sendable {}
    let world = EventCentral(deterministic: 2, core: core)
    let (screen, bounded) = (Screen(on: world), Screen(on: world, mailbox: .bounded(8, whenFull: .refuse)))
    var count = 0
    for screen in [screen, bounded] {
      screen.addEventCallback { @MainActor @Sendable (_: Number) in count += 1 }
    }
    Number.addListener(nil, on: world) { _ in count += 1 }
    Number().queue(on: world)
    #expect(count == 0)
    #expect(world.run() == 3)
    #expect(count == 3)
    Number().queue(on: world)
    #expect(screen.drain() && bounded.drain())
    #expect(count >= 5)
  }

  @Test("scheduled events run at their time on the manual clock, as do those of a fixed interval", arguments: cores)
  func schedules(core: EventCentral.Core) {
    let clock = ManualClock()
    let world = EventCentral(deterministic: 4, core: core, clock: clock)
    let thread = EventThread(on: world)
    let times = Log<DispatchTime>()
    thread.addEventCallback { (_: Number, _, time) in times.append(time) }
    let start = world.now
    Number().scheduleQueue(every: .seconds(10), limit: 3, on: world)
    #expect(world.run() == 0)
    for second in 1...40 {
      clock.advance(by: .seconds(1))
      #expect(world.run() == (second % 10 == 0 && second <= 30 ? 1 : 0))
    }
    #expect(times.entries == [10, 20, 30].map { start + .seconds($0) })
    thread.cancel()
  }
}

extension EventPool {
  fileprivate func join(afterCancel: Bool) {
    if afterCancel { cancel() }
    join()
  }
}

@Suite("Determinism: what is refused")
struct DeterminismTrapTests {
  struct Number: Eventable { var value = 0 }
  actor Keeper {
    func listen(on world: EventCentral) { Number.addListener(nil, on: world) { _ in } }
  }

  @Test("D12: a run on a central with threads")
  func ordinary() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let world = EventCentral()
      world.run()
    }
    expectMessage(result, "make it by EventCentral(deterministic: seed)")
  }

  @Test("D12: a run, a drain and a join inside a handler")
  func nested() async {
    let running = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let world = EventCentral(deterministic: 1)
      let thread = EventThread(on: world)
      thread.addEventCallback { (_: Number) in world.run() }
      Number().queue(on: world)
      world.run()
    }
    expectMessage(running, "was called inside one of its handlers, where nothing else can run")
    let draining = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let world = EventCentral(deterministic: 1)
      let (thread, other) = (EventThread(on: world), EventThread(on: world))
      thread.addEventCallback { (_: Number) in other.drain() }
      Number().queue(on: world)
      world.run()
    }
    expectMessage(draining, "was called inside one of its handlers, where nothing else can run")
    let joining = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let world = EventCentral(deterministic: 1)
      await offThePool { EventThread(on: world).join() }
    }
    expectMessage(joining, "nothing is left to run in this deterministic central")
  }

  @Test("D12: an actor, and the main queue elsewhere than on the main thread")
  func actors() async {
    let actor = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      await Keeper().listen(on: EventCentral(deterministic: 1))
    }
    expectMessage(actor, "is an actor, which runs where its executor does")
    let main = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let world = EventCentral(deterministic: 1)
      Number.addListener(nil, { _ in }, executeOn: .main, on: world)
      Number().queue(on: world)
      await offThePool { world.run() }
    }
    expectMessage(main, "call it on the main thread")
  }

  @Test("D12: a trace inside of a trace")
  func traces() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let world = EventCentral(deterministic: 1)
      _ = world.trace { _ = world.trace {} }
    }
    expectMessage(result, "A central has one trace at a time")
  }
}
