// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventDrivenSwift
import EventCoreTestSupport
import Testing

@Suite("Observers of an event thread")
struct EventThreadObserverTests {
  struct Reading: Eventable { var celsius: Int }

  final class Processor: EventThread, @unchecked Sendable {
    // It adds no state.
    override func registerEventListeners() {
      addEventCallback(Processor.onReading)
    }

    func onReading(_ event: Reading) {
      withObservers { (observer: any Listener) in observer.hear("\(event.celsius)") }
      withKeyedObservers(key: event.celsius) { (key, observer: any Watcher) in
        observer.watch("key \(key)")
      }
    }
  }

  @Test("D2: observers are called by the thread's handlers, in the order of the events", arguments: cores)
  func toldByHandlers(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let processor = Processor(on: central)
    let log = Log<String>()
    let (ear, eye) = (Ear("ear", log), Eye("eye", log))
    processor.addObserver(ear, executeOn: .notifyingThread)
    processor.addKeyedObserver(key: 2, eye, executeOn: .notifyingThread)
    for celsius in 1...3 { Reading(celsius: celsius).queue(on: central) }
    #expect(processor.drain())
    #expect(log.entries == ["ear 1", "ear 2", "eye key 2", "ear 3"])
  }

  @Test("D9: a thread and its observers do not keep one another alive", arguments: cores)
  func lifetimes(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let (log, lifetime) = (Log<String>(), Lifetime())
    let held: HeldThread
    weak var gone: Processor?
    do {
      let processor = Processor(on: central)
      gone = processor
      held = HeldThread(processor)
      do {
        // This observer goes before the handler notifies.
        let before = Ear("before", log, lifetime.token())
        processor.addObserver(before, executeOn: .notifyingThread)
      }
      #expect(lifetime.alive == 0)
      let after = Ear("after", log, lifetime.token())
      processor.addObserver(after, executeOn: .notifyingThread)
      Reading(celsius: 1).queue(on: central)
      held.letGo()
      #expect(log.entries(atLeast: 1) == ["after 1"])
    }
    #expect(waitUntil { gone == nil })
    #expect(lifetime.alive == 0)
  }

  @Test(
    "D7: an observer that a handler calls may end the thread, remove itself and dispatch",
    arguments: cores)
  func reentry(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let processor = Processor(on: central)
    let log = Log<String>()
    var ear: Ear!
    ear = Ear("ear", log) { [unowned processor] in
      processor.removeObserver(ear)
      Reading(celsius: 2).queue(on: central)
      processor.cancel()
    }
    processor.addObserver(ear, executeOn: .notifyingThread)
    Reading(celsius: 1).queue(on: central)
    processor.join()
    #expect(log.entries == ["ear 1"])
    ear = nil
  }
}
