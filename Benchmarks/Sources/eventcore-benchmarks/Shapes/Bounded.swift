// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

// One-to-one through a bounded mailbox, and through one without a bound beside it. The policy is to block, so that
// every event is handled; a producer that is faster than the consumer waits now and then. With `drop-oldest` the
// capacity is one that is never reached, since the check wants every event: the figure is that of its lanes.
//
//     producer ──► place? ──► consumer: handler

/// The candidates of this shape.
func boundedCandidates(_ scale: Scale) -> [Candidate] {
  func candidate(
    _ subject: Subject, _ core: EventCentral.Core, _ mailbox: EventMailboxCapacity
  ) -> Candidate {
    Candidate(shape: .bounded, subject: subject, payloadBytes: MemoryLayout<Event24>.size) {
      Throughput(Shape.bounded.rawValue, Load(events: scale.events(subject))) {
        EventCoreChannel<Event24>(core, $0, mailbox: mailbox)
      }
    }
  }
  let blocking = EventMailboxCapacity.bounded(65_536, whenFull: .block(upTo: .seconds(60)))
  return [
    candidate(.lockFree, .lockFree, blocking),
    candidate(.plain, .lockFree, .unbounded),
    candidate(.dropOldest, .lockFree, .bounded(.max / 4, whenFull: .dropOldest)),
    candidate(.locking, .locking, blocking),
  ]
}
