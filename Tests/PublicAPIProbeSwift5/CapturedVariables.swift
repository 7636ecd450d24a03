// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventDrivenSwift
import EventCoreTestSupport
import EventsTree
import Testing

// In Swift 5 mode alone a closure may change a variable of the function around it without an annotation.
// This suite has one for every family of entry points that take closures, and checks above all that it
// compiles. Where the closure runs elsewhere the compiler warns. In Swift 6 mode that is an error, which
// `@preconcurrency` would make a warning there, too.
@Suite("In Swift 5 mode closures change captured variables")
struct CapturedVariables {
  struct Ping: Eventable { var number = 0 }

  actor Model {
    let log = Log<Int>()

    func listen(on central: EventCentral) {
      var (calls, judged) = (0, 0)
      Ping.addListener(
        nil,
        { [log] event in
          calls += 1
          log.append(calls)
        }, on: central)
      Ping.addListener(
        nil,
        { [log] event, priority, dispatchTime in
          calls += 1
          log.append(calls)
        }, interestedIn: .custom,
        customFilter: { event, priority, dispatchTime in
          judged += 1
          return true
        }, on: central)
      Ping.addListener(
        nil,
        { [log] event in
          calls += 1
          log.append(calls)
        }, interestedIn: [.custom],
        customFilter: { event, priority, dispatchTime in
          judged += 1
          return true
        }, on: central)
      Ping.addListener(
        nil,
        { [log] event in
          calls += 1
          log.append(calls)
        }, on: central.listener)
    }
  }

  final class Owner {
    func onPing(_ event: Ping) {}
    func onTimedPing(_ event: Ping, _ priority: EventPriority, _ dispatchTime: DispatchTime) {}
    @MainActor func onMain(_ event: Ping) {}
    @MainActor func onTimedMain(_ event: Ping, _ priority: EventPriority, _ time: DispatchTime) {}
  }

  final class Worker: EventThread, @unchecked Sendable {
    // It adds no state.
    func onPing(_ event: Ping) {}
    func onTimedPing(_ event: Ping, _ priority: EventPriority, _ dispatchTime: DispatchTime) {}
  }

  final class Screen: UIEventThread, @unchecked Sendable {
    // It adds no state.
    @MainActor func onPing(_ event: Ping) {}
    @MainActor func onTimedPing(_ event: Ping, _ priority: EventPriority, _ time: DispatchTime) {}
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

  @MainActor
  final class View {
    struct Selected: Event { let view: View? }

    let node: EventNode
    private(set) var isSelected = false

    init(_ parent: EventNode) {
      node = EventNode(parent: parent)
      node.addHandler { [weak self] (event: Selected) in
        guard let self else { return }
        isSelected = event.view === self
      }
    }
  }

  @Test("a handler changes the class of the MainActor in which it is written")
  @MainActor
  func views() {
    let root = EventNode(parent: nil)
    let (first, second) = (View(root), View(root))
    first.node.raise(event: View.Selected(view: first))
    #expect(first.isSelected && !second.isSelected)
    second.node.raise(event: View.Selected(view: second))
    #expect(!first.isSelected && second.isSelected)
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
    // Nobody observes these two, since an observer of theirs chooses where it is called.
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

  @Test("closures that make a pool's threads, choose among them, and measure time")
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
