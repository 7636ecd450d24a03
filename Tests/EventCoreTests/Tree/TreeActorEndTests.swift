// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("Trees: handlers of actors that end")
struct TreeActorEndTests {
  @Test(
    "D9: a handler on an actor ends with the actor, and consumes nothing then", arguments: cores)
  func endedActor(core: EventCentral.Core) async {
    await offThePool {
      let (node, central) = (EventNode(core: core), EventCentral(core: core))
      let log = Log<Int>()
      var (handle, actor) = TreePlace.actor.addHandler(
        [.onRaise, .consumeEvent], to: node, of: central
      ) { log.append($0.number) }
      node.addHandler(.onRaise) { (event: Ping) in log.append(-event.number) }
      #expect(node.raise(event: Ping(number: 1)).isConsumed)
      #expect(log.entries(atLeast: 1) == [1])
      // The job that ran the handler may hold the actor a moment longer.
      let ended = WeakObject(actor)
      actor = nil
      #expect(waitUntil { ended.object == nil })
      #expect(!node.raise(event: Ping(number: 2)).isConsumed)
      #expect(!handle.isActive)
      #expect(log.entries == [1, -2])
    }
  }
}
