// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("The shared mailbox")
struct SharedMailboxTests {
  struct Numbered: Eventable { var number: Int }

  /// A central with a shared mailbox as a receiver, and workers that are not started yet.
  struct World {
    let central: EventCentral
    let mailbox: SharedMailbox
    let workers: [TestWorker]

    init(_ core: EventCentral.Core, workers: Int, strategy: EventWaitStrategy = .park) {
      central = EventCentral(core: core)
      let mailbox = SharedMailbox(central.basis, router: central.router)
      self.mailbox = mailbox
      self.workers = (0..<workers).map { _ in
        TestWorker(mailbox, core: core, strategy: strategy)
      }
    }

    /// Has every worker handle `Numbered`, and starts it. If `isHeld`, each of them then stands in
    /// another handler until it is let go.
    func listen(isHeld: Bool = false) -> Log<Int> {
      let log = Log<Int>()
      for worker in workers {
        worker.add { (event: Numbered) in log.append(event.number) }
        worker.start()
        if isHeld { worker.hold() }
      }
      return log
    }

    /// Ends everything and waits for it.
    func close(whenEmpty: Bool = false) {
      mailbox.close(whenEmpty: whenEmpty)
      for worker in workers { worker.consumer.ended.wait() }
    }
  }

  @Test("D4: each event is handled by exactly one worker", arguments: cores, [1, 2, 3, 5])
  func exactlyOnce(core: EventCentral.Core, count: Int) {
    let world = World(core, workers: count)
    let log = world.listen()
    // n-1, n, n+1 and 3n events, and many.
    var posted = 0
    for burst in [count - 1, count, count + 1, 3 * count, 5_000] {
      for _ in 0..<burst {
        #expect(Numbered(number: posted).queue(on: world.central) == 1)
        posted += 1
      }
      #expect(log.entries(atLeast: posted).sorted() == Array(0..<posted))
    }
    let counts = world.mailbox.core.counts()
    #expect(counts.taken == UInt64(posted))
    world.close()
    #expect(world.mailbox.core.counts().dropped == 0)
  }

  @Test("D1: the lanes of the shared and the worker's own mailbox are one order", arguments: cores)
  func orderOverBoth(core: EventCentral.Core) {
    let world = World(core, workers: 1)
    let worker = world.workers[0]
    let log = world.listen(isHeld: true)
    // The worker's own events have even numbers: they come first within a lane.
    for (index, lane) in TestLane.all.reversed().enumerated() {
      let number = 2 * (9 - index)
      Numbered(number: number + 1).dispatch(lane, on: world.central)
      worker.post(Numbered(number: number), lane.method, lane.priority)
    }
    worker.letGo()
    #expect(log.entries(atLeast: 20) == Array(0..<20))
    world.close()
  }

  @Test("D1 to D3: random posts to one worker are handled as the model says", arguments: cores)
  func randomPosts(core: EventCentral.Core) {
    let world = World(core, workers: 1)
    let worker = world.workers[0]
    let log = world.listen(isHeld: true)
    var random = SeededRandom(seed: announcedSeed("SharedMailboxTests.randomPosts, \(core)"))
    var model = LaneModel<Int>()
    for number in 0..<5_000 {
      let lane = Int.random(in: 0..<10, using: &random)
      Numbered(number: number).dispatch(TestLane.all[lane], on: world.central)
      model.post(number, lane: lane)
    }
    #expect(world.mailbox.core.depths().reduce(0, +) == 5_000)
    worker.letGo()
    #expect(log.entries(atLeast: 5_000) == model.takeAll())
    #expect(world.mailbox.core.depths().allSatisfy { $0 == 0 })
    world.close()
  }

  @Test("D1: whichever worker becomes free takes the most urgent", arguments: cores)
  func whoeverIsFree(core: EventCentral.Core) {
    let world = World(core, workers: 3)
    let log = world.listen(isHeld: true)
    for (index, lane) in TestLane.all.reversed().enumerated() {
      Numbered(number: 9 - index).dispatch(lane, on: world.central)
    }
    // One worker alone is let go: it takes them all, in order.
    world.workers[1].letGo()
    #expect(log.entries(atLeast: 10) == Array(0..<10))
    world.workers[0].letGo()
    world.workers[2].letGo()
    world.close()
  }

  // worker A            worker B            test
  // in its handler      -                   queue 1
  //                     handles 1
  // ...                                     B has handled 1 while A stands still
  @Test("a worker that stands still holds up no other", arguments: cores)
  func oneStandsStill(core: EventCentral.Core) {
    let world = World(core, workers: 2)
    let log = world.listen()
    world.workers[0].hold()
    for number in 0..<1_000 { Numbered(number: number).queue(on: world.central) }
    #expect(log.entries(atLeast: 1_000) == Array(0..<1_000))
    world.workers[0].letGo()
    world.close()
  }

  @Test("D4: a worker that comes later handles what waited before it was there", arguments: cores)
  func laterWorker(core: EventCentral.Core) {
    let world = World(core, workers: 1)
    let log = Log<Int>()
    // The handler is registered, but its worker is not started: events are posted, nobody takes them.
    world.workers[0].add { (event: Numbered) in log.append(event.number) }
    for number in 0..<100 { Numbered(number: number).queue(on: world.central) }
    let late = TestWorker(world.mailbox, core: core)
    late.add { (event: Numbered) in log.append(1_000 + event.number) }
    late.start()
    #expect(log.entries(atLeast: 100) == Array(1_000..<1_100))
    world.workers[0].start()
    world.close()
    late.consumer.ended.wait()
  }

  @Test("D4: handlers may come and go while events pass", arguments: cores)
  func handlersComeAndGo(core: EventCentral.Core) {
    let world = World(core, workers: 1)
    let worker = world.workers[0]
    let log = Log<String>()
    let first = worker.add { (event: Numbered) in log.append("a\(event.number)") }
    worker.start()
    Numbered(number: 1).queue(on: world.central)
    #expect(log.entries(atLeast: 1) == ["a1"])
    let second = worker.add { (event: Numbered) in log.append("b\(event.number)") }
    Numbered(number: 2).queue(on: world.central)
    #expect(log.entries(atLeast: 3) == ["a1", "a2", "b2"])
    #expect(first.removeAndWait())
    Numbered(number: 3).queue(on: world.central)
    #expect(log.entries(atLeast: 4) == ["a1", "a2", "b2", "b3"])
    #expect(second.remove())
    // No worker has a handler any more, so the mailbox is no receiver.
    #expect(Numbered(number: 4).queue(on: world.central) == 0)
    world.close()
  }

  @Test("D6: what waits is skipped and counted once its handler was removed", arguments: cores)
  func removedWhileWaiting(core: EventCentral.Core) {
    let world = World(core, workers: 1)
    let worker = world.workers[0]
    let log = Log<Int>()
    let handle = worker.add { (event: Numbered) in log.append(event.number) }
    worker.start()
    worker.hold()
    for number in 0..<10 { Numbered(number: number).queue(on: world.central) }
    handle.remove()
    worker.letGo()
    #expect(waitUntil { worker.consumer.statistics.skipped == 10 })
    #expect(log.entries.isEmpty)
    world.close()
  }

  @Test(
    "D4: a worker that takes an event for which it has no handler skips and counts it",
    arguments: cores)
  func onlyOneHandles(core: EventCentral.Core) {
    let world = World(core, workers: 2)
    let log = Log<Int>()
    world.workers[0].add { (event: Numbered) in log.append(event.number) }
    world.workers[0].start()
    world.workers[0].hold()
    world.workers[1].start()
    for number in 0..<10 { Numbered(number: number).queue(on: world.central) }
    #expect(waitUntil { world.workers[1].consumer.statistics.skipped == 10 })
    world.workers[0].letGo()
    world.close()
    #expect(log.entries.isEmpty)
  }

  @Test("D8: the clock is read while any worker has a handler that wants it", arguments: cores)
  func clock(core: EventCentral.Core) {
    let world = World(core, workers: 2)
    let times = Log<UInt64>()
    for worker in world.workers {
      let handler = TypedHandler<Numbered>(HandlerState(isTimed: false)) { _, _, time, _ in
        times.append(time)
        return true
      }
      _ = worker.consumer.registry.add(handler, eventTypeActions(Numbered.self))
      worker.start()
    }
    Numbered(number: 0).queue(on: world.central)
    #expect(times.entries(atLeast: 1)[0] == 0)
    let timed = world.workers[1].add(isTimed: true) { (_: Numbered) in }
    let before = monotonicNanoseconds()
    Numbered(number: 1).queue(on: world.central)
    #expect(times.entries(atLeast: 2)[1] >= before)
    timed.remove()
    Numbered(number: 2).queue(on: world.central)
    #expect(times.entries(atLeast: 3)[2] == 0)
    world.close()
  }

  struct Heavy: Eventable {
    let token: Lifetime.Token
    let text: String
    var padding: (UInt64, UInt64, UInt64, UInt64) = (1, 2, 3, 4)
  }
  struct Light: Eventable { let token: Lifetime.Token }

  @Test(
    "D4, D10: payloads end once, whether handled or dropped", arguments: cores, [false, true])
  func payloadsEnd(core: EventCentral.Core, whenEmpty: Bool) {
    let lifetime = Lifetime()
    let handled = Log<Int>()
    do {
      let world = World(core, workers: 2)
      for worker in world.workers {
        worker.add { (event: Heavy) in handled.append(event.text.utf8.count) }
        worker.add { (_: Light) in handled.append(0) }
        worker.start()
        worker.hold()
      }
      // Another receiver of the same events, so that boxes are shared.
      let thread = EventThread(on: world.central)
      thread.addEventCallback { (_: Heavy) in }
      for _ in 0..<100 {
        #expect(
          Heavy(token: lifetime.token(), text: "a text that does not fit into a register")
            .queue(on: world.central) == 2)
        #expect(Light(token: lifetime.token()).stack(on: world.central) == 1)
      }
      world.mailbox.close(whenEmpty: whenEmpty)
      #expect(Light(token: lifetime.token()).stack(on: world.central) == 0)
      for worker in world.workers { worker.letGo() }
      for worker in world.workers { worker.consumer.ended.wait() }
      let (taken, dropped) = world.mailbox.core.counts()
      #expect(taken == (whenEmpty ? 200 : 0))
      #expect(dropped == (whenEmpty ? 0 : 200))
      thread.drain()
    }
    #expect(handled.entries.count == (whenEmpty ? 200 : 0))
    #expect(lifetime.waitUntilNone())
  }

  @Test(
    "D10: a worker that ends leaves what is shared to the others", arguments: cores, [false, true])
  func retire(core: EventCentral.Core, whenEmpty: Bool) {
    let world = World(core, workers: 2)
    let log = world.listen(isHeld: true)
    for number in 0..<100 { Numbered(number: number).queue(on: world.central) }
    for number in 0..<10 {
      #expect(world.workers[0].post(Numbered(number: 1_000 + number), .queue, .normal))
    }
    world.workers[0].consumer.close(whenEmpty: whenEmpty)
    #expect(!world.workers[0].post(Numbered(number: 0), .queue, .normal))
    world.workers[0].letGo()
    world.workers[0].consumer.ended.wait()
    #expect(log.take() == (whenEmpty ? Array(1_000..<1_010) : []))
    #expect(world.workers[0].consumer.mailbox.counts().dropped == (whenEmpty ? 0 : 10))
    world.workers[1].letGo()
    #expect(log.entries(atLeast: 100) == Array(0..<100))
    world.close()
  }

  @Test("D7: a handler may dispatch to its own mailbox and end its own worker", arguments: cores)
  func reentry(core: EventCentral.Core) {
    let world = World(core, workers: 2)
    let log = Log<Int>()
    for worker in world.workers {
      let consumer = worker.consumer
      worker.add { [unowned consumer, central = world.central] (event: Numbered) in
        log.append(event.number)
        if event.number < 100 {
          Numbered(number: event.number + 1).queue(on: central)
        } else if event.number == 100 {
          consumer.close(whenEmpty: false)
          Numbered(number: 101).queue(on: central)
        }
      }
      worker.start()
    }
    Numbered(number: 0).queue(on: world.central)
    // Event 101 is handled by the worker that did not end.
    #expect(log.entries(atLeast: 102) == Array(0...101))
    world.close()
  }

  @Test(
    "D4: workers handle every event with each wait strategy", arguments: cores,
    [EventWaitStrategy.park, .spinThenPark(.microseconds(20)), .yield, .spin])
  func strategies(core: EventCentral.Core, strategy: EventWaitStrategy) {
    let world = World(core, workers: 2, strategy: strategy)
    let log = world.listen()
    for number in 0..<300 {
      Numbered(number: number).queue(on: world.central)
      // Waits at every third event, so that the workers run dry.
      if number % 3 == 0 { _ = log.entries(atLeast: number + 1) }
    }
    #expect(log.entries(atLeast: 300).sorted() == Array(0..<300))
    world.close()
  }

  @Test("D4: many producers, workers that come and go: each event once", arguments: cores)
  func underFire(core: EventCentral.Core) {
    let world = World(core, workers: 1)
    let each = 2_000 * stressFactor
    let seen = Guarded([UInt8](repeating: 0, count: 4 * each))
    let handled = Log<Void>()
    @Sendable func register(_ worker: TestWorker) {
      worker.add { (event: Numbered) in
        seen.withLock { $0[event.number] += 1 }
        handled.append(())
      }
      worker.start()
    }
    register(world.workers[0])
    onThreads(5) { index in
      if index < 4 {
        for number in 0..<each {
          let lane = TestLane.all[number % 10]
          Numbered(number: index * each + number).dispatch(lane, on: world.central)
        }
      } else {
        for _ in 0..<20 {
          let worker = TestWorker(world.mailbox, core: core)
          register(worker)
          worker.consumer.close(whenEmpty: true)
          worker.consumer.ended.wait()
        }
      }
    }
    world.close(whenEmpty: true)
    #expect(handled.entries.count == 4 * each)
    #expect(seen.withLock { $0.allSatisfy { $0 == 1 } })
  }
}
