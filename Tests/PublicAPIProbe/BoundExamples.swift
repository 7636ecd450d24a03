// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of the article on bounded mailboxes and of its types, compiled as a user would.

import EventCore
import EventCoreTestSupport
import Testing

@Suite("The examples of the article on bounded mailboxes")
struct BoundExamples {
  struct Hit: Eventable {
    var damage = 1
  }

  struct Score: Eventable {
    var points = 0
  }

  final class Worker: EventThread, @unchecked Sendable {
    override func registerEventListeners() { addEventCallback { (_: Hit) in } }
  }

  @Test func bounds() {
    let world = EventCentral()

    let pump = EventPump(on: world, mailbox: .bounded(10_000, whenFull: .dropOldest))
    let audit = EventListener(on: world, mailbox: .bounded(1_000, whenFull: .block(upTo: .milliseconds(50))))
    let workers = EventPool(balancer: .shared, mailbox: .bounded(500, whenFull: .refuse), on: world) { _ in Worker() }
    let total = EventWorker(on: world, state: 0, mailbox: .bounded(100, whenFull: .dropNewest)) { on in
      on(Hit.self) { sum, hit in sum += hit.damage }
    }
    defer { total.thread.cancel() }

    pump.addEventCallback { (_: Hit) in }
    var lost = 0
    let outcome = Hit(damage: 3).queueWithOutcome(on: world)
    if outcome.refused > 0 { lost += 1 }
    for outcome in Hit(damage: 4).queueToEach(on: world) where outcome.fate == .refused {
      print("\(outcome.receiver) is full")
    }
    #expect(outcome.accepted == 3 && lost == 0)

    let load = pump.mailboxStatistics
    print("\(load.waiting) wait, \(load.highWaterMark) at most; \(load.refused) refused, \(load.dropped) dropped")
    #expect(load.waiting == 2 && load.highWaterMark == 2)

    pump.cancel()
    pump.run()
    audit.end()
    workers.cancel()
  }

  @Test func sequence() {
    let world = EventCentral()

    let feed = EventListener(on: world, mailbox: .bounded(100, whenFull: .dropOldest))
    let scores = Score.events(on: feed)

    for points in 0..<103 { Score(points: points).queue(on: world) }
    #expect(scores.waitingEventCount == 100 && feed.mailboxStatistics.dropped == 3)
    withExtendedLifetime(feed) { scores.end() }
  }

  @Test func symbols() {
    let pump = EventPump(mailbox: .bounded(10_000, whenFull: .dropOldest))
    func throttle() { Issue.record("nobody is full") }

    let outcome = Score(points: 3).queueWithOutcome()
    if outcome.refused > 0 { throttle() }
    for outcome in Score(points: 3).queueToEach() where outcome.fate == .refused {
      print("\(outcome.receiver) is full")
    }
    #expect(pump.eventCount == 0)
  }
}
