// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// Events that are queued when a number of the field's steps has passed, so that a pause stops the timers, too;
/// `event.scheduleQueue(after:on:)` follows the central's clock, which goes on in a pause.
struct Timers {
  private var now = 0
  /// By step; those of one step in the order in which they were set.
  private var waiting: [(step: Int, queue: () -> Void)] = []

  mutating func queue<E: Eventable>(_ event: E, afterSteps steps: Int, on world: EventCentral) {
    let index = waiting.firstIndex { $0.step > now + steps } ?? waiting.count
    waiting.insert((now + steps, { event.queue(on: world) }), at: index)
  }

  /// Begins a step, and queues the events that have become due.
  mutating func advance() {
    now += 1
    while let first = waiting.first, first.step <= now { waiting.removeFirst().queue() }
  }
}
