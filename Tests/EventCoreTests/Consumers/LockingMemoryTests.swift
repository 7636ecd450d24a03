// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

/// The memory that a mailbox of the locking core grows by in a burst. The lock-free core keeps slots for each thread that
/// dispatches, which its own suite tests.
@Suite("Memory of the locking core after a burst")
struct LockingMemoryTests {
  struct Number: Eventable { var value = 0 }

  /// More than an idle mailbox keeps of a lane.
  private static let kept = 32_768

  private func holdsMuch(_ inbox: LockingInbox) -> Bool {
    inbox.withLock { inbox.lanes.contains(over: Self.kept) }
  }

  @Test(
    "D5: a pump keeps what its frames need, and frees it a second after the last large one",
    arguments: EventDispatchMethod.allCases)
  func frames(method: EventDispatchMethod) throws {
    let central = EventCentral(core: .locking)
    let pump = EventPump(on: central)
    let inbox = try #require(pump.consumer.mailbox as? LockingMailbox).inbox
    var handled = 0
    pump.addEventCallback { (_: Number) in handled += 1 }
    func frame(_ events: Int) {
      for _ in 0..<events {
        switch method {
        case .queue: Number().queue(on: central)
        case .stack: Number().stack(on: central)
        }
      }
      pump.run()
    }
    // Two, since producers and the consumer swap their memory.
    for _ in 0..<2 { frame(1_000) }
    for _ in 0..<100 {
      frame(1_000)
      #expect(holdsMuch(inbox))
    }
    let before = handled
    #expect(
      waitUntil {
        frame(1)
        return !holdsMuch(inbox)
      })
    #expect(handled > before && handled - before < 100_000_000)
  }

  @Test("a thread that spins frees what its bursts needed", arguments: [
    EventWaitStrategy.spin, .yield,
  ])
  func spins(strategy: EventWaitStrategy) throws {
    let central = EventCentral(core: .locking)
    let thread = EventThread(on: central, waitStrategy: strategy)
    let inbox = try #require(thread.consumer.mailbox as? LockingMailbox).inbox
    let handled = Log<Int>()
    thread.addEventCallback { (number: Number) in handled.append(number.value) }
    for burst in 1...3 {
      let held = HeldThread(thread)
      for value in 0..<1_000 { Number(value: value).queue(on: central) }
      #expect(holdsMuch(inbox))
      held.letGo()
      #expect(handled.entries(atLeast: burst * 1_000).count == burst * 1_000)
    }
    #expect(waitUntil { !holdsMuch(inbox) })
    thread.cancel()
    thread.join()
  }

  #if os(Linux)
    @Test("a worker that its pool has not admitted sleeps, however much waits for the others")
    func heldWorker() throws {
      let central = EventCentral(core: .locking)
      let (made, admit) = (Gate(), Gate())
      let pool = EventPool<EventThread>(capacity: 1, balancer: EventPoolSharedBalancer(), on: central) { index in
        let thread = EventThread(on: central, name: "worker \(index)")
        thread.addEventCallback { (_: Job) in }
        guard index > 0 else { return thread }
        made.open()
        admit.pass()
        return thread
      }
      let held = pool.withThreads { HeldThread($0[0]) }
      for number in 0..<10_000 { Job(number: number).queue(on: central) }
      runThread { pool.capacity = 2 }
      made.pass()
      // It looks at its memory after a second.
      let second = ContinuousClock.now + .milliseconds(1_100)
      #expect(waitUntil { ContinuousClock.now > second })
      let before = try #require(processorTime(ofThread: "worker 1"))
      #expect(waitUntil { ContinuousClock.now > second + .milliseconds(300) })
      let after = try #require(processorTime(ofThread: "worker 1"))
      #expect(after - before < .milliseconds(100))
      admit.open()
      held.letGo()
      #expect(waitUntil { pool.eventCount == 0 })
      pool.cancel()
      pool.join()
    }
  #endif
}
