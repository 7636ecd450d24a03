// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("The shared mailbox")
struct SharedMailboxTests {
  struct Numbered: Eventable { var number: Int }

  /// A central with a shared mailbox as a receiver, and so many workers that are not started yet.
  struct World {
    let central: EventCentral
    let mailbox: SharedMailbox
    let workers: [TestWorker]

    init(_ core: EventCentral.Core, workers: Int, strategy: EventWaitStrategy = .park) {
      central = EventCentral(core: core)
      let mailbox = SharedMailbox(core: core, router: central.router)
      self.mailbox = mailbox
      self.workers = (0..<workers).map { _ in
        TestWorker(mailbox, core: core, strategy: strategy)
      }
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
    let log = Log<Int>()
    for worker in world.workers {
      worker.add { (event: Numbered) in log.append(event.number) }
      worker.start()
    }
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
    let log = Log<Int>()
    worker.add { (event: Numbered) in log.append(event.number) }
    worker.start()
    worker.hold()
    // Own events have odd numbers; of one lane they come first.
    for (index, lane) in TestLane.all.reversed().enumerated() {
      let number = 2 * (9 - index)
      Numbered(number: number + 1).dispatch(lane, on: world.central)
      worker.post(Numbered(number: number), lane.method, lane.priority)
    }
    worker.letGo()
    #expect(log.entries(atLeast: 20) == Array(0..<20))
    world.close()
  }
}
