// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

// One-to-one in a central that is observed, next to one that is not (`plain`).
//
//     producer ──► consumer: handler
//         └──────► counts ◄──────┘

/// The candidates of both shapes.
func observedCandidates(_ scale: Scale) -> [Candidate] {
  func candidate(
    _ shape: Shape, _ subject: Subject, _ core: EventCentral.Core = .default, 
    _ observe: @escaping (EventCentral) -> (any Sendable)?
  ) -> Candidate {
    Candidate(shape: shape, subject: subject, payloadBytes: MemoryLayout<Event24>.size) {
      Throughput(shape.rawValue, Load(events: scale.events(.lockFree))) {
        EventCoreChannel<Event24>(core, $0, observedBy: observe)
      }
    }
  }
  return [
    candidate(.statistics, .plain) { _ in nil },
    candidate(.statistics, .counting) { $0.observe(times: .none) },
    candidate(.statistics, .sampling64) { $0.observe() },
    candidate(.statistics, .timing) { $0.observe(times: .all) },
    candidate(.tracing, .plain) { _ in nil },
    candidate(.tracing, .tracing100) { $0.startTracing(.every(100), limit: 100_000_000) },
    // Room for two slices of each event of at most ten runs: to lose one takes less time.
    candidate(.tracing, .tracing) { $0.startTracing(limit: 20 * scale.events(.lockFree)) },
  ]
}
