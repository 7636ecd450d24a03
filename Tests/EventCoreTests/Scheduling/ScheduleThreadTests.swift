// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("Scheduling on the real clock, by the scheduler's thread")
struct ScheduleThreadTests {
  struct Due: Eventable {
    var deadline: DispatchTime
    var number = 0
  }

  @Test("no event is early, and the order is that of the deadlines", arguments: cores)
  func neverEarly(core: EventCentral.Core) {
    var random = SeededRandom(seed: announcedSeed("never early, \(core)"))
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<(DispatchTime, DispatchTime)>()
    thread.addEventCallback { (event: Due, _: EventPriority, time: DispatchTime) in
      log.append((event.deadline, time))
    }
    let start = DispatchTime.now() + .milliseconds(5)
    for _ in 0..<200 {
      let deadline = start + .microseconds(Int.random(in: 0..<5_000, using: &random))
      Due(deadline: deadline).scheduleQueue(at: deadline, on: central)
    }
    let areInTime = DispatchTime.now() < start
    let entries = log.entries(atLeast: 200)
    #expect(entries.count == 200)
    #expect(entries.allSatisfy { $0.0 <= $0.1 })
    // If this thread was held up, some deadlines had passed, and their events were dispatched at once.
    if areInTime {
      #expect(zip(entries, entries.dropFirst()).allSatisfy { $0.0 <= $1.0 })
    }
    thread.cancel()
  }

  @Test("an earlier schedule wakes the thread from a longer sleep", arguments: cores)
  func wakes(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<Int>()
    thread.addEventCallback { (event: Due) in log.append(event.number) }
    let far = Due(deadline: .distantFuture, number: 0).scheduleQueue(
      after: .seconds(3600), on: central)
    for number in 1...20 {
      Due(deadline: .now(), number: number).scheduleQueue(after: .microseconds(200), on: central)
      #expect(log.entries(atLeast: number).count == number)
    }
    #expect(far.cancel())
    #expect(log.entries == Array(1...20))
    thread.cancel()
  }

  @Test("a repetition goes on until a handler ends it", arguments: cores)
  func repeats(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let (log, handles, isCancelled) = (Log<Int>(), Log<EventScheduleHandle>(), Gate())
    thread.addEventCallback { (event: Due) in
      log.append(event.number)
      if log.entries.count == 10 {
        #expect(handles.entries(atLeast: 1)[0].cancel())
        isCancelled.open()
      }
    }
    handles.append(
      Due(deadline: .now()).scheduleQueue(
        every: .microseconds(100), policy: .catchUp, on: central))
    // Not the state: it is `.cancelled` while the last dispatch is under way, for which `cancel()` waits.
    isCancelled.pass()
    let count = handles.entries[0].dispatches
    #expect(thread.drain())
    #expect(log.entries.count == count)
    #expect(central.scheduleStatistics.pending == 0)
  }

  @Test("threads that use a central for the first time at once get one scheduler", arguments: cores)
  func firstUseAtOnce(core: EventCentral.Core) {
    for _ in 0..<20 {
      let central = EventCentral(core: core)
      let thread = EventThread(on: central)
      let log = Log<Int>()
      thread.addEventCallback { (event: Due) in log.append(event.number) }
      onThreads(4) { index in
        Due(deadline: .now(), number: index).scheduleQueue(after: .microseconds(100), on: central)
      }
      #expect(log.entries(atLeast: 4).sorted() == [0, 1, 2, 3])
      thread.cancel()
    }
  }

  @Test("D10: an event thread that ends leaves the schedules of others alone", arguments: cores)
  func receiverEnds(core: EventCentral.Core) {
    let clock = ManualClock()
    let central = EventCentral(core: core, clock: clock)
    let (first, second) = (EventThread(on: central), EventThread(on: central))
    let log = Log<String>()
    first.addEventCallback { (_: Due) in log.append("first") }
    second.addEventCallback { (_: Due) in log.append("second") }
    let handle = Due(deadline: .now()).scheduleQueue(every: .nanoseconds(1), on: central)
    clock.advance(by: .nanoseconds(1))
    #expect(first.drain())
    clock.advance(by: .nanoseconds(1))
    #expect(second.drain())
    clock.advance(by: .nanoseconds(1))
    #expect(handle.dispatches == 3)
    #expect(log.entries.filter { $0 == "first" }.count == 1)
    #expect(log.entries.filter { $0 == "second" }.count == 2)
  }
}
