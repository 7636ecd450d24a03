// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

@Suite("D1, D4 to D8, D10, D11: handlers of event threads")
struct HandlerTests {
  struct Ping: Eventable { var number = 0 }
  struct Pong: Eventable { var number = 0 }

  @Test(
    "D4: several callbacks for one type are called in the order of their registration",
    arguments: cores)
  func callbacksInOrder(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<String>()
    for name in ["a", "b", "c"] {
      thread.addEventCallback { (event: Ping) in log.append("\(name)\(event.number)") }
    }
    Ping(number: 1).queue(on: central)
    Ping(number: 2).queue(on: central)
    #expect(log.entries(atLeast: 6) == ["a1", "b1", "c1", "a2", "b2", "c2"])
    thread.cancel()
  }

  @Test("D4: a callback gets exactly what is dispatched while it is registered", arguments: cores)
  func exactlyWhatIsDispatchedWhileRegistered(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<String>()
    thread.addEventCallback { (event: Ping) in log.append("first \(event.number)") }
    let held = HeldThread(thread)
    Ping(number: 1).queue(on: central)
    let second = thread.addEventCallback { (event: Ping) in log.append("second \(event.number)") }
    Ping(number: 2).queue(on: central)
    second.remove()
    Ping(number: 3).queue(on: central)
    held.letGo()
    // Ping 2 was dispatched to the second callback, which was removed before it was called (D6).
    #expect(log.entries(atLeast: 3) == ["first 1", "first 2", "first 3"])
    thread.cancel()
  }

  @Test(
    "D4: the number of receivers is what dispatch returns: none, n-1, n, n+1 and 3n threads",
    arguments: cores)
  func everyThreadGetsItOnce(core: EventCentral.Core) {
    for count in [0, 1, 2, 3, 6] {
      let central = EventCentral(core: core)
      let log = Log<Int>()
      let threads = (0..<count).map { index in
        let thread = EventThread(on: central)
        thread.addEventCallback { (_: Ping) in log.append(index) }
        return thread
      }
      #expect(Ping().queue(on: central) == count)
      for thread in threads { #expect(thread.drain()) }
      #expect(log.entries.sorted() == Array(0..<count))
      #expect(Ping().queue(on: central) == 0)
    }
  }

  @Test("D4: an event whose callbacks have all been removed is counted as skipped", arguments: cores)
  func skipsAreCounted(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let handle = thread.addEventCallback { (_: Ping) in }
    let held = HeldThread(thread)
    Ping().queue(on: central)
    handle.remove()
    held.letGo()
    #expect(thread.drain())
    #expect(thread.statistics == .init(delivered: 1, skipped: 1, cancelled: 0))
  }

  @Test("D6: removing twice does nothing, and says so", arguments: cores)
  func removingTwice(core: EventCentral.Core) {
    let thread = EventThread(on: EventCentral(core: core))
    let handle = thread.addEventCallback { (_: Ping) in }
    #expect(handle.isActive)
    #expect(handle.remove())
    #expect(!handle.isActive)
    #expect(!handle.remove())
    #expect(!handle.removeAndWait())
    let other = thread.addEventCallback { (_: Ping) in }
    #expect(other.removeAndWait())
    thread.cancel()
    thread.join()
    #expect(!thread.addEventCallback { (_: Ping) in }.isActive)
  }

  @Test("D6: removeAndWait returns when the call that runs has ended", arguments: cores)
  func removeAndWaitWaits(core: EventCentral.Core) {
    //  event thread        test                    remover
    //  enters the call
    //                      sees that it runs
    //                                              removeAndWait() begins
    //                      sees that it waits
    //                      lets the call go on
    //  leaves the call
    //                                              returns
    let thread = EventThread(on: EventCentral(core: core))
    let (entered, leave, begun, returned) = (Gate(), Gate(), Gate(), Gate())
    let log = Log<String>()
    let handle = thread.addEventCallback { (_: Ping) in
      entered.open()
      leave.pass()
      log.append("left")
    }
    thread.queueEvent(Ping())
    entered.pass()
    runThread {
      begun.open()
      handle.removeAndWait()
      log.append("returned")
      returned.open()
    }
    begun.pass()
    #expect(waitUntil { !handle.isActive })
    #expect(log.entries.isEmpty)
    leave.open()
    returned.pass()
    #expect(log.entries == ["left", "returned"])
    thread.cancel()
  }

  @Test(
    "D6: removeAndWait of an idle callback does not wait for another that runs", arguments: cores)
  func removeAndWaitDoesNotWaitForOthers(core: EventCentral.Core) {
    let thread = EventThread(on: EventCentral(core: core))
    let handle = thread.addEventCallback { (_: Pong) in }
    let held = HeldThread(thread)
    #expect(handle.removeAndWait())
    held.letGo()
    thread.cancel()
  }

  @Test("D6: what a removed callback held is freed without another event", arguments: cores)
  func removedCallbackIsFreed(core: EventCentral.Core) {
    let thread = EventThread(on: EventCentral(core: core))
    let lifetime = Lifetime()
    var token: Lifetime.Token? = lifetime.token()
    let handle = thread.addEventCallback { [token] (_: Ping) in _ = token }
    token = nil
    #expect(lifetime.alive == 1)
    handle.remove()
    #expect(lifetime.waitUntilNone())
    thread.cancel()
  }

  @Test(
    "D7: a handler dispatches, subscribes, unsubscribes, and ends its own thread", arguments: cores)
  func reentry(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<String>()
    let handles = Log<any EventListenerHandling>()
    let first = thread.addEventCallback { [unowned thread] (event: Ping) in
      log.append("ping \(event.number)")
      // This Pong is a new event, not a nested call: it comes after this handler, to the new callback.
      thread.addEventCallback { [unowned thread] (event: Pong) in
        log.append("pong \(event.number)")
        thread.cancel()
        log.append("after cancel")
      }
      Pong(number: event.number).queue(on: central)
      handles.entries.first?.remove()
      Ping(number: 99).queue(on: central)
      log.append("still ping")
    }
    handles.append(first)
    Ping(number: 7).queue(on: central)
    thread.join()
    #expect(log.entries == ["ping 7", "still ping", "pong 7", "after cancel"])
  }

  @Test("D11: delivery is by the exact type", arguments: cores)
  func exactType(core: EventCentral.Core) {
    enum Same: Eventable { case ping(Int) }
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<String>()
    thread.addEventCallback { (_: Ping) in log.append("ping") }
    thread.addEventCallback { (_: Same) in log.append("same") }
    Pong().queue(on: central)
    Same.ping(1).queue(on: central)
    Ping().queue(on: central)
    #expect(thread.drain())
    #expect(log.entries == ["same", "ping"])
  }

  @Test(
    "D8: dispatchTime is when the user dispatched, and the priority is the one given",
    arguments: cores)
  func dispatchTime(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<(EventPriority, UInt64)>()
    thread.addEventCallback { (_: Ping, priority: EventPriority, time: DispatchTime) in
      log.append((priority, time.uptimeNanoseconds))
    }
    let held = HeldThread(thread)
    var bounds: [(UInt64, UInt64)] = []
    for priority in EventPriority.inOrder {
      let before = DispatchTime.now().uptimeNanoseconds
      Ping().queue(priority: priority, on: central)
      bounds.append((before, DispatchTime.now().uptimeNanoseconds))
    }
    held.letGo()
    let entries = log.entries(atLeast: 5)
    #expect(entries.map(\.0) == EventPriority.inOrder)
    for (entry, bound) in zip(entries, bounds) {
      #expect(entry.1 >= bound.0 && entry.1 <= bound.1)
    }
    thread.cancel()
  }

  @Test(
    "D5: dispatch returns while the receiver is stuck, and runs none of its code", arguments: cores)
  func dispatchWaitsForNobody(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<Int>()
    thread.addEventCallback { (event: Ping) in log.append(event.number) }
    let held = HeldThread(thread)
    for number in 0..<10_000 { Ping(number: number).queue(on: central) }
    #expect(log.entries.isEmpty)
    #expect(thread.eventCount == 10_000)
    #expect(thread.eventCount(priority: .normal, method: .queue) == 10_000)
    #expect(thread.eventCount(priority: .normal, method: .stack) == 0)
    #expect([Ping(), Ping()].stack(priority: .low, on: central) == 2)
    #expect(thread.eventCount(priority: .low, method: .stack) == 2)
    #expect(thread.eventCount == 10_002)
    held.letGo()
    #expect(log.entries(atLeast: 10_002).count == 10_002)
    #expect(waitUntil { thread.eventCount == 0 })
    thread.cancel()
  }

  @Test("D6: removeAndWait returns at once for a thread that has not started yet", arguments: cores)
  func removeAndWaitWhileRegistering(core: EventCentral.Core) {
    final class Undecided: EventThread, @unchecked Sendable {
      // It adds no state.
      override func registerEventListeners() {
        addEventCallback { (_: Ping) in }.removeAndWait()
      }
    }
    #expect(Ping().queue(on: Undecided(on: EventCentral(core: core)).central) == 0)
  }

  @Test("D6: the deinit of what an event carries may wait for the handler that had it", arguments: cores)
  func eventEndWaits(core: EventCentral.Core) {
    final class Parting: Sendable {
      let handle: Guarded<(any EventListenerHandling)?>
      let done: Gate
      init(_ handle: Guarded<(any EventListenerHandling)?>, _ done: Gate) {
        (self.handle, self.done) = (handle, done)
      }
      deinit {
        handle.withLock { $0 }?.removeAndWait()
        done.open()
      }
    }
    struct Last: Eventable { let parting: Parting }
    // Plain ones take the short way, alone and in a batch; one with a time the general one.
    for (isTimed, batch) in [(true, 1), (false, 1), (false, 3)] {
      let central = EventCentral(core: core)
      let thread = EventThread(on: central)
      let last = Guarded<(any EventListenerHandling)?>(nil)
      let done = Gate()
      let handle =
        isTimed
        ? thread.addEventCallback { (_: Last, _: EventPriority, _: DispatchTime) in }
        : thread.addEventCallback { (_: Last) in }
      last.withLock { $0 = handle }
      (0..<batch).map { _ in Last(parting: Parting(last, done)) }.queue(on: central)
      for _ in 0..<batch { #expect(done.pass()) }
      #expect(!handle.isActive)
      thread.cancel()
    }
  }

  @Test("D1: an event that a removed callback dispatches as it is freed comes in its turn", arguments: cores)
  func freedCallbackDispatches(core: EventCentral.Core) {
    final class Parting: Sendable {
      let central: EventCentral
      init(_ central: EventCentral) { self.central = central }
      deinit { Pong(number: 9).queue(priority: .highest, on: central) }
    }
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<String>()
    thread.addEventCallback { (event: Ping) in log.append("ping \(event.number)") }
    thread.addEventCallback { (event: Pong) in log.append("pong \(event.number)") }
    var parting: Parting? = Parting(central)
    let handle = thread.addEventCallback { [parting] (_: Ping) in withExtendedLifetime(parting) {} }
    parting = nil
    let held = HeldThread(thread)
    for number in 0..<3 { Ping(number: number).queue(priority: .low, on: central) }
    handle.remove()
    held.letGo()
    #expect(log.entries(atLeast: 4) == ["pong 9", "ping 0", "ping 1", "ping 2"])
    thread.cancel()
  }

  @Test("D7, D10: a removed callback may cancel its thread as it is freed", arguments: cores)
  func freedCallbackCancels(core: EventCentral.Core) {
    final class Parting: @unchecked Sendable {
      // A constant, which the thread outlives.
      unowned let thread: EventThread
      init(_ thread: EventThread) { self.thread = thread }
      deinit { thread.cancel() }
    }
    let thread = EventThread(on: EventCentral(core: core))
    let log = Log<Int>()
    thread.addEventCallback { (event: Ping) in log.append(event.number) }
    var parting: Parting? = Parting(thread)
    let handle = thread.addEventCallback { [parting] (_: Ping) in withExtendedLifetime(parting) {} }
    parting = nil
    let held = HeldThread(thread)
    thread.queueEvent(Ping())
    handle.remove()
    held.letGo()
    thread.join()
    #expect(log.entries.isEmpty)
    #expect(thread.statistics.cancelled == 1)
  }
}
