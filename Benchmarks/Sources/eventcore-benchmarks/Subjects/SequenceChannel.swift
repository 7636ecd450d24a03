// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// A sequence of events, and a task that iterates over it, for each consumer.
final class SequenceChannel<Event: BenchmarkEvent>: Channel {
  private let central: EventCentral
  private let sequences: [EventSequence<Event>]

  init(_ core: EventCentral.Core, _ consumers: [[Handler]]) {
    let central = EventCentral(core: core)
    self.central = central
    sequences = consumers.map { handlers in
      let sequence = Event.events(on: central)
      Task.detached {
        for await event in sequence {
          for handler in handlers {
            handler(event)
          }
        }
      }
      return sequence
    }
  }

  @inline(__always)
  func send(_ event: consuming Event) {
    event.queue(on: central)
  }

  func end() {
    for sequence in sequences {
      sequence.end()
    }
  }
}
