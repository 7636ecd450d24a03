// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// What programs that come from EventDrivenSwift write in Swift 6 mode, outside of EventCore's modules.

import EventDrivenSwift
import Testing

@Suite("The module EventDrivenSwift, in Swift 6 mode")
struct EventDrivenModule {
  struct Reading: Eventable { var celsius = 0 }

  final class PlainListener: EventListener, @unchecked Sendable {
    // Only the main thread uses it.
    var celsius = 0
  }

  final class NamedListener: EventListener, @unchecked Sendable {
    let place: String

    init(place: String, on central: EventCentral) {
      self.place = place
      super.init(on: central, name: place)
    }
  }

  @Test("a subclass of EventListener has stored properties of its own, and gets what is sent to it alone")
  func subclasses() async {
    let central = EventCentral()
    let listeners = [NamedListener(place: "cellar", on: central), PlainListener(on: central), PlainListener()]
    for listener in listeners {
      Reading.addListener(nil, executeOn: .listenerThread, on: listener) { _ in }
      #expect(listener.queueEvent(Reading()))
      #expect(await listener.drain())
      #expect(listener.statistics.delivered == 1)
    }
    #expect(listeners[0].receiverName == "cellar")
  }

  @MainActor
  final class Label {
    private var celsius = 0
    nonisolated init() {}

    func onReading(_ event: Reading, _ priority: EventPriority, _ dispatchTime: DispatchTime) {
      celsius = event.celsius
    }

    nonisolated func listen(to central: EventCentral, _ thread: EventThread) -> [any EventListenerHandling] {
      [
        central.addListener(self, onReading, forEventType: Reading.self),
        thread.addListener(self, onReading, forEventType: Reading.self),
        central.listener.addListener(
          self, { @MainActor @Sendable (event: Reading, _, _) in self.celsius = event.celsius }),
        EventCentral.addListener(self, onReading, forEventType: Reading.self),
      ]
    }
  }

  @Test("a method of the MainActor is registered from anywhere, and called on the main queue")
  func mainActorMethods() async {
    let thread = EventThread(on: EventCentral())
    let handles = Label().listen(to: thread.central, thread)
    #expect(handles.map { "\($0.executesOn)" } == Array(repeating: "mainQueue", count: 4))
    for handle in handles { await handle.removed() }
    thread.cancel()
  }

  @Test("the closure of a wrapped method has its name inside of EventThread, too")
  func nestedName() {
    let callback: EventThread.EventMethodTypedEventCallback<EventThread, Reading> = { thread, event, priority, time in
      thread.queueEvent(event)
    }
    let thread = EventThread(on: EventCentral())
    callback(thread, Reading(), .normal, .now())
    thread.cancel()
  }
}
