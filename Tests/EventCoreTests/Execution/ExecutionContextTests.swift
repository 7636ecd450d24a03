// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Synchronization
import Testing

@testable import EventCore

@Suite("Execution contexts: where closures run, in order, one at a time")
struct ExecutionContextTests {
  /// Counts closures that run at the same time as another.
  final class Turnstile: Sendable {
    private let inside = Atomic<Int>(0)
    private let met = Atomic<Int>(0)

    func pass(_ body: () -> Void = {}) {
      if inside.wrappingAdd(1, ordering: .acquiring).oldValue != 0 {
        met.wrappingAdd(1, ordering: .relaxed)
      }
      body()
      inside.wrappingSubtract(1, ordering: .releasing)
    }

    var encounters: Int { met.load(ordering: .acquiring) }
  }

  actor Home {}

  /// Every kind of context that somebody drives in a test process.
  enum Place: CaseIterable, CustomTestStringConvertible {
    case listenerThread, mainQueue, serialQueue, concurrentQueue, actor, task, eventThread
    case threadOfAnotherCentral

    var testDescription: String { "\(self)" }
  }

  /// Makes a context of that kind. Returns it with the object that has to live as long.
  func context(_ place: Place, of central: EventCentral) -> (ExecutionContext, AnyObject?) {
    let contexts = central.listener.contexts
    switch place {
    case .listenerThread: return (contexts.listenerThread(), nil)
    case .mainQueue: return (contexts.queue(.main), nil)
    case .serialQueue: return (contexts.queue(DispatchQueue(label: "serial")), nil)
    case .concurrentQueue:
      return (contexts.queue(DispatchQueue(label: "all at once", attributes: .concurrent)), nil)
    case .actor:
      let home = Home()
      return (contexts.actor(home), home)
    case .task: return (contexts.task(), nil)
    case .eventThread: return inHandler(of: EventThread(on: central), contexts)
    case .threadOfAnotherCentral:
      return inHandler(of: EventThread(on: EventCentral(core: central.core)), contexts)
    }
  }

  struct Here: Eventable {
    let body: @Sendable () -> Void
  }

  func inHandler(
    of thread: EventThread, _ contexts: ExecutionContexts
  ) -> (ExecutionContext, AnyObject?) {
    let found = Log<ExecutionContext>()
    thread.addEventCallback { (here: Here) in here.body() }
    thread.queueEvent(Here { found.append(contexts.current()) })
    return (found.entries(atLeast: 1)[0], thread)
  }

  @Test("D2, D4: all closures run, once, in the order of the calls", arguments: cores, Place.allCases)
  func order(core: EventCentral.Core, place: Place) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (context, owner) = context(place, of: central)
      let log = Log<Int>()
      for count in [1, 63, 64, 65, 192, 511, 512, 513, 1536] {
        for number in 0..<count {
          #expect(context.run { log.append(number) })
        }
        #expect(log.entries(atLeast: count) == Array(0..<count))
        _ = log.take()
      }
      context.leave()
      withExtendedLifetime((central, owner)) {}
    }
  }

  @Test(
    "D2: closures of many threads run one at a time, each thread's in order", arguments: cores,
    Place.allCases)
  func oneAtATime(core: EventCentral.Core, place: Place) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (context, owner) = context(place, of: central)
      let (log, turnstile) = (Log<(thread: Int, number: Int)>(), Turnstile())
      onThreads(3) { thread in
        for number in 0..<500 {
          _ = context.run { turnstile.pass { log.append((thread, number)) } }
        }
      }
      let entries = log.entries(atLeast: 1500)
      #expect(turnstile.encounters == 0)
      for thread in 0..<3 {
        #expect(entries.filter { $0.thread == thread }.map(\.number) == Array(0..<500))
      }
      context.leave()
      withExtendedLifetime((central, owner)) {}
    }
  }

  @Test("inside a closure its context is the current one", arguments: cores, Place.allCases)
  func currentInside(core: EventCentral.Core, place: Place) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (context, owner) = context(place, of: central)
      let found = Log<(context: ExecutionContext, isCurrent: Bool)>()
      #expect(
        context.run { found.append((central.listener.contexts.current(), context.consumer.isCurrent)) })
      let inside = found.entries(atLeast: 1)[0]
      #expect(inside.isCurrent)
      #expect(!context.consumer.isCurrent)
      if place == .task {
        // Each context of a task has a task of its own.
        #expect(inside.context.consumer !== context.consumer)
      } else {
        #expect(inside.context.consumer === context.consumer)
      }
      #expect("\(inside.context.place)" == "\(context.place)")
      inside.context.leave()
      context.leave()
      withExtendedLifetime((central, owner)) {}
    }
  }

  @Test("D10: when the last user leaves a queue that nobody serves, what waits is freed", arguments: cores)
  func unservedQueue(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let queue = DispatchQueue(label: "unserved")
      queue.suspend()
      defer { queue.resume() }
      let lifetime = Lifetime()
      let first = central.listener.contexts.queue(queue)
      let second = central.listener.contexts.queue(queue)
      #expect(first === second)
      for _ in 0..<10 {
        let token = lifetime.token()
        #expect(first.run { withExtendedLifetime(token) {} })
      }
      #expect(first.waitingCount == 10)
      first.leave()
      #expect(lifetime.alive == 10)
      second.leave()
      #expect(lifetime.alive == 0)
      #expect(!first.run {})
      // The next user gets a new context.
      let third = central.listener.contexts.queue(queue)
      #expect(third !== first)
      #expect(third.waitingCount == 0)
      third.leave()
    }
  }

  @Test(
    "D10: what a context has delivered is counted once, whoever ends it and whoever leaves it last",
    arguments: cores)
  func countedOnce(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let contexts = central.listener.contexts
      let context = contexts.queue(DispatchQueue(label: "counted once"))
      let ran = Gate()
      #expect(context.run { ran.open() })
      ran.pass()
      #expect(waitUntil { contexts.statistics.delivered == 1 })
      central.listener.end()
      #expect(waitUntil { context.consumer.ended.isOpen })
      #expect(contexts.statistics.delivered == 1)
      context.leave()
      #expect(contexts.statistics.delivered == 1)
    }
  }

  @Test("D10: the central's end frees what waits on a queue that nobody serves", arguments: cores)
  func unservedQueueAndCentral(core: EventCentral.Core) async {
    await offThePool {
      let queue = DispatchQueue(label: "unserved")
      queue.suspend()
      let lifetime = Lifetime()
      var central: EventCentral? = EventCentral(core: core)
      let context = central!.listener.contexts.queue(queue)
      _ = context.run { [token = lifetime.token()] in withExtendedLifetime(token) {} }
      #expect(lifetime.alive == 1)
      central = nil
      #expect(context.waitingCount == 0)
      #expect(lifetime.alive == 0)
      #expect(!context.run {})
      queue.resume()
      context.leave()
    }
  }

  @Test("D9: an actor's context ends with its actor, and what waits is freed", arguments: cores)
  func actorGoes(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let lifetime = Lifetime()
      var home: Home? = Home()
      let context = central.listener.contexts.actor(home!)
      let ran = Gate()
      #expect(context.run { ran.open() })
      #expect(ran.pass())
      weak let gone = home
      home = nil
      #expect(waitUntil { gone == nil })
      _ = context.run { [token = lifetime.token()] in withExtendedLifetime(token) {} }
      #expect(waitUntil { context.consumer.ended.isOpen })
      #expect(lifetime.waitUntilNone())
      #expect(!context.run {})
      context.leave()
    }
  }

  @Test("D7: a closure may leave the context in which it runs", arguments: cores, Place.allCases)
  func leavingInside(core: EventCentral.Core, place: Place) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (context, owner) = context(place, of: central)
      let left = Gate()
      #expect(
        context.run {
          context.leave()
          left.open()
        })
      #expect(left.pass())
      if context.endsWithUsers {
        #expect(waitUntil { context.consumer.ended.isOpen })
      }
      withExtendedLifetime((central, owner)) {}
    }
  }

  @Test(
    "D9: contexts that come and go on many threads leave nothing behind", arguments: cores,
    [Place.listenerThread, .mainQueue, .concurrentQueue, .actor, .task])
  func churn(core: EventCentral.Core, place: Place) async {
    await offThePool {
      let central = EventCentral(core: core)
      let (lifetime, home) = (Lifetime(), Home())
      let queue = DispatchQueue(label: "churn", attributes: .concurrent)
      let contexts = central.listener.contexts
      onThreads(3) { _ in
        for round in 0..<200 {
          let context =
            switch place {
            case .listenerThread: contexts.listenerThread()
            case .mainQueue: contexts.queue(.main)
            case .actor: contexts.actor(home)
            case .task: contexts.task()
            default: contexts.queue(queue)
            }
          for _ in 0...(round % 3) {
            let token = lifetime.token()
            #expect(context.run { withExtendedLifetime(token) {} })
          }
          context.leave()
        }
      }
      #expect(lifetime.waitUntilNone())
    }
  }

  @Test("the default context is a task, the main queue or the listener thread", arguments: cores)
  func currentOutside(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let contexts = central.listener.contexts
    @Sendable func describe(_ context: ExecutionContext) -> String {
      defer { context.leave() }
      return "\(context.place)"
    }
    #expect(describe(contexts.current()) == "task")
    let onMainActor = await MainActor.run { describe(contexts.current()) }
    #expect(onMainActor == "mainQueue")
    let log = Log<String>()
    runThread { log.append(describe(contexts.current())) }
    #expect(log.entries(atLeast: 1) == ["listenerThread"])
  }

  @Test("D10: contexts that are asked for after the listener's end leave nothing behind", arguments: cores)
  func afterTheEnd(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      central.listener.end()
      let contexts = central.listener.contexts
      weak var first: Consumer?
      for number in 0..<3 {
        let context = contexts.listenerThread()
        context.consumer.ended.wait()
        context.leave()
        if number == 0 { first = context.consumer }
      }
      // The thread of the first context lets go of the consumer last.
      #expect(waitUntil { first == nil })
    }
  }

  private struct Keyed: Conflatable {
    let number: Int
    var conflationKey: Int { number % 3 }
  }

  @Test("D10: what a dispatch still holds as a place ends does not count as waiting for ever", arguments: cores)
  func heldByADispatch(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let queue = DispatchQueue(label: "held by a dispatch")
    let over = Over()
    queue.suspend()
    defer { queue.resume() }
    for _ in 0..<2 {
      runThread {
        while !over.isSet.load(ordering: .relaxed) {
          (0..<64).map { Keyed(number: $0) }.queue(on: central)
          over.dispatches.add(1, ordering: .relaxed)
        }
        over.gate.open()
      }
    }
    for _ in 0..<shortened(500) {
      let before = over.dispatches.load(ordering: .relaxed)
      let listener = Keyed.addListener(
        nil, executeOn: .dispatchQueue(queue), interestedIn: .latestPerKey, on: central
      ) { _ in }
      #expect(waitUntil { over.dispatches.load(ordering: .relaxed) > before + 2 })
      listener.remove()
    }
    over.isSet.store(true, ordering: .relaxed)
    over.gate.pass()
    over.gate.pass()
    #expect(central.mailboxStatistics.waiting == 0)
  }

  private final class Over: Sendable {
    let isSet = Atomic<Bool>(false)
    let dispatches = Atomic<Int>(0)
    let gate = Gate()
  }
}
