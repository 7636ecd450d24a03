// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import EventDrivenSwift
import Testing

@Suite("Event methods of a thread, removed and registered again")
struct WrappedListenersTests {
  struct Go: Eventable { var number = 0 }

  final class Engine: Sendable {}

  class Worker: EventThread, @unchecked Sendable {
    // Constants of Sendable types, and the property's wrapper, whose handle has a mutex.
    unowned let engine: Engine
    let log = Log<Int>()

    @EventMethod<Worker, Go>
    var onGo = { (self, event: Go, priority: EventPriority, dispatchTime: DispatchTime) in
      self.log.append(event.number)
    }

    func registerAgain() { _onGo.prepare(owner: self) }

    init(_ engine: Engine, on central: EventCentral) {
      self.engine = engine
      super.init(on: central)
    }

    @available(*, unavailable) required init() {
      fatalError("A Worker refers to an engine, and none was given: call init(_:on:).")
    }
  }

  final class Fast: Worker, @unchecked Sendable {
    // It stores nothing but the property's wrapper, whose handle has a mutex.
    @EventMethod<Fast, Go>
    var onGoFast = { (self, event: Go, priority: EventPriority, dispatchTime: DispatchTime) in
      self.log.append(-event.number)
    }
  }

  @Test(
    "D6: handlers are removed, those of base classes too, when an object that the thread refers to is gone",
    arguments: cores)
  func unownedIsGone(core: EventCentral.Core) {
    let worker = Fast(Engine(), on: EventCentral(core: core))
    worker.queueEvent(Go(number: 1))
    worker.unregisterWrappedListeners()
    worker.queueEvent(Go(number: 2))
    #expect(worker.drain())
    #expect(!worker.log.entries.contains(2) && !worker.log.entries.contains(-2))
  }

  @Test("D6: a handler that was removed is registered again by prepare, and is called once an event", arguments: cores)
  func again(core: EventCentral.Core) {
    let engine = Engine()
    withExtendedLifetime(engine) {
      let worker = Fast(engine, on: EventCentral(core: core))
      worker.unregisterWrappedListeners()
      for _ in 0..<2 { worker.registerAgain() }
      worker.queueEvent(Go(number: 3))
      worker.queueEvent(Go(number: 4))
      #expect(worker.drain())
      #expect(worker.log.entries == [3, 4])
    }
  }
}
