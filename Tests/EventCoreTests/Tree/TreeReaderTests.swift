// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("D5: a raise waits for nobody who looks at trees")
struct TreeReaderTests {
  // looker                       raiser
  //                              raise: its thread is warm
  // holds all trees still
  //                              raise, also inside a handler
  //                              done
  // lets go
  @Test(
    "on the lock-free core neither a raise nor a look at the depth takes a lock",
    arguments: cores.filter { $0 == .lockFree })
  func noLock(core: EventCentral.Core) {
    let root = EventNode(core: core)
    let nodes = (0..<100).map { _ in EventNode(parent: root) }
    let log = Log<Int>()
    for (number, node) in nodes.enumerated() {
      node.addHandler([.onCapture, .onRaise, .onPropagate]) { (_: Note) in log.append(number) }
    }
    nodes[99].addHandler { [unowned node = nodes[0]] (_: Note) in node.raise(event: Other()) }
    nodes[50].addHandler([.onPropagate, .consumeEvent]) { (_: Other) in log.append(-50) }
    let (warm, held, raised) = (Gate(), Gate(), Gate())
    runThread {
      nodes[3].raise(event: Note())
      warm.open()
      held.pass()
      nodes[3].raise(event: Note())
      nodes[4].propagate(event: Note())
      log.append(nodes[4].depth)
      raised.open()
    }
    warm.pass()
    let expected = [3, 3] + Array(0..<100) + [-50]
    #expect(log.take() == expected)
    var isDone = false
    core.parts.trees.withTrees { _ in
      held.open()
      isDone = raised.pass(within: 60)
    }
    #expect(isDone)
    // A raise that had to wait goes on now.
    if !isDone { raised.pass() }
    #expect(log.take() == expected + [4, 1])
  }
}
