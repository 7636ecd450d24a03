// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("The locking core: the token of a latest-only handler")
struct LockingTokenTests {
  struct Numbered: Eventable { var number: Int }
  struct Newest: Eventable { var number: Int }

  @Test("D4: workers come to rest after a late post to a removed callback of their shared mailbox")
  func lateSharedPost() throws {
    let central = EventCentral(core: .locking)
    let pool = EventPool(capacity: 2, balancer: .shared, on: central) { _ in EventThread() }
    let inbox = try #require(pool.core.shared?.core as? LockingSharedMailbox).inbox
    let length = LockingRecord.length(payload: 0)
    let record = LockingRecord(address: .allocate(byteCount: length, alignment: 64))
    defer { record.address.deallocate() }
    // It has no subscription, as one that was removed.
    let removed = LockingLatest(inbox)
    let subscription = LockingSubscription(nil, drop: nil, removed)
    record.initialize(.passUnretained(subscription), lane: Lane(.queue, .normal).index, length: length)
    var post = LockingPost(drop: nil)
    #expect(removed.place(record, &post) == .superseded)
    // A worker that is at rest has seen that nothing waits.
    #expect(waitUntil { !inbox.urgent.pointee.load(ordering: .relaxed) })
    #expect(inbox.withLock { inbox.superseded } == 1)
    #expect(pool.drain())
  }

  // dispatching thread                       consumer
  // ------------------                       --------
  //                                          handles 0; next in its queue is the token of 1
  // first half of the dispatch of 2:
  //   holds the mutex
  //                                          comes to the token, needs the mutex
  // second half: 2 is posted
  // dispatches 3, in the place of 1
  //                                          may not handle 3 before 2
  @Test("D1: a newer event does not overtake a more urgent one that was dispatched before it")
  func newerEvent() {
    for _ in 0..<100 {
      let central = EventCentral(core: .locking)
      let thread = EventThread(on: central)
      let log = Log<Int>()
      let (reached, goOn) = (Gate(), Gate())
      thread.addEventCallback { (event: Numbered) in
        log.append(event.number)
        guard event.number == 0 else { return }
        reached.open()
        goOn.pass()
      }
      thread.addEventCallback(
        { (event: Newest) in log.append(event.number) }, interestedIn: .latestOnly)
      let held = HeldThread(thread)
      Numbered(number: 0).queue(on: central)
      Newest(number: 1).queue(on: central)
      held.letGo()
      reached.pass()
      let payload = central.router.beginOne(
        key: eventKey(Numbered.self), lane: Lane(.stack, .highest).index,
        size: MemoryLayout<Numbered>.size, alignment: MemoryLayout<Numbered>.alignment)
      payload?.initializeMemory(as: Numbered.self, to: Numbered(number: 2))
      goOn.open()
      // Time for the consumer to come to the mutex. If it needs longer, this round shows nothing.
      let start = monotonicNanoseconds()
      while monotonicNanoseconds() - start < 200_000 {}
      #expect(payload.map { central.router.commitOne($0) } == 1)
      Newest(number: 3).queue(on: central)
      #expect(thread.drain())
      let entries = log.entries
      #expect(entries.first == 0 && entries.last == 3)
      #expect(entries.firstIndex(of: 2) ?? .max < entries.firstIndex(of: 3) ?? 0, "\(entries)")
    }
  }
}
