// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("Determinism: what is refused")
struct DeterminismTrapTests {
  struct Number: Eventable { var value = 0 }
  actor Keeper {
    func listen(on world: EventCentral) { Number.addListener(nil, on: world) { _ in } }
  }

  @Test("D12: a run on a central with threads")
  func ordinary() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let world = EventCentral()
      world.run()
    }
    expectMessage(result, "make it by EventCentral(deterministic: seed)")
  }

  actor Resident {
    let thread: EventThread
    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }
    init(on thread: EventThread) { self.thread = thread }
    func drain() async { await thread.drain() }
  }

  @Test("D12: a run, a drain and a join trap inside a handler, and a drain in a job of an actor on one of the threads")
  func nested() async {
    let running = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let world = EventCentral(deterministic: 1)
      let thread = EventThread(on: world)
      thread.addEventCallback { (_: Number) in world.run() }
      Number().queue(on: world)
      world.run()
    }
    expectMessage(running, "was called inside one of its handlers, or inside a job")
    let draining = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let world = EventCentral(deterministic: 1)
      let (thread, other) = (EventThread(on: world), EventThread(on: world))
      thread.addEventCallback { (_: Number) in other.drain() }
      Number().queue(on: world)
      world.run()
    }
    expectMessage(draining, "was called inside one of its handlers, or inside a job")
    let onItsActor = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let world = EventCentral(deterministic: 1)
      let resident = Resident(on: EventThread(on: world))
      Task { await resident.drain() }
      #expect(await yieldUntil { world.run() > 0 })
    }
    expectMessage(onItsActor, "or inside a job of an actor that runs on one of its threads, where")
    let joining = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let world = EventCentral(deterministic: 1)
      await offThePool { EventThread(on: world).join() }
    }
    expectMessage(joining, "nothing is left to run in this deterministic central")
  }

  @Test("D12: an actor, and the main queue elsewhere than on the main thread")
  func actors() async {
    let actor = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      await Keeper().listen(on: EventCentral(deterministic: 1))
    }
    expectMessage(actor, "is an actor, which runs where its executor does")
    let main = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let world = EventCentral(deterministic: 1)
      Number.addListener(nil, { _ in }, executeOn: .main, on: world)
      Number().queue(on: world)
      await offThePool { world.run() }
    }
    expectMessage(main, "call it on the main thread")
  }

  @Test("D12: a trace inside of a trace")
  func traces() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let world = EventCentral(deterministic: 1)
      _ = world.trace { _ = world.trace {} }
    }
    expectMessage(result, "A central has one trace at a time")
  }
}
