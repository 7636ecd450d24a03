// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventDrivenSwift
import EventCoreTestSupport
import Testing

// Listeners.
extension CapturedVariables {
  @Test("listeners with a requester and without one, and their filters")
  func listeners() {
    let (central, owner, called) = (EventCentral(), Owner(), Gate())
    var (calls, judged) = (0, 0)
    let handles = [
      Ping.addListener(
        owner,
        { event in
          calls += event.number
          called.open()
        }, executeOn: .listenerThread, on: central),
      Ping.addListener(
        owner,
        { event, priority, dispatchTime in
          calls += event.number
          called.open()
        }, executeOn: .listenerThread, interestedIn: .custom,
        customFilter: { event, priority, dispatchTime in
          judged += 1
          return true
        }, on: central),
      Ping.addListener(owner, executeOn: .listenerThread, on: central) { event in
        calls += event.number
        called.open()
      },
      Ping.addListener(owner, executeOn: .listenerThread, on: central) {
        event, priority, dispatchTime in
        calls += event.number
        called.open()
      },
      Ping.addListener(
        nil,
        { event in
          calls += event.number
          called.open()
        }, executeOn: .listenerThread, interestedIn: .custom,
        customFilter: { event, priority, dispatchTime in
          judged += 1
          return true
        }, on: central),
      Ping.addListener(
        nil,
        { event, priority, dispatchTime in
          calls += event.number
          called.open()
        }, executeOn: .listenerThread, interestedIn: .custom,
        customFilter: { event, priority, dispatchTime in
          judged += 1
          return true
        }, on: central),
      Ping.addListener(nil, executeOn: .listenerThread, on: central) { event in
        calls += event.number
        called.open()
      },
      Ping.addListener(nil, executeOn: .listenerThread, once: true, on: central) {
        event, priority, dispatchTime in
        calls += event.number
        called.open()
      },
      Ping.addListener(
        nil,
        { event in
          calls += event.number
          called.open()
        }, executeOn: .listenerThread, interestedIn: [.custom, .youngerThan], maximumAge: .max,
        customFilter: { event, priority, dispatchTime in
          judged += 1
          return true
        }, on: central),
      Ping.addListener(
        nil,
        { event, priority, dispatchTime in
          calls += event.number
          called.open()
        }, executeOn: .listenerThread, interestedIn: [.custom, .youngerThan], maximumAge: .max,
        customFilter: { event, priority, dispatchTime in
          judged += 1
          return true
        }, on: central),
      Ping.addListener(
        owner, Owner.onPing, executeOn: .listenerThread, interestedIn: .custom,
        customFilter: { owner, event, priority, dispatchTime in
          judged += 1
          called.open()
          return true
        }, on: central),
      Ping.addListener(
        owner, Owner.onPing, executeOn: .listenerThread, interestedIn: [.custom],
        customFilter: { owner, event, priority, dispatchTime in
          judged += 1
          called.open()
          return true
        }, on: central),
    ]
    Ping(number: 1).queue(on: central)
    for _ in handles { called.pass() }
    for handle in handles { handle.removeAndWait() }
    #expect(calls == 10)
    #expect(judged == 7)
    withExtendedLifetime(owner) {}
  }

  @Test("listeners that a central or one of its listeners is given, by the names of EventDrivenSwift")
  func listenersOfACentral() {
    let (central, owner, called) = (EventCentral(), Owner(), Gate())
    let listener: any EventListenable = central.listener
    var (calls, judged) = (0, 0)
    let handles = [
      listener.addListener(
        owner,
        { (event: Ping, priority, dispatchTime) in
          calls += 1
          called.open()
        }, executeOn: .listenerThread),
      central.addListener(
        nil,
        { (event: Ping, priority, dispatchTime) in
          calls += 1
          called.open()
        }, executeOn: .listenerThread, interestedIn: .custom,
        customFilter: { event, priority, dispatchTime in
          judged += 1
          return true
        }),
    ]
    Ping().queue(on: central)
    for _ in handles { called.pass() }
    for handle in handles { handle.removeAndWait() }
    #expect(calls == 2)
    #expect(judged == 1)
    withExtendedLifetime(owner) {}
  }

  // The compiler may warn about a closure that states `@MainActor`, whose author knows of concurrency.
  // Here the filters change variables.
  @Test("filters of listeners on the MainActor and on other actors")
  @MainActor
  func listenersOnActors() {
    let (central, owner, model) = (EventCentral(), Owner(), Model())
    let several: EventListenerInterest = [.custom, .latestOnly]
    var judged = 0
    Ping.addListener(
      nil, { @MainActor event in }, interestedIn: .custom,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      }, on: central)
    Ping.addListener(
      nil, { @MainActor event, priority, dispatchTime in }, interestedIn: .custom,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      }, on: central)
    Ping.addListener(
      nil, { @MainActor event in }, interestedIn: several,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      }, on: central)
    Ping.addListener(
      nil, { @MainActor event, priority, dispatchTime in }, interestedIn: several,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      }, on: central)
    Ping.addListener(
      owner, Owner.onMain, interestedIn: .custom,
      customFilter: { owner, event, priority, dispatchTime in
        judged += 1
        return true
      }, on: central)
    Ping.addListener(
      owner, Owner.onTimedMain, interestedIn: several,
      customFilter: { owner, event, priority, dispatchTime in
        judged += 1
        return true
      }, on: central)
    Ping.addListener(
      model, { (model: isolated Model, event) in }, interestedIn: .custom,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      }, on: central)
    // Nothing is dispatched, since the test cannot wait for the places where these run.
    #expect(judged == 0)
    withExtendedLifetime((owner, central)) {}
  }

  @Test("listeners on the actor that registers them")
  func listenersOnTheirActor() async {
    let (central, model) = (EventCentral(), Model())
    await model.listen(on: central)
    Ping(number: 1).queue(on: central)
    await offThePool { _ = model.log.entries(atLeast: 4) }
    #expect(model.log.entries == [1, 2, 3, 4])
  }

  @Test("listeners by the names of EventDrivenSwift, and their filters")
  func listenersOfTheSharedCentral() {
    let owner = Owner()
    var (calls, judged) = (0, 0)
    let handles = [
      EventCentral.addListener(
        owner, { (event: Ping, priority, dispatchTime) in calls += 1 }, executeOn: .listenerThread,
        interestedIn: .custom,
        customFilter: { event, priority, dispatchTime in
          judged += 1
          return true
        }),
      EventCentral.addListener(
        nil, { (event: Ping, priority, dispatchTime) in calls += 1 }, executeOn: .listenerThread,
        interestedIn: .custom,
        customFilter: { event, priority, dispatchTime in
          judged += 1
          return true
        }),
      EventCentral.addListener(
        nil, { @MainActor event, priority, dispatchTime in }, forEventType: Ping.self,
        interestedIn: .custom,
        customFilter: { event, priority, dispatchTime in
          judged += 1
          return true
        }),
    ]
    for handle in handles { handle.remove() }
    #expect((calls, judged) == (0, 0))
    withExtendedLifetime(owner) {}
  }
}
