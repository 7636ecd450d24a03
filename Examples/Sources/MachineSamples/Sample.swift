// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// One sample of one source. A recording stores samples; each is dispatched as an event of its own type.
package enum Sample: Equatable, Sendable {
  case cpu(CPUTimeEvent)
  case memory(MemoryEvent)
  case interrupts(InterruptEvent)
  case switches(ContextSwitchEvent)
  case network(NetworkEvent)
  case disk(DiskEvent)

  /// Nanoseconds since the sampling began.
  package var time: UInt64 {
    switch self {
    case .cpu(let event): event.time
    case .memory(let event): event.time
    case .interrupts(let event): event.time
    case .switches(let event): event.time
    case .network(let event): event.time
    case .disk(let event): event.time
    }
  }

  /// Queues the event, with a priority that depends on how fast its source changes.
  ///
  /// - Returns: How many receivers accepted it.
  @discardableResult
  package func dispatch(on central: EventCentral) -> Int {
    switch self {
    // Thousands a second: the first sign of any activity.
    case .interrupts(let event): event.queue(priority: .high, on: central)
    case .switches(let event): event.queue(priority: .high, on: central)
    case .cpu(let event): event.queue(priority: .normal, on: central)
    case .network(let event): event.queue(priority: .normal, on: central)
    case .disk(let event): event.queue(priority: .normal, on: central)
    // Changes slowly, so it may wait behind everything else.
    case .memory(let event): event.queue(priority: .low, on: central)
    }
  }
}
