// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

// Event threads.
extension CapturedVariables {
  @Test("callbacks of an event thread, and their filters")
  func threadCallbacks() {
    let central = EventCentral()
    let thread = Worker(on: central)
    var (calls, judged) = (0, 0)
    thread.addEventCallback { (event: Ping) in calls += 1 }
    thread.addEventCallback { (event: Ping, priority: EventPriority, dispatchTime: DispatchTime) in
      calls += 1
    }
    thread.addEventCallback(
      { (event: Ping) in calls += 1 }, interestedIn: .custom,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      })
    thread.addEventCallback(
      { (event: Ping, priority, dispatchTime) in calls += 1 }, interestedIn: .custom,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      })
    thread.addEventCallback(
      Worker.onPing, interestedIn: .custom,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      })
    thread.addEventCallback(
      Worker.onTimedPing, interestedIn: .custom,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      })
    Ping().queue(on: central)
    #expect(thread.drain())
    #expect(calls == 4)
    #expect(judged == 4)
  }

  @Test("callbacks of an event thread with several interests, and their filters")
  func threadCallbacksWithInterests() {
    let central = EventCentral()
    let thread = Worker(on: central)
    let interests: EventListenerInterest = [.custom, .youngerThan]
    var (calls, judged) = (0, 0)
    thread.addEventCallback(
      { (event: Ping) in calls += 1 }, interestedIn: interests, maximumAge: .max,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      })
    thread.addEventCallback(
      { (event: Ping, priority, dispatchTime) in calls += 1 }, interestedIn: interests,
      maximumAge: .max,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      })
    thread.addEventCallback(
      Worker.onPing, interestedIn: interests, maximumAge: .max,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      })
    thread.addEventCallback(
      Worker.onTimedPing, interestedIn: interests, maximumAge: .max,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      })
    Ping().queue(on: central)
    #expect(thread.drain())
    #expect(calls == 2)
    #expect(judged == 4)
  }

  @Test("callbacks of the MainActor, and their filters")
  func mainActorCallbacks() {
    let screen = Screen(on: EventCentral())
    let several: EventListenerInterest = [.custom, .latestOnly]
    var (calls, judged) = (0, 0)
    // Only their stated types make these closures the MainActor's.
    let call: @MainActor (Ping) -> Void = { event in calls += 1 }
    let timedCall: @MainActor (Ping, EventPriority, DispatchTime) -> Void = {
      event, priority, dispatchTime in
      calls += 1
    }
    let filter: @MainActor (Ping, EventPriority, DispatchTime) -> Bool = {
      event, priority, dispatchTime in
      judged += 1
      return true
    }
    screen.addEventCallback(call)
    screen.addEventCallback(timedCall)
    screen.addEventCallback(call, interestedIn: .custom, customFilter: filter)
    screen.addEventCallback(timedCall, interestedIn: .custom, customFilter: filter)
    screen.addEventCallback(Screen.onPing, interestedIn: .custom, customFilter: filter)
    screen.addEventCallback(Screen.onTimedPing, interestedIn: .custom, customFilter: filter)
    screen.addEventCallback(call, interestedIn: several, customFilter: filter)
    screen.addEventCallback(timedCall, interestedIn: several, customFilter: filter)
    screen.addEventCallback(Screen.onPing, interestedIn: several, customFilter: filter)
    screen.addEventCallback(Screen.onTimedPing, interestedIn: several, customFilter: filter)
    // Nothing is dispatched, since the test does not own the main queue.
    screen.cancel()
    #expect((calls, judged) == (0, 0))
  }

  @MainActor final class Label { var text = "" }

  // As the documentation of UIEventThread prints it.
  @Test("a closure of a UIEventThread may touch what the MainActor guards")
  @MainActor
  func screenClosure() async {
    let (label, screen) = (Label(), Screen(on: EventCentral()))
    await withCheckedContinuation { continuation in
      screen.addEventCallback { @MainActor @Sendable (event: Ping) in
        label.text = "ping"
        continuation.resume()
      }
      screen.queueEvent(Ping())
    }
    #expect(label.text == "ping")
    screen.cancel()
  }

  // The compiler takes these for the forms of an event thread, but they run on the main queue.
  @Test("callbacks of a UIEventThread that say nothing of the MainActor, and their filters")
  func screenCallbacks() {
    let screen = Screen(on: EventCentral())
    let several: EventListenerInterest = [.custom, .latestOnly]
    var (calls, judged) = (0, 0)
    screen.addEventCallback { (event: Ping) in calls += 1 }
    screen.addEventCallback { (event: Ping, priority: EventPriority, dispatchTime: DispatchTime) in
      calls += 1
    }
    screen.addEventCallback(
      { (event: Ping) in calls += 1 }, interestedIn: .custom,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      })
    screen.addEventCallback(
      { (event: Ping, priority, dispatchTime) in calls += 1 }, interestedIn: .custom,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      })
    screen.addEventCallback(
      Screen.onPing, interestedIn: .custom,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      })
    screen.addEventCallback(
      Screen.onTimedPing, interestedIn: .custom,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      })
    screen.addEventCallback(
      { (event: Ping) in calls += 1 }, interestedIn: several,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      })
    screen.addEventCallback(
      { (event: Ping, priority, dispatchTime) in calls += 1 }, interestedIn: several,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      })
    screen.addEventCallback(
      Screen.onPing, interestedIn: several,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      })
    screen.addEventCallback(
      Screen.onTimedPing, interestedIn: several,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      })
    // Nothing is dispatched, since the test does not own the main queue.
    screen.cancel()
    #expect((calls, judged) == (0, 0))
  }
}
