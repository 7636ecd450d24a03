// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

/// Each mistake is made in a process of its own.
@Suite("D12: mistakes with trees trap")
struct TreeTrapTests {
  @Test("a mode without a phase")
  func modeWithoutPhase() async {
    let adding = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      EventNode().addHandler(.consumeEvent) { (_: Note) in }
    }
    expectMessage(adding, "the mode [consumeEvent] names none")
    let removing = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      EventNode().removeHandlers(for: Note.self, with: [])
    }
    expectMessage(removing, "the mode [] names none")
  }

  @Test("a cycle")
  func cycle() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let root = EventNode(name: "root")
      let leaf = EventNode(parent: EventNode(parent: root, name: "middle"), name: "leaf")
      root.parent = leaf
    }
    expectMessage(
      result,
      #"and "root" was to be attached to "root/middle/leaf", which is the same node or lies below"#)
  }

  @Test("nodes of two cores", .enabled(if: cores.count > 1))
  func twoCores() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      EventNode(core: .locking).attach(to: EventNode(name: "other"))
    }
    expectMessage(result, "The nodes of a tree are on one core")
  }

  @Test("a method of an object that is not Sendable, on another thread than the one that added it")
  func ownerElsewhere() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      final class Model { func onNote(_ note: Note) {} }
      let (node, model, thread) = (EventNode(), Model(), EventThread())
      node.addHandler(owner: model, Model.onNote)
      node.propagate(event: Note())
      thread.addEventCallback { (_: Note) in node.propagate(event: Note()) }
      Note().queue()
      await thread.drain()
      withExtendedLifetime(model) {}
    }
    expectMessage(result, "A handler of Model, which is not Sendable, belongs to the thread on which it was added")
  }

  @Test("a method of an object that is not Sendable, on a later thread than the one that added it")
  func ownerOfAnEndedThread() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      final class Model { func onNote(_ note: Note) {} }
      struct Kept: @unchecked Sendable {
        // Nobody uses it elsewhere: it keeps the object alive.
        let model: Model
        let thread: UInt
      }
      let (node, added, raised) = (EventNode(), Log<Kept>(), Log<Bool>())
      await offThePool {
        let model = Model()
        node.addHandler(owner: model, Model.onNote)
        added.append(Kept(model: model, thread: currentThread()))
      }
      // Systems give the number of a thread that has ended to a later one; if not this one, any will do.
      let attempts = 10_000
      for attempt in 1...attempts where raised.entries.isEmpty {
        await offThePool {
          guard currentThread() == added.entries[0].thread || attempt == attempts else { return }
          raised.append(true)
          node.propagate(event: Note())
        }
      }
    }
    expectMessage(result, "A handler of Model, which is not Sendable, belongs to the thread on which it was added")
  }

  @Test("a method of an object that is not Sendable, added on the MainActor, on a thread")
  func ownerOffMainActor() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      final class Model { func onNote(_ note: Note) {} }
      struct Kept: @unchecked Sendable {
        // Nobody uses it elsewhere: it keeps the object alive.
        let model: Model
      }
      let (node, thread) = (EventNode(), EventThread())
      let model = await MainActor.run {
        nonisolated(unsafe) let model = Model()
        node.addHandler(owner: model, Model.onNote)
        return Kept(model: model)
      }
      thread.addEventCallback { (_: Note) in node.propagate(event: Note()) }
      Note().queue()
      await thread.drain()
      withExtendedLifetime(model) {}
    }
    expectMessage(result, "A handler of Model, which is not Sendable, belongs to the actor on which it was added")
  }

  @Test("a method of an object that is not Sendable, in the deinit of the actor that added it")
  func ownerInDeinitOfActor() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      final class Model { func onNote(_ note: Note) {} }
      actor Owner {
        private let (node, model) = (EventNode(), Model())
        func add() { node.addHandler(owner: model, Model.onNote) }
        deinit { node.propagate(event: Note()) }
      }
      var owner: Owner? = Owner()
      await owner?.add()
      owner = nil
      // The actor may end on another thread.
      await offThePool { Gate().pass() }
    }
    expectMessage(result, "the event was raised in the deinit of that actor, or after it: raise it before")
  }

  @Test("removeAndWait inside the handler itself, and in an event that it raises")
  func waitingForOneself() async {
    let lockFree = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      removeInside(EventNode())
    }
    expectMessage(lockFree, "removeAndWait() waits until its handler is not running")
    let locking = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      removeInside(EventNode(core: .locking))
    }
    expectMessage(locking, "removeAndWait() waits until its handler is not running")
  }

  @Test("removeAndWait inside a handler that runs elsewhere, in each place", arguments: cores)
  func waitingElsewhere(core: EventCentral.Core) async {
    for place in TreePlace.allCases {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) { [core = core.rawValue as String, place = "\(place)" as String] in
        let core = EventCentral.Core(rawValue: core)!
        let (node, central) = (EventNode(core: core), EventCentral(core: core))
        let (handles, added, done) = (Log<EventNodeHandle>(), Gate(), Gate())
        let (handle, object) = TreePlace.allCases.first { "\($0)" == place }!
          .addHandler(.onRaise, to: node, of: central) { _ in
            added.pass()
            handles.entries[0].removeAndWait()
            done.open()
          }
        handles.append(handle)
        added.open()
        node.raise(event: Ping())
        await offThePool { done.pass() }
        withExtendedLifetime(object) {}
      }
      expectMessage(result, "removeAndWait() waits until its handler is not running")
    }
  }
}

private func removeInside(_ node: EventNode) {
  let handles = Log<EventNodeHandle>()
  handles.append(node.addHandler { [unowned node] (_: Note) in node.raise(event: Other()) })
  node.addHandler { (_: Other) in handles.entries[0].removeAndWait() }
  node.raise(event: Note())
}
