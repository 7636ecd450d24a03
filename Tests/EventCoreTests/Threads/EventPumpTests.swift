// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Testing

@testable import EventCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

@Suite("EventPump: a mailbox that a loop drives")
struct EventPumpTests {
  /// State of a loop, which is not Sendable.
  final class Game {
    var seen: [Int] = []
  }

  static let lanes: [(EventDispatchMethod, EventPriority)] = [
    (.stack, .highest), (.stack, .high), (.stack, .normal), (.stack, .low), (.stack, .lowest),
    (.queue, .highest), (.queue, .high), (.queue, .normal), (.queue, .low), (.queue, .lowest),
  ]

  /// The report of a run that leaves nothing.
  static func report(_ handled: Int) -> EventPump.Report {
    EventPump.Report(handled: handled, waiting: 0, oldestAge: nil)
  }

  static func post(_ event: Ping, _ lane: Int, on central: EventCentral) {
    let (method, priority) = lanes[lane]
    switch method {
    case .queue: event.queue(priority: priority, on: central)
    case .stack: event.stack(priority: priority, on: central)
    }
  }

  @Test("D1 to D3: a run takes from the first lane that is not empty", arguments: cores)
  func lanes(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    let game = Game()
    pump.addEventCallback { (ping: Ping) in game.seen.append(ping.number) }
    for lane in (0..<10).reversed() {
      Self.post(Ping(number: 2 * lane), lane, on: central)
      Self.post(Ping(number: 2 * lane + 1), lane, on: central)
    }
    #expect(pump.eventCount == 20)
    #expect(pump.eventCount(priority: .low, method: .stack) == 2)
    #expect(pump.run() == Self.report(20))
    // A stack's last one first, a queue's first one.
    #expect(game.seen == [1, 0, 3, 2, 5, 4, 7, 6, 9, 8] + Array(10..<20))
    #expect(pump.statistics == .init(delivered: 20, skipped: 0, cancelled: 0))
  }

  @Test("D1: what a handler dispatches overtakes the backlog", arguments: cores)
  func overtaking(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    let game = Game()
    pump.addEventCallback { (ping: Ping) in
      game.seen.append(ping.number)
      if ping.number < 100 { Ping(number: ping.number + 100).queue(priority: .high, on: central) }
    }
    for number in 0..<100 { Ping(number: number).queue(on: central) }
    #expect(pump.run().handled == 200)
    #expect(game.seen == (0..<100).flatMap { [$0, $0 + 100] })
  }

  @Test("D1 to D3: what limits and deadlines leave keeps its order", arguments: cores)
  func pieces(core: EventCentral.Core) {
    var random = SeededRandom(seed: announcedSeed("pieces"))
    for _ in 0..<50 {
      let centrals = (0..<2).map { _ in EventCentral(core: core) }
      let pumps = centrals.map { EventPump(on: $0) }
      let games = [Game(), Game()]
      for (pump, game) in zip(pumps, games) {
        pump.addEventCallback { (ping: Ping) in game.seen.append(ping.number) }
      }
      for number in 0..<200 {
        let lane = Int.random(in: 0..<10, using: &random)
        for central in centrals { Self.post(Ping(number: number), lane, on: central) }
      }
      #expect(pumps[0].run().handled == 200)
      var handled = 0
      while true {
        let limit = Int.random(in: 0...40, using: &random)
        let deadline = ContinuousClock.now + .microseconds(Int.random(in: -10...40, using: &random))
        let report = pumps[1].run(until: deadline, limit: limit)
        handled += report.handled
        #expect(report.handled <= limit)
        #expect(report.waiting == 200 - handled)
        #expect((report.oldestAge == nil) == (report.waiting == 0))
        if report.waiting == 0 { break }
      }
      #expect(games[1].seen == games[0].seen)
    }
  }

  @Test("A deadline that has passed, and a limit of 0, let nothing begin", arguments: cores)
  func nothing(core: EventCentral.Core) {
    let pump = EventPump(on: EventCentral(core: core))
    let game = Game()
    pump.addEventCallback { (ping: Ping) in game.seen.append(ping.number) }
    let nothing = Self.report(0)
    #expect(pump.run() == nothing)
    #expect(pump.run(limit: 0) == nothing)
    #expect(pump.run(until: .now - .seconds(1)) == nothing)
    for number in 0..<3 { pump.queueEvent(Ping(number: number)) }
    for report in [pump.run(limit: 0), pump.run(until: .now - .seconds(1)), pump.run(until: .now)] {
      #expect(report.handled == 0)
      #expect(report.waiting == 3)
      #expect(report.oldestAge! >= .zero)
    }
    #expect(game.seen == [])
    #expect(pump.run(until: .now + .seconds(60)).handled == 3)
    #expect(game.seen == [0, 1, 2])
  }

  @Test("The age is one that the oldest event has at most", arguments: cores)
  func age(core: EventCentral.Core) {
    let pump = EventPump(on: EventCentral(core: core))
    pump.addEventCallback { (_: Ping) in }
    let begin = ContinuousClock.now
    pump.run()
    pump.queueEvent(Ping())
    pump.queueEvent(Ping())
    let posted = ContinuousClock.now
    let report = pump.run(limit: 1)
    #expect(report.oldestAge! >= .zero)
    let least = posted.duration(to: .now)
    let age = pump.run(limit: 0).oldestAge!
    #expect(age >= least)
    #expect(age <= begin.duration(to: .now))
    // The limit was reached and nothing is left: empty again.
    let before = ContinuousClock.now
    #expect(pump.run(limit: 1) == Self.report(1))
    pump.queueEvent(Ping())
    #expect(pump.run(limit: 0).oldestAge! <= before.duration(to: .now))
  }

  @Test("Every interest, and both forms of closure", arguments: cores)
  func interests(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central)
    var seen: [String] = []
    let latest = pump.addEventCallback(
      { (ping: Ping) in seen.append("latest \(ping.number)") }, interestedIn: .latestOnly)
    let even = pump.addEventCallback(
      { (ping: Ping, priority, time) in seen.append("\(priority) \(ping.number)") }, interestedIn: .custom,
      customFilter: { ping, _, _ in ping.number % 2 == 0 })
    let young = pump.addEventCallback(
      { (ping: Ping) in seen.append("young \(ping.number)") }, interestedIn: .youngerThan, maximumAge: 1)
    let time = DispatchTime.now()
    for number in 0..<4 { Ping(number: number).queue(priority: .high, on: central) }
    while DispatchTime.now().uptimeNanoseconds < time.uptimeNanoseconds + 1_000_000 {}
    pump.run()
    #expect(seen.filter { $0.hasPrefix("high") } == ["high 0", "high 2"])
    #expect(seen.filter { $0.hasPrefix("latest") } == ["latest 3"])
    #expect(seen.count == 3)
    #expect(latest.skippedCount == 3)
    #expect(even.skippedCount == 2)
    #expect(young.skippedCount == 4)
  }

  @Test("D7: a handler registers, dispatches, and removes itself", arguments: cores)
  func reentry(core: EventCentral.Core) {
    let pump = EventPump(on: EventCentral(core: core))
    let game = Game()
    var own: (any EventListenerHandling)?
    own = pump.addEventCallback { (ping: Ping) in
      game.seen.append(ping.number)
      pump.addEventCallback { (pong: Pong) in game.seen.append(pong.number + 1_000) }
      pump.queueEvent(Pong(number: ping.number))
      own?.remove()
    }
    for number in 0..<3 { pump.queueEvent(Ping(number: number)) }
    let report = pump.run()
    #expect(game.seen == [0, 1_000])
    #expect(report.handled == 4)
    own = nil
    pump.cancel()
  }

  @Test("D10: a handler ends its pump, and what waits is freed and counted", arguments: cores)
  func endingInside(core: EventCentral.Core) {
    let lifetime = Lifetime()
    let pump = EventPump(on: EventCentral(core: core))
    let token = lifetime.token()
    pump.addEventCallback { [unowned pump] (event: Heavy) in
      withExtendedLifetime(token) { if event.number == 1 { pump.cancel() } }
    }
    for number in 0..<5 { pump.queueEvent(Heavy(number: number, token: lifetime.token())) }
    #expect(pump.run() == Self.report(2))
    #expect(pump.statistics == .init(delivered: 2, skipped: 0, cancelled: 3))
    #expect(!pump.queueEvent(Heavy(number: 9, token: lifetime.token())))
    #expect(pump.run() == Self.report(0))
    #expect(lifetime.alive == 1)
    withExtendedLifetime(token) {}
  }

  @Test("D10: a pump is ended between two runs, and at a limit", arguments: cores, [0, 1, 3])
  func endingBetween(core: EventCentral.Core, handled: Int) {
    let lifetime = Lifetime()
    let pump = EventPump(on: EventCentral(core: core))
    pump.addEventCallback { [token = lifetime.token()] (_: Heavy) in withExtendedLifetime(token) {} }
    for number in 0..<3 { pump.queueEvent(Heavy(number: number, token: lifetime.token())) }
    pump.run(limit: handled)
    pump.cancel()
    #expect(lifetime.alive == 0)
    #expect(pump.statistics == .init(delivered: UInt64(handled), skipped: 0, cancelled: UInt64(3 - handled)))
    #expect(pump.run(until: .now + .seconds(1), limit: 5) == Self.report(0))
  }

  @Test("D9: a pump that goes away frees what waits, and its closures", arguments: cores)
  func released(core: EventCentral.Core) {
    let lifetime = Lifetime()
    let central = EventCentral(core: core)
    do {
      let pump = EventPump(on: central)
      pump.addEventCallback { [token = lifetime.token()] (_: Heavy) in withExtendedLifetime(token) {} }
      for number in 0..<5 { Heavy(number: number, token: lifetime.token()).queue(on: central) }
      #expect(lifetime.alive == 6)
    }
    #expect(lifetime.alive == 0)
    #expect(Heavy(number: 0, token: lifetime.token()).queue(on: central) == 0)
  }

  final class Window: @unchecked Sendable {
    // The test's thread alone uses it, which is that of the pump.
    var needsFrame = false
    private(set) var pump: EventPump!

    init(on central: EventCentral) {
      pump = EventPump(on: central, wakeUp: { [unowned self] in needsFrame = true })
      pump.addEventCallback { (_: Ping) in }
    }
  }

  @Test("D9, D10: the end of a pump does not call its wake-up closure, which may need what ends", arguments: cores)
  func noWakeUpAtItsEnd(core: EventCentral.Core) {
    let (central, log) = (EventCentral(core: core), Log<Void>())
    for isCancelled in [true, false] {
      let pump = EventPump(on: central, wakeUp: { log.append(()) })
      pump.addEventCallback { (_: Ping) in }
      pump.run()
      if isCancelled { pump.cancel() }
    }
    #expect(log.entries.isEmpty)
    Window(on: central).pump.run()
  }

  @Test("D6: a removal elsewhere frees no closure before the loop's next run", arguments: cores)
  func removedElsewhere(core: EventCentral.Core) async {
    await offThePool {
      let lifetime = Lifetime()
      let pump = EventPump(on: EventCentral(core: core))
      let handle = pump.addEventCallback { [token = lifetime.token()] (_: Ping) in
        withExtendedLifetime(token) {}
      }
      pump.queueEvent(Ping())
      onThreads(1) { _ in
        #expect(handle.removeAndWait())
        #expect(lifetime.alive == 1)
      }
      #expect(pump.run() == Self.report(1))
      #expect(pump.statistics == .init(delivered: 0, skipped: 1, cancelled: 0))
      #expect(lifetime.alive == 0)
    }
  }

  @Test("D6: removeAndWait on another thread returns when the handler does", arguments: cores)
  func waitingElsewhere(core: EventCentral.Core) async {
    await offThePool {
      let pump = EventPump(on: EventCentral(core: core))
      let (entered, leave, removed) = (Gate(), Gate(), Gate())
      let log = Log<String>()
      let handle = pump.addEventCallback { (_: Ping) in
        entered.open()
        leave.pass()
        log.append("left")
      }
      runThread {
        entered.pass()
        handle.remove()
        leave.open()
        handle.removeAndWait()
        log.append("removed")
        removed.open()
      }
      pump.queueEvent(Ping())
      pump.queueEvent(Ping())
      pump.run()
      removed.pass()
      #expect(log.entries == ["left", "removed"])
    }
  }

  @Test("D2, D4: four producers race a loop that stops at limits and deadlines", arguments: cores)
  func producers(core: EventCentral.Core) async {
    await offThePool {
      let (threads, events) = (4, 20_000)
      let central = EventCentral(core: core)
      let pump = EventPump(on: central)
      var next = [Int](repeating: 0, count: threads)
      var inOrder = true
      pump.addEventCallback { (ping: Ping) in
        let (thread, number) = ping.number.quotientAndRemainder(dividingBy: events)
        inOrder = inOrder && next[thread] == number
        next[thread] = number + 1
      }
      let over = Gate()
      runThread {
        onThreads(threads) { thread in
          for number in 0..<events { Ping(number: thread * events + number).queue(on: central) }
        }
        over.open()
      }
      var handled = 0
      let isOver = waitUntil {
        handled += pump.run(until: .now + .microseconds(50), limit: 1_000).handled
        return handled == threads * events
      }
      #expect(isOver)
      #expect(inOrder)
      over.pass()
      #expect(pump.run() == Self.report(0))
    }
  }

  #if os(Linux)
    @Test("A central with pumps alone starts no thread")
    func threads() async {
      await #expect(processExitsWith: .success) {
        for core in cores {
          let central = EventCentral(core: core)
          let pump = EventPump(on: central)
          for _ in 0..<3 {
            let handle = pump.addEventCallback { (_: Ping) in }
            let listener = Ping.addListener(nil, executeOn: .pump(pump), on: central) { _ in }
            for _ in 0..<1_000 { Ping().queue(on: central) }
            #expect(pump.fileDescriptor >= 0)
            #expect(pump.run(until: .now + .seconds(60)).handled == 1_000)
            handle.remove()
            listener.remove()
          }
          pump.cancel()
        }
        let names = Set(threadNames())
        #expect(names.isEmpty, "\(names)")
      }
    }
  #endif

  struct Heavy: Eventable {
    var number: Int
    var token: Lifetime.Token
  }
  struct Ping: Eventable {
    var number = 0
  }
  struct Pong: Eventable {
    var number = 0
  }
}
