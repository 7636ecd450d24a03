// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

private let kinds: [(EventCentral.Core, Balance)] = cores.flatMap { core in
  [Balance.roundRobin, .shared].map { (core, $0) }
}

@Suite("D10: the end of a pool, on whose threads listeners are registered that run elsewhere")
struct PoolListenerTests {
  struct Hit: Eventable { var number = 0 }

  /// A pool of two threads. On the last one is a listener that runs on a queue, stands in the event 0, and has 9 others
  /// wait.
  struct Crew: Sendable {
    let central: EventCentral
    let pool: EventPool<EventThread>
    let numbers = Log<Int>()
    let gate = Gate()

    init(_ kind: (EventCentral.Core, Balance)) async {
      central = EventCentral(core: kind.0)
      pool = EventPool(capacity: 2, balancer: kind.1.make(), on: central)
      let (numbers, gate, began) = (numbers, gate, Gate())
      let thread = pool.withThreads { $0[1] }
      Hit.addListener(
        nil, { numbers.append($0.number, heldUpInFirst: gate, began) },
        executeOn: .dispatchQueue(DispatchQueue(label: "elsewhere")), on: thread)
      (0..<10).map(Hit.init).queue(on: central)
      await offThePool { began.pass() }
    }

    var handled: [Int] { numbers.entries.filter { $0 >= 0 } }
  }

  @Test("a drain handles what waits for them, and they take nothing more", arguments: kinds)
  func drain(_ kind: (EventCentral.Core, Balance)) async {
    let crew = await Crew(kind)
    let (pool, central) = (crew.pool, crew.central)
    async let isDrained = pool.drain()
    #expect(await yieldUntil { pool.statistics.threads.isEmpty })
    // The end of the listeners comes a moment after that of the threads.
    #expect(await yieldUntil { Hit(number: -1).queue(on: central) == 0 })
    crew.gate.open()
    #expect(await isDrained)
    #expect(crew.handled == Array(0..<10))
  }

  @Test("a drain that gives up, or that blocks its thread, frees it and says so", arguments: kinds)
  func lost(_ kind: (EventCentral.Core, Balance)) async {
    for number in 0..<3 {
      let crew = await Crew(kind)
      let (pool, isDrained) = (crew.pool, Log<Bool>())
      switch number {
      case 0: await offThePool { isDrained.append(pool.drain()) }
      case 1:
        isDrained.append(await pool.drain(until: .now()))
      default:
        pool.cancel()
        crew.gate.open()
        isDrained.append(await pool.drain())
      }
      #expect(isDrained.entries == [false], "\(number)")
      #expect(Hit(number: -1).queue(on: crew.central) == 0)
      crew.gate.open()
      #expect(await yieldUntil { !crew.numbers.entries.isEmpty })
      #expect(crew.handled == [0])
    }
  }

  @Test("a thread that is retired leaves nothing that waits for them, and they take nothing more", arguments: kinds)
  func retired(_ kind: (EventCentral.Core, Balance)) async {
    let crew = await Crew(kind)
    let pool = crew.pool
    pool.capacity = 1
    #expect(await yieldUntil { pool.statistics.threads.count == 1 })
    #expect(Hit(number: 99).queue(on: crew.central) == 0)
    async let isDrained = pool.drain()
    #expect(await yieldUntil { pool.statistics.threads.isEmpty })
    crew.gate.open()
    #expect(await isDrained)
    #expect(crew.handled == Array(0..<10))
  }

  @Test("a retired thread is freed once its listeners have handled what waits, or with the pool (D9)", arguments: kinds)
  func freed(_ kind: (EventCentral.Core, Balance)) async {
    for endsPool in [false, true] {
      let (lifetime, gate, began, numbers) = (Lifetime(), Gate(), Gate(), Log<Int>())
      let central = EventCentral(core: kind.0)
      let log = Log<Handled>()
      var pool: EventPool? = EventPool(capacity: 2, balancer: kind.1.make(), on: central) { index in
        let thread = JobThread(index, log, token: lifetime.token())
        if index == 1 {
          Hit.addListener(
            nil,
            { hit in
              began.open()
              gate.pass()
              numbers.append(hit.number)
            }, executeOn: .dispatchQueue(DispatchQueue(label: "elsewhere")), on: thread)
        }
        return thread
      }
      (0..<2).map(Hit.init).queue(on: central)
      await offThePool { began.pass() }
      pool?.capacity = 1
      if endsPool {
        pool = nil
      } else {
        gate.open()
      }
      gate.open()
      #expect(await yieldUntil { numbers.entries.count == (endsPool ? 1 : 2) })
      // It looks when it changes the number of its threads.
      pool?.capacity = 2
      pool?.capacity = 1
      #expect(
        await yieldUntil {
          pool?.capacity = 1
          return lifetime.alive == (endsPool ? 0 : 1)
        })
      pool?.cancel()
    }
  }

  @Test("a thread that somebody has cancelled with its share has the drain say so", arguments: kinds)
  func cancelledThread(_ kind: (EventCentral.Core, Balance)) async {
    let crew = await Crew(kind)
    crew.pool.withThreads { $0[1] }.cancel()
    crew.gate.open()
    #expect(await crew.pool.drain() == false)
    #expect(crew.handled == [0])
  }

  @Test("a deterministic pool is drained with them", arguments: kinds)
  func deterministic(_ kind: (EventCentral.Core, Balance)) async {
    let central = EventCentral(deterministic: 1, core: kind.0)
    let pool = EventPool<EventThread>(capacity: 2, balancer: kind.1.make(), on: central)
    let numbers = Log<Int>()
    for thread in pool.withThreads({ $0 }) {
      Hit.addListener(nil, { numbers.append($0.number) }, executeOn: .taskThread, on: thread)
    }
    (0..<5).map(Hit.init).queue(on: central)
    pool.capacity = 1
    #expect(await pool.drain())
    #expect(numbers.entries.sorted() == (0..<5).flatMap { [$0, $0] })
  }
}
