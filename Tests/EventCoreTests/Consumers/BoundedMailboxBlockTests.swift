// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Synchronization
import Testing

@testable import EventCore

@Suite("Bounded mailboxes: dispatches that wait for a place")
struct BoundedMailboxBlockTests {
  struct Numbered: Eventable { var number: Int }

  private final class Seen {
    var numbers: [Int] = []
  }

  @Test("D5: a blocked dispatch goes on as soon as the loop makes room, and none is lost", arguments: cores)
  func blocking(core: EventCentral.Core) {
    let (central, seen, count) = (EventCentral(core: core), Seen(), 200 * 3)
    let pump = EventPump(on: central, mailbox: .bounded(2, whenFull: .block(upTo: .seconds(1_000))))
    pump.addEventCallback { (event: Numbered) in seen.numbers.append(event.number) }
    let accepted = Atomic<Int>(0)
    for producer in 0..<3 {
      runThread {
        for number in 0..<200 {
          accepted.wrappingAdd(
            Numbered(number: producer * 1_000 + number).queue(on: central), ordering: .relaxed)
        }
      }
    }
    #expect(
      waitUntil {
        pump.run(limit: 1)
        return seen.numbers.count == count
      })
    #expect(waitUntil { accepted.load(ordering: .relaxed) == count })
    for producer in 0..<3 {
      #expect(seen.numbers.filter { $0 / 1_000 == producer } == (0..<200).map { producer * 1_000 + $0 })
    }
    #expect(pump.mailboxStatistics.highWaterMark <= 2 && pump.mailboxStatistics.refused == 0)
  }

  @Test("D10: the time limit and the end of the receiver end a blocked dispatch", arguments: cores)
  func blockedUntil(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central, mailbox: .bounded(1, whenFull: .block(upTo: .milliseconds(2))))
    pump.addEventCallback { (_: Numbered) in }
    #expect(Numbered(number: 0).queue(on: central) == 1)
    let start = ContinuousClock.now
    #expect(Numbered(number: 1).queueWithOutcome(on: central).refused == 1)
    #expect(ContinuousClock.now - start >= .milliseconds(2))
    pump.cancel()
    pump.run()

    let endless = EventPump(on: central, mailbox: .bounded(1, whenFull: .block(upTo: .seconds(1_000_000))))
    endless.addEventCallback { (_: Numbered) in }
    #expect(Numbered(number: 0).queue(on: central) == 1)
    let refused = Gate()
    runThread {
      #expect(Numbered(number: 1).queue(on: central) == 0)
      refused.open()
    }
    endless.cancel()
    endless.run()
    refused.pass()
  }

  /// A place becomes free for each event within the limit, but not for 64 of them.
  @Test("D5: the time limit is one for all events of a batch", arguments: cores)
  func batchesHaveOneLimit(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let pump = EventPump(on: central, mailbox: .bounded(1, whenFull: .block(upTo: .milliseconds(20))))
    pump.addEventCallback { (_: Numbered) in }
    let accepted = Atomic<Int>(-1)
    runThread { accepted.store((0..<64).map { Numbered(number: $0) }.queue(on: central), ordering: .releasing) }
    var next = ContinuousClock.now
    #expect(
      waitUntil {
        if ContinuousClock.now >= next {
          pump.run(limit: 1)
          next = .now + .milliseconds(15)
        }
        return accepted.load(ordering: .acquiring) >= 0
      })
    // Two of them, and some more if the system takes the threads away.
    let count = accepted.load(ordering: .relaxed)
    #expect(count >= 1 && count < 16)
    #expect(pump.mailboxStatistics.refused == UInt64(64 - count))
  }

  @Test("D4: what the end of the receiver cuts off an array is refused, and counted", arguments: cores, [false, true])
  func batchesThatAreCutOff(core: EventCentral.Core, isDrained: Bool) {
    let thread = EventThread(
      on: EventCentral(core: core), mailbox: .bounded(4, whenFull: .block(upTo: .seconds(1_000_000))))
    thread.addEventCallback { (_: Numbered) in }
    let held = HeldThread(thread)
    let (accepted, posted) = (Log<Int>(), Gate())
    runThread { [central = thread.central] in
      accepted.append((0..<10).map { Numbered(number: $0) }.queue(on: central))
      posted.open()
    }
    #expect(waitUntil { thread.mailboxStatistics.waiting == 4 })
    if isDrained { #expect(!thread.drain(until: .now())) } else { thread.cancel() }
    posted.pass()
    held.letGo()
    thread.join()
    #expect(accepted.entries == [4])
    // One more, which holds the thread.
    #expect(thread.mailboxStatistics.accepted == 5)
    #expect(thread.mailboxStatistics.refused == 6)
  }
}
