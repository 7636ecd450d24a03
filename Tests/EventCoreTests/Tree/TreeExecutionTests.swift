// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

@Suite("Trees: handlers that run elsewhere, and bridges to a central and back")
struct TreeExecutionTests {
  @Test("D2: a handler runs where it was asked to, in the order of the raises", arguments: cores)
  func places(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      for place in ListenerPlace.allCases where place != .mainQueue {
        let node = EventNode(core: core)
        let (log, threads) = (Log<Int>(), Log<UInt>())
        node.addHandler(.onRaise, executeOn: place.executeOn, of: central) { (event: Ping) in
          threads.append(currentThread())
          log.append(event.number)
        }
        for number in 0..<100 {
          #expect(node.raise(event: Ping(number: number)) == EventOutcome(handlerCount: 1))
        }
        #expect(log.entries(atLeast: 100) == Array(0..<100))
        #expect(!threads.entries.contains(currentThread()))
      }
    }
  }

  @Test("D10: a handler on an event thread ends with the thread", arguments: cores)
  func eventThread(core: EventCentral.Core) {
    let thread = EventThread(on: EventCentral(core: core))
    let node = EventNode(core: core)
    let log = Log<Int>()
    let handle = node.addHandler([.onRaise, .consumeEvent], executeOn: thread) { (event: Ping) in
      log.append(event.number)
    }
    node.addHandler(.onRaise) { (event: Ping) in log.append(-event.number) }
    // The event is consumed when it is handed over, before the handler has run.
    let held = HeldThread(thread)
    #expect(node.raise(event: Ping(number: 1)).isConsumed)
    #expect(log.entries.isEmpty)
    held.letGo()
    #expect(log.entries(atLeast: 1) == [1])
    thread.cancel()
    thread.join()
    #expect(!handle.isActive)
    // One that comes too late is not kept until an event passes by.
    let lifetime = Lifetime()
    #expect(!addTokenHolder(lifetime, to: node, on: thread).isActive)
    #expect(waitUntil { lifetime.alive == 0 })
    // The event is not handed over, and neither counted nor consumed.
    #expect(node.raise(event: Ping(number: 2)) == EventOutcome(handlerCount: 1))
    #expect(!handle.isActive)
    #expect(log.entries == [1, -2])
  }

  private final class Count {
    var value = 0
    func onPing(_ ping: Ping) { value += 1 }
  }

  /// On no actor that it would know.
  private func add(_ count: Count, to node: EventNode) { node.addHandler(owner: count, Count.onPing) }

  @MainActor
  @Test("an owner that is not Sendable belongs to the main thread and to the main queue", arguments: cores)
  func onMain(core: EventCentral.Core) async {
    let (node, count) = (EventNode(core: core), Count())
    add(count, to: node)
    // Here the queue is another one, on the same thread.
    _ = DispatchQueue(label: "side").sync { node.propagate(event: Ping(number: 1)) }
    // Then the thread may be another one, on the same queue.
    for number in 2...100 {
      await Task.yield()
      node.propagate(event: Ping(number: number))
    }
    #expect(count.value == 100)
  }

  private func addTokenHolder(_ lifetime: Lifetime, to node: EventNode, on thread: EventThread) -> EventNodeHandle {
    let token = lifetime.token()
    return node.addHandler(executeOn: thread) { (_: Note) in withExtendedLifetime(token) {} }
  }

  @Test("handlers may run on the MainActor and on an actor", arguments: cores)
  func actors(core: EventCentral.Core) async {
    actor Recorder {
      var numbers: [Int] = []
      func append(_ number: Int) { numbers.append(number) }
    }
    let node = EventNode(core: core)
    let (recorder, central) = (Recorder(), EventCentral(core: core))
    let (main, onActor) = (Log<Int>(), Log<Int>())
    node.addHandler(executeOn: MainActor.shared, of: central) { (event: Ping) in
      MainActor.preconditionIsolated()
      main.append(event.number)
    }
    node.addHandler(executeOn: recorder, of: central) {
      (recorder: isolated Recorder, event: Ping) in
      recorder.append(event.number)
      onActor.append(event.number)
    }
    await offThePool {
      for number in 0..<10 { node.raise(event: Ping(number: number)) }
      #expect(main.entries(atLeast: 10) == Array(0..<10))
      _ = onActor.entries(atLeast: 10)
    }
    #expect(await recorder.numbers == Array(0..<10))
  }

  @Test("D6: what was handed over before the removal does not begin after it", arguments: cores)
  func removal(core: EventCentral.Core) {
    let thread = EventThread(on: EventCentral(core: core))
    let (log, lifetime) = (Log<Int>(), Lifetime())
    for way in 0..<4 {
      var node: EventNode? = EventNode(core: core)
      let handle = node!.addHandler(executeOn: thread) {
        [token = lifetime.token()] (event: Carrying) in
        log.append(way)
        withExtendedLifetime(token) {}
      }
      let held = HeldThread(thread)
      for _ in 0..<3 { node!.raise(event: Carrying(token: lifetime.token())) }
      switch way {
      case 0: handle.remove()
      case 1: handle.removeAndWait()
      case 2: node!.removeAllHandlers()
      default: node = nil
      }
      held.letGo()
      #expect(lifetime.waitUntilNone())
    }
    #expect(log.entries.isEmpty)
  }

  @Test("D6: removeAndWait waits for a call that runs elsewhere", arguments: cores)
  func removalWaits(core: EventCentral.Core) {
    let thread = EventThread(on: EventCentral(core: core))
    let node = EventNode(core: core)
    let order = orderOfRemoval(
      { node.addHandler(executeOn: thread, $0) }, raise: { node.raise(event: Note()) })
    #expect(order == ["returned", "removed"])
  }

  @Test(
    "D9: a thread of another central that has ended takes no event, and consumes none",
    arguments: cores)
  func threadElsewhereIsGone(core: EventCentral.Core) {
    let (central, other) = (EventCentral(core: core), EventCentral(core: core))
    let root = EventNode(core: core)
    let node = EventNode(parent: root)
    let (log, handles) = (Log<String>(), Log<EventNodeHandle>())
    root.addHandler(.onRaise) { (_: Note) in log.append("root") }
    let thread = EventThread(on: other)
    // In a handler of the thread `.requesterThread` is that thread, whatever the central.
    let adder = thread.addEventCallback { (_: Ping) in
      handles.append(
        node.addHandler([.onRaise, .consumeEvent], executeOn: .requesterThread, of: central) {
          (_: Note) in log.append("thread")
        })
    }
    thread.queueEvent(Ping(number: 0))
    let handle = handles.entries(atLeast: 1)[0]
    guard case .eventThread? = handle.executesOn else {
      Issue.record("not on the thread: \(String(describing: handle.executesOn))")
      return
    }
    adder.remove()
    thread.cancel()
    #expect(!node.raise(event: Note()).isConsumed)
    #expect(!handle.isActive)
    #expect(log.entries == ["root"])
  }

  @Test("D10: calls that wait as their place is drained are made, though a raise is refused meanwhile", arguments: cores)
  func drained(core: EventCentral.Core) async {
    let (central, node, probe) = (EventCentral(core: core), EventNode(core: core), EventNode(core: core))
    let (log, entered, leave) = (Log<Int>(), Gate(), Gate())
    let handle = node.addHandler(executeOn: .listenerThread, of: central) { (ping: Ping) in
      if ping.number == 0 {
        entered.open()
        leave.pass()
      }
      log.append(ping.number)
    }
    probe.addHandler([.onRaise, .consumeEvent], executeOn: .listenerThread, of: central) { (_: Note) in }
    for number in 0..<3 { node.raise(event: Ping(number: number)) }
    await offThePool { entered.pass() }
    let drain = Task { await central.drain() }
    #expect(await yieldUntil { !probe.raise(event: Note()).isConsumed })
    node.raise(event: Ping(number: 3))
    leave.open()
    #expect(await drain.value)
    #expect(log.entries == [0, 1, 2])
    node.raise(event: Ping(number: 4))
    #expect(!handle.isActive)
    #expect(log.entries == [0, 1, 2])
  }

  @Test(
    "D10: calls that wait as a thread of another central is drained are made, though a raise is refused meanwhile",
    arguments: cores)
  func drainedElsewhere(core: EventCentral.Core) async {
    let (central, other, node) = (EventCentral(core: core), EventCentral(core: core), EventNode(core: core))
    let (thread, log, handles) = (EventThread(on: other), Log<Int>(), Log<EventNodeHandle>())
    let adder = thread.addEventCallback { (_: Ping) in
      handles.append(
        node.addHandler(executeOn: .requesterThread, of: central) { (ping: Ping) in log.append(ping.number) })
    }
    thread.addEventCallback { (_: Note) in }
    thread.queueEvent(Ping(number: 0))
    await offThePool { _ = handles.entries(atLeast: 1) }
    adder.remove()
    let held = HeldThread(thread)
    // The thread takes up to 512 from the handler's place at once.
    let count = 1_025
    for number in 0..<count { node.raise(event: Ping(number: number)) }
    let drain = Task { await thread.drain() }
    #expect(await yieldUntil { !thread.queueEvent(Note()) })
    node.raise(event: Ping(number: count))
    held.letGo()
    #expect(await drain.value)
    #expect(log.entries == Array(0..<count))
    node.raise(event: Ping(number: count + 1))
    #expect(!handles.entries[0].isActive)
    #expect(log.entries == Array(0..<count))
  }

  @Test("D9: a place that is shared ends with its last handler", arguments: cores)
  func placesEnd(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let queue = DispatchQueue(label: "suspended")
    queue.suspend()
    let lifetime = Lifetime()
    do {
      let node = EventNode(core: core)
      node.addHandler(executeOn: .dispatchQueue(queue), of: central) { (_: Carrying) in }
      node.raise(event: Carrying(token: lifetime.token()))
      #expect(lifetime.alive == 1)
    }
    // The event is freed although nobody serves the queue.
    #expect(lifetime.waitUntilNone())
    queue.resume()
  }

  @Test("a bridge dispatches the events of a tree to a central", arguments: cores)
  func toACentral(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let thread = EventThread(on: central)
    let log = Log<Int>()
    thread.addEventCallback { (event: Ping) in log.append(event.number) }
    let root = EventNode(core: core)
    let node = EventNode(parent: root)
    let handle = root.dispatchEvents(of: Ping.self, to: central, .onRaise)
    let held = HeldThread(thread)
    node.raise(event: Ping(number: 1))
    root.dispatchEvents(of: Ping.self, to: central, .onRaise, by: .stack, priority: .high)
    handle.remove()
    node.raise(event: Ping(number: 2))
    held.letGo()
    #expect(log.entries(atLeast: 2) == [2, 1])
  }

  @Test("D9: a bridge raises the events of a central at a node, as long as that lives", arguments: cores)
  func fromACentral(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let (log, lifetime) = (Log<Int>(), Lifetime())
    let root = EventNode(core: core)
    root.addHandler(.onRaise) { (event: Ping) in log.append(event.number) }
    var node: EventNode? = TreeLifetimeTests.Tracked(root, lifetime, core)
    let handle = node!.raiseEvents(of: Ping.self, from: central, executeOn: .listenerThread)
    for number in 0..<50 { #expect(Ping(number: number).queue(on: central) == 1) }
    #expect(log.entries(atLeast: 50) == Array(0..<50))
    node = nil
    #expect(lifetime.waitUntilNone())
    Ping(number: 50).queue(on: central)
    #expect(waitUntil { !handle.isActive && central.listener.listenerCount == 0 })
    #expect(log.entries.count == 50)
  }
}
