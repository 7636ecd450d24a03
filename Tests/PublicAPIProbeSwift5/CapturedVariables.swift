// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

// What is only possible in Swift 5 mode: closures that change a variable of the function around them,
// without an annotation, in every family of entry points that take closures. That it compiles without a
// warning is most of what it says: an entry point that lacks its `@preconcurrency` makes one here.
//
// The functions are neither `async` nor isolated, like those of a program that knows nothing of
// concurrency: in one that is, the compiler warns in Swift 5 mode as well.
@Suite("In Swift 5 mode closures change captured variables")
struct CapturedVariables {
  struct Ping: Event { var number = 0 }

  actor Model {
    let log = Log<Int>()

    func listen(on central: EventCentral) {
      var (calls, judged) = (0, 0)
      Ping.addListener(
        isolation: self,
        { [log] event in
          calls += 1
          log.append(calls)
        }, on: central)
      Ping.addListener(
        isolation: self,
        { [log] event, priority, dispatchTime in
          calls += 1
          log.append(calls)
        }, interestedIn: .custom,
        customFilter: { event, priority, dispatchTime in
          judged += 1
          return true
        }, on: central)
      Ping.addListener(
        isolation: self,
        { [log] event in
          calls += 1
          log.append(calls)
        }, interestedIn: [.custom],
        customFilter: { event, priority, dispatchTime in
          judged += 1
          return true
        }, on: central)
      central.addListener(
        isolation: self,
        { [log] (event: Ping) in
          calls += 1
          log.append(calls)
        })
    }
  }

  final class Owner {
    func onPing(_ event: Ping) {}
    func onTimedPing(_ event: Ping, _ priority: EventPriority, _ dispatchTime: DispatchTime) {}
    @MainActor func onMain(_ event: Ping) {}
    @MainActor func onTimedMain(_ event: Ping, _ priority: EventPriority, _ time: DispatchTime) {}
  }

  final class Worker: EventThread, @unchecked Sendable {
    // Stores nothing.
    func onPing(_ event: Ping) {}
    func onTimedPing(_ event: Ping, _ priority: EventPriority, _ dispatchTime: DispatchTime) {}
  }

  final class Screen: UIEventThread, @unchecked Sendable {
    // Stores nothing.
    @MainActor func onPing(_ event: Ping) {}
    @MainActor func onTimedPing(_ event: Ping, _ priority: EventPriority, _ time: DispatchTime) {}
  }

  // MARK: Event threads

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

  // MARK: Listeners

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
        customFilter: { event, priority, dispatchTime in
          judged += 1
          called.open()
          return true
        }, on: central),
      Ping.addListener(
        owner, Owner.onTimedPing, executeOn: .listenerThread, interestedIn: [.custom],
        customFilter: { owner in
          { event, priority, dispatchTime in
            judged += 1
            called.open()
            return true
          }
        }, on: central),
    ]
    Ping(number: 1).queue(on: central)
    for _ in handles { called.pass() }
    for handle in handles { handle.removeAndWait() }
    #expect(calls == 10)
    #expect(judged == 7)
    withExtendedLifetime(owner) {}
  }

  @Test("listeners that a central or one of its listeners is given, and their filters")
  func listenersOfACentral() {
    let (central, owner, called) = (EventCentral(), Owner(), Gate())
    let listener: any EventListenable = central.listener
    var (calls, judged) = (0, 0)
    let handles = [
      listener.addListener(
        owner,
        { (event: Ping) in
          calls += 1
          called.open()
        }, executeOn: .listenerThread),
      listener.addListener(
        nil,
        { (event: Ping) in
          calls += 1
          called.open()
        }, executeOn: .listenerThread, interestedIn: .custom,
        customFilter: { event, priority, dispatchTime in
          judged += 1
          return true
        }),
      listener.addListener(
        nil,
        { (event: Ping, priority, dispatchTime) in
          calls += 1
          called.open()
        }, executeOn: .listenerThread, interestedIn: .custom,
        customFilter: { event, priority, dispatchTime in
          judged += 1
          return true
        }),
      listener.addListener(nil, forEventType: Ping.self, executeOn: .listenerThread) { event in
        calls += 1
        called.open()
      },
      central.addListener(nil, forEventType: Ping.self, executeOn: .listenerThread) {
        event, priority, dispatchTime in
        calls += 1
        called.open()
      },
      central.addListener(
        nil,
        { (event: Ping) in
          calls += 1
          called.open()
        }, executeOn: .listenerThread, interestedIn: [.custom, .youngerThan], maximumAge: .max,
        customFilter: { event, priority, dispatchTime in
          judged += 1
          return true
        }),
      central.addListener(
        nil,
        { (event: Ping, priority, dispatchTime) in
          calls += 1
          called.open()
        }, executeOn: .listenerThread, interestedIn: [.custom, .youngerThan], maximumAge: .max,
        customFilter: { event, priority, dispatchTime in
          judged += 1
          return true
        }),
    ]
    Ping().queue(on: central)
    for _ in handles { called.pass() }
    for handle in handles { handle.removeAndWait() }
    #expect(calls == 7)
    #expect(judged == 4)
    withExtendedLifetime(owner) {}
  }

  // A closure that says `@MainActor` knows of concurrency, and may warn: here the filters change variables.
  @Test("filters of listeners on the MainActor and on other actors")
  func listenersOnActors() {
    let (central, owner, model) = (EventCentral(), Owner(), Model())
    let listener = central.listener
    let several: Set<EventListenerInterest> = [.custom, .latestOnly]
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
    listener.addListener(
      nil, { @MainActor event in }, forEventType: Ping.self, interestedIn: .custom,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      })
    listener.addListener(
      nil, { @MainActor event, priority, dispatchTime in }, forEventType: Ping.self,
      interestedIn: several,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      })
    Ping.addListener(
      owner, Owner.onMain, interestedIn: .custom,
      customFilter: { owner in
        { event, priority, dispatchTime in
          judged += 1
          return true
        }
      }, on: central)
    Ping.addListener(
      owner, Owner.onTimedMain, interestedIn: several,
      customFilter: { owner in
        { event, priority, dispatchTime in
          judged += 1
          return true
        }
      }, on: central)
    Ping.addListener(
      model, { (model: isolated Model, event) in }, interestedIn: .custom,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      }, on: central)
    Ping.addListener(
      model, { (model: isolated Model, event, priority, dispatchTime) in }, interestedIn: several,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      }, on: central)
    listener.addListener(
      model, { (model: isolated Model, event: Ping) in }, interestedIn: several,
      customFilter: { event, priority, dispatchTime in
        judged += 1
        return true
      })
    // Nothing was dispatched: where these run is not this test's to wait for.
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

  // MARK: Trees

  @Test("handlers of a node, where the event is raised and elsewhere")
  func nodeHandlers() {
    let (node, thread, model) = (EventNode(), EventThread(on: EventCentral()), Model())
    var (calls, elsewhere) = (0, 0)
    node.addHandler { (event: Ping) in calls += 1 }
    node.addHandler(.onRaise, for: Ping.self) { context in
      calls += 1
      return .continue
    }
    let handedOver = node.addHandler(executeOn: thread) { (event: Ping) in elsewhere += 1 }
    let onActors = [
      node.addHandler(executeOn: .listenerThread) { (event: Ping) in calls += 1 },
      node.addHandler(executeOn: MainActor.shared) { (event: Ping) in calls += 1 },
      node.addHandler(executeOn: model) { (model: isolated Model, event: Ping) in calls += 1 },
    ]
    for handle in onActors { handle.remove() }
    node.raise(event: Ping())
    #expect(thread.drain())
    #expect(calls == 2)
    #expect(elsewhere == 1)
    handedOver.remove()
  }

  // MARK: Coordinators

  @Test("interceptors of a coordinator")
  func interceptors() {
    enum Step: CoordinateEvents { case next }
    let (coordinator, child) = (Coordinator(), Coordinator())
    coordinator.addChild(child)
    var steps = 0
    coordinator.intercept { (event: Step) in
      steps += 1
      return .handled
    }
    child.emitEvent(Step.next)
    #expect(steps == 1)
  }

  // MARK: Observers

  protocol Watching: AnyObject {}
  final class Watcher: Watching {}

  @Test("notifications of observers, by key and without one")
  func observers() {
    let watcher = Watcher()
    let (safe, plain) = (KeyedObservableThreadSafeClass(), KeyedObservableClass())
    let thread = EventThread(on: EventCentral())
    var told = 0
    plain.addObserver(watcher)
    plain.addKeyedObserver(key: "a", watcher)
    plain.withObservers { (observer: Watching) in told += 1 }
    plain.withKeyedObservers(key: "a") { (key, observer: Watching) in told += 1 }
    plain.withKeyedObservers(keys: ["a"]) { (key, observer: Watching) in told += 1 }
    #expect(told == 3)
    // Nobody observes these: where an observer is told is its own choice.
    safe.withObservers { (observer: Watching) in told += 1 }
    safe.withKeyedObservers(key: "a") { (key, observer: Watching) in told += 1 }
    safe.withKeyedObservers(keys: ["a"]) { (key, observer: Watching) in told += 1 }
    thread.withObservers { (observer: Watching) in told += 1 }
    thread.withKeyedObservers(key: "a") { (key, observer: Watching) in told += 1 }
    thread.withKeyedObservers(keys: ["a"]) { (key, observer: Watching) in told += 1 }
    #expect(told == 3)
    thread.cancel()
  }

  // MARK: Pools

  @Test("what makes a pool's threads, and chooses among them, and measures time")
  func pools() {
    let central = EventCentral()
    var (made, keys, readings) = (0, 0, 0)
    let balancer = EventPoolKeyedBalancer { (event: Ping) in
      keys += 1
      return event.number
    }.keyed { (event: Other) in
      keys += 1
      return event.name
    }
    let scaler = EventPoolDynamicScaler(
      maximum: 2, interval: nil,
      now: {
        readings += 1
        return .zero
      })
    let pool = EventPool(capacity: 2, balancer: balancer, scaler: scaler, on: central) { index in
      made += 1
      let thread = EventThread()
      thread.addEventCallback { (event: Ping) in }
      thread.addEventCallback { (event: Other) in }
      return thread
    }
    #expect(made == 2)
    Ping().queue(on: central)
    Other(name: "x").queue(on: central)
    #expect(keys == 2)
    pool.rescale()
    #expect(readings > 0)
    #expect(pool.drain())
  }

  struct Other: Eventable { var name = "" }
}
