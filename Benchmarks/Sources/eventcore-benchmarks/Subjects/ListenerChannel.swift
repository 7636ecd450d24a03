// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// Listeners on the listener thread of a central, one for each handler.
final class ListenerChannel<Event: BenchmarkEvent>: Channel {
  private final class Requester: Sendable {}

  private let central: EventCentral
  // The listeners live as long as this object.
  private let requester = Requester()

  init(_ core: EventCentral.Core, _ handlers: [Handler]) {
    central = EventCentral(core: core)
    for handler in handlers {
      Event.addListener(requester, handler.call, executeOn: .listenerThread, on: central)
    }
  }

  @inline(__always)
  func send(_ event: consuming Event) {
    event.queue(on: central)
  }

  func end() {
    central.listener.end()
  }
}
