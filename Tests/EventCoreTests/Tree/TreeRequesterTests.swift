// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("Trees: handlers that run where they were added")
struct TreeRequesterTests {
  actor Home {
    /// Adds a handler that runs here.
    func listen(_ node: EventNode, _ central: EventCentral, _ log: Log<Int>) -> EventNodeHandle {
      node.addHandler(.onRaise, executeOn: .requesterThread, of: central) { (event: Ping) in
        self.preconditionIsolated()
        log.append(event.number)
      }
    }
  }

  /// Raises twenty pings on this thread and checks that they come in their order.
  private func expectPings(_ node: EventNode, _ log: Log<Int>) {
    for number in 0..<20 { node.raise(event: Ping(number: number)) }
    #expect(log.entries(atLeast: 20) == Array(0..<20))
  }

  @Test(
    ".requesterThread on an actor is that actor, and on the MainActor the main queue",
    arguments: cores)
  func actors(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let (home, log) = (Home(), Log<Int>())
    let node = EventNode(core: core)
    #expect("\(await home.listen(node, central, log).executesOn!)" == "actor")
    await offThePool { expectPings(node, log) }
    withExtendedLifetime(home) {}

    let (onMain, mainNode) = (Log<Int>(), EventNode(core: core))
    let handle = await MainActor.run {
      mainNode.addHandler(.onRaise, executeOn: .requesterThread, of: central) { (event: Ping) in
        MainActor.preconditionIsolated()
        onMain.append(event.number)
      }
    }
    #expect("\(handle.executesOn!)" == "mainQueue")
    await offThePool { expectPings(mainNode, onMain) }
  }

  @Test(".requesterThread in a handler of an event thread is that thread", arguments: cores)
  func eventThread(core: EventCentral.Core) async {
    await offThePool {
      let central = EventCentral(core: core)
      let thread = EventThread(on: central)
      let node = EventNode(core: core)
      let (handles, log) = (Log<EventNodeHandle>(), Log<Int>())
      let (own, threads) = (Log<UInt>(), Log<UInt>())
      thread.addEventCallback { (_: Pong) in
        own.append(currentThread())
        handles.append(
          node.addHandler(.onRaise, executeOn: .requesterThread, of: central, isolation: nil) {
            (event: Ping) in
            threads.append(currentThread())
            log.append(event.number)
          })
      }
      thread.queueEvent(Pong())
      #expect("\(handles.entries(atLeast: 1)[0].executesOn!)" == "eventThread")
      expectPings(node, log)
      #expect(threads.entries == Array(repeating: own.entries[0], count: 20))
    }
  }

  @Test(
    ".requesterThread in a task is a task, and on any other thread the listener thread",
    arguments: cores)
  func elsewhere(core: EventCentral.Core) async {
    let central = EventCentral(core: core)
    let (taskNode, inTask) = (EventNode(core: core), Log<Int>())
    let handle = taskNode.addHandler(.onRaise, executeOn: .requesterThread, of: central) {
      (event: Ping) in
      inTask.append(event.number)
    }
    #expect("\(handle.executesOn!)" == "task")
    await offThePool {
      expectPings(taskNode, inTask)
      let (node, log, threads) = (EventNode(core: core), Log<Int>(), Log<UInt>())
      let handle = node.addHandler(
        .onRaise, executeOn: .requesterThread, of: central, isolation: nil
      ) {
        (event: Ping) in
        threads.append(currentThread())
        log.append(event.number)
      }
      #expect("\(handle.executesOn!)" == "listenerThread")
      expectPings(node, log)
      #expect(!threads.entries.contains(currentThread()))
    }
  }
}
