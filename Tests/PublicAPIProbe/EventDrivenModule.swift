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
}
