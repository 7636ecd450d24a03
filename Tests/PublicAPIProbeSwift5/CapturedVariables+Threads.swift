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
      interestedIn: .custom,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      }
    ) { (event: Ping) in calls += 1 }
    thread.addEventCallback(
      interestedIn: .custom,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      }
    ) { (event: Ping, priority: EventPriority, dispatchTime: DispatchTime) in calls += 1 }
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
    #expect(calls == 6)
    #expect(judged == 6)
  }

  @Test("callbacks of an event thread with several interests, and their filters")
  func threadCallbacksWithInterests() {
    let central = EventCentral()
    let thread = Worker(on: central)
    let interests: Set<EventListenerInterest> = [.custom, .youngerThan]
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

  @Test("callbacks on the MainActor, and their filters")
  func screenCallbacks() {
    let screen = Screen(on: EventCentral())
    let several: Set<EventListenerInterest> = [.custom, .latestOnly]
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
    // Nothing was dispatched, and the main queue is not this test's.
    screen.cancel()
    #expect((calls, judged) == (0, 0))
  }
}
