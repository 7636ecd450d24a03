// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

/// A place in which a handler of a tree runs.
enum TreePlace: CaseIterable, CustomTestStringConvertible {
  case listenerThread, task, serialQueue, concurrentQueue, mainQueue, mainActor, actor, eventThread
  case uiEventThread

  var testDescription: String { "\(self)" }

  actor Home {}

  /// Adds a handler for pings at this place. Returns the place, too, if somebody has to hold it.
  func addHandler(
    _ mode: CaptureMode, to node: EventNode, of central: EventCentral,
    _ body: @escaping @Sendable (Ping) -> Void
  ) -> (handle: EventNodeHandle, place: AnyObject?) {
    func on(_ executeOn: ExecuteEventOn) -> (EventNodeHandle, AnyObject?) {
      (node.addHandler(mode, executeOn: executeOn, of: central, isolation: nil, body), nil)
    }
    switch self {
    case .listenerThread: return on(ListenerPlace.listenerThread.executeOn)
    case .task: return on(ListenerPlace.task.executeOn)
    case .serialQueue: return on(ListenerPlace.serialQueue.executeOn)
    case .concurrentQueue: return on(ListenerPlace.concurrentQueue.executeOn)
    case .mainQueue: return on(ListenerPlace.mainQueue.executeOn)
    case .mainActor:
      let handle = node.addHandler(mode, executeOn: MainActor.shared, of: central) {
        (event: Ping) in
        MainActor.preconditionIsolated()
        body(event)
      }
      return (handle, nil)
    case .actor:
      let home = Home()
      let handle = node.addHandler(mode, executeOn: home, of: central) {
        (home: isolated Home, event: Ping) in
        home.preconditionIsolated()
        body(event)
      }
      return (handle, home)
    case .eventThread:
      let thread = EventThread(on: central)
      return (node.addHandler(mode, executeOn: thread, body), thread)
    case .uiEventThread:
      let thread = UIEventThread(on: central)
      let handle = node.addHandler(mode, executeOn: thread) { (event: Ping) in
        MainActor.preconditionIsolated()
        body(event)
      }
      return (handle, thread)
    }
  }

  /// How the handle names this place.
  var name: String {
    switch self {
    case .mainQueue, .mainActor, .uiEventThread: "mainQueue"
    case .serialQueue, .concurrentQueue: "dispatchQueue"
    default: "\(self)"
    }
  }
}

@Suite("Trees: consuming by handlers that run elsewhere")
struct TreePlaceTests {
  // raiser                               place
  // raise: consumed, nobody else called
  //                                      in the handler, held
  // let go                               the handler returns
  @Test(
    "an event is consumed when it is handed over, wherever the handler runs", arguments: cores,
    TreePlace.allCases)
  func consuming(core: EventCentral.Core, place: TreePlace) async {
    await offThePool {
      let central = EventCentral(core: core)
      let root = EventNode(core: core)
      let node = EventNode(parent: root)
      let (leave, log) = (Gate(), Log<Int>())
      let (handle, object) = place.addHandler([.onRaise, .consumeEvent], to: node, of: central) {
        event in
        leave.pass()
        log.append(event.number)
      }
      #expect("\(handle.executesOn!)".hasPrefix(place.name))
      node.addHandler(.onRaise) { (event: Ping) in log.append(-event.number) }
      root.addHandler([.onRaise, .onPropagate]) { (event: Ping) in log.append(-event.number) }
      for number in 1...3 {
        #expect(
          node.raise(event: Ping(number: number))
            == EventOutcome(handlerCount: 1, consumer: node.id))
      }
      #expect(log.entries.isEmpty)
      for _ in 0..<3 { leave.open() }
      #expect(log.entries(atLeast: 3) == [1, 2, 3])
      // Once it is removed, the handler consumes nothing.
      #expect(handle.removeAndWait())
      #expect(!node.raise(event: Ping(number: 4)).isConsumed)
      #expect(log.take() == [1, 2, 3, -4, -4, -4])
      withExtendedLifetime(object) {}
    }
  }

  @Test("D9: a place that has ended takes nothing and consumes nothing", arguments: cores)
  func endedPlaces(core: EventCentral.Core) async {
    await offThePool {
      // An actor ends with its last reference (TreeActorEndTests).
      for place in TreePlace.allCases where place != .actor {
        let node = EventNode(core: core)
        var central: EventCentral? = EventCentral(core: core)
        let log = Log<Int>()
        let (handle, object) = place.addHandler([.onRaise, .consumeEvent], to: node, of: central!) {
          log.append($0.number)
        }
        node.addHandler(.onRaise) { (event: Ping) in log.append(-event.number) }
        if let thread = object as? EventThread {
          thread.cancel()
          thread.join()
        }
        // The places of a central end with it.
        central = nil
        #expect(!node.raise(event: Ping(number: 1)).isConsumed, "\(place)")
        #expect(!handle.isActive, "\(place)")
        #expect(log.entries == [-1])
      }
    }
  }
}
