// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

/// Each mistake is made in a process of its own.
@Suite("D12: mistakes with event threads trap")
struct TrapTests {
  struct Ping: Eventable {}

  @Test("removeAndWait inside the callback itself")
  func waitingForOneself() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let thread = EventThread(on: EventCentral())
      let handles = Log<any EventListenerHandling>()
      let registered = Gate()
      let handle = thread.addEventCallback { (_: Ping) in
        registered.pass()
        handles.entries[0].removeAndWait()
      }
      handles.append(handle)
      registered.open()
      thread.queueEvent(Ping())
      thread.join()
    }
    expectMessage(result, "removeAndWait() waits until its handler is not running")
  }

  @Test("drain on the thread itself")
  func drainingOneself() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let thread = EventThread(on: EventCentral())
      thread.addEventCallback { [unowned thread] (_: Ping) in thread.drain() }
      thread.queueEvent(Ping())
      thread.join()
    }
    expectMessage(result, "drain(until:) waits for the end of its event thread")
  }

  @Test("join on the thread itself")
  func joiningOneself() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let thread = EventThread(on: EventCentral(core: .locking))
      thread.addEventCallback { [unowned thread] (_: Ping) in thread.join() }
      thread.queueEvent(Ping())
      thread.join()
    }
    expectMessage(result, "join() waits for the end of its event thread")
  }

  @Test("drain and join before the thread has begun, in registerEventListeners")
  func waitingForTheBeginning() async {
    final class Draining: EventThread, @unchecked Sendable {
      // It adds no state.
      override func registerEventListeners() { drain() }
    }
    final class Joining: EventThread, @unchecked Sendable {
      // It adds no state.
      override func registerEventListeners() { join() }
    }
    final class Removing: EventThread, @unchecked Sendable {
      // It adds no state.
      override func registerEventListeners() {
        // Freed on this thread at once, in a deterministic central.
        addEventCallback { (_: Ping) in }.remove()
        drain()
      }
    }
    let drained = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      _ = Draining(on: EventCentral())
    }
    expectMessage(drained, "drain(until:) waits for the end of its event thread")
    let joined = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      _ = Joining(on: EventCentral(core: .locking))
    }
    expectMessage(joined, "join() waits for the end of its event thread")
    let removed = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      _ = Removing(on: EventCentral(deterministic: 1))
    }
    expectMessage(removed, "drain(until:) waits for the end of its event thread")
  }

  @Test("a method of another class")
  func methodOfAnotherClass() async {
    final class Other: EventThread, @unchecked Sendable {
      // It adds no state.
      func onPing(_ event: Ping) {}
    }
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      EventThread(on: EventCentral()).addEventCallback(Other.onPing)
    }
    expectMessage(result, "A method that is registered without its object")
  }

  @Test("an interest without the age or filter that it needs, or with one that it does not need")
  func contradictoryInterests() async {
    let youngerThan = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      EventThread(on: EventCentral())
        .addEventCallback({ (_: Ping) in }, interestedIn: .youngerThan)
    }
    expectMessage(youngerThan, "The interest .youngerThan needs a maximum age")
    let custom = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      EventThread(on: EventCentral())
        .addEventCallback({ (_: Ping) in }, interestedIn: [.custom, .latestOnly])
    }
    expectMessage(custom, "The interest .custom needs a filter")
    let age = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      EventThread(on: EventCentral())
        .addEventCallback({ (_: Ping) in }, interestedIn: .latestOnly, maximumAge: 5)
    }
    expectMessage(age, "maximumAge is 5 for an interest that asks for no age")
    let filter = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      EventThread(on: EventCentral())
        .addEventCallback({ (_: Ping) in }, customFilter: { _, _, _ in true })
    }
    expectMessage(filter, "A filter belongs to the interest .custom")
    let nothing = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      EventThread(on: EventCentral()).addEventCallback({ (_: Ping) in }, interestedIn: [])
    }
    expectMessage(nothing, "with none of them the handler would never be called")
    let twice = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      EventThread(on: EventCentral()).addEventCallback(
        { (_: Ping) in }, interestedIn: .youngerThan(.seconds(1)), maximumAge: 5)
    }
    expectMessage(twice, "An age is said once")
    let noAge = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      EventThread(on: EventCentral())
        .addEventCallback({ (_: Ping) in }, interestedIn: .youngerThan(.zero))
    }
    expectMessage(noAge, "needs an age above zero")
    let noKey = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      EventThread(on: EventCentral()).addEventCallback({ (_: Ping) in }, interestedIn: .latestPerKey)
    }
    expectMessage(noKey, "Ping has none: make it Conflatable")
    let both = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      EventThread(on: EventCentral())
        .addEventCallback({ (_: Ping) in }, interestedIn: [.latestOnly, .latestPerKey])
    }
    expectMessage(both, "leave one of them out")
  }

  @Test("D12: an interest that the verb cannot have says what its caller can do")
  func interestsOfOthers() async {
    // Neither has a parameter for a filter.
    let listened = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Ping.listen(interestedIn: .custom, on: EventListener()) { _ in }
    }
    expectMessage(listened, "return from the handler for the others")
    let elsewhere = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Ping.listen(executeOn: .listenerThread, interestedIn: .custom, on: EventListener()) { _ in }
    }
    expectMessage(elsewhere, "return from the handler for the others")
    let worker = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = EventWorker(on: EventCentral(), state: 0) { on in on(Ping.self, interestedIn: .custom) { _, _ in } }
    }
    expectMessage(worker, "return from the handler for the others")
    // Nobody has passed .latestOnly.
    let latest = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Ping.events(on: EventCentral(), buffering: .latest, interestedIn: .latestPerKey)
    }
    expectMessage(latest, "the buffering .latest")
  }

  #if !URCU
    @Test("the lock-free core in a build without it")
    func lockFreeIsMissing() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        _ = EventCentral(core: .lockFree)
      }
      expectMessage(result, "needs the package trait URCU")
    }
  #endif

  @Test("drain of a UIEventThread in the deinit of what one of its callbacks held")
  func drainingAtTheEndOfACallback() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      final class Parting: @unchecked Sendable {
        // A constant, which the thread outlives.
        unowned let thread: UIEventThread
        init(_ thread: UIEventThread) { self.thread = thread }
        deinit { thread.drain() }
      }
      let thread = UIEventThread(on: EventCentral())
      let handle = { (parting: Parting) in
        thread.addEventCallback { (_: Ping) in withExtendedLifetime(parting) {} }
      }(Parting(thread))
      handle.remove()
    }
    expectMessage(result, "drain(until:) waits for the end of its event thread")
  }
}
