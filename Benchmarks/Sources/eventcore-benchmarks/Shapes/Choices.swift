// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import RawCore

// Alternatives that the core decided between, kept so that the decision can be checked again. Runs only
// with `--shape choices`; see "Choices" in Benchmarks/README.md.
//
//     producer: node from its pool ──► inbox ──► spinning consumer: add up, hand back in chains

/// The candidates of this shape.
func choiceCandidates(_ scale: Scale) -> [Candidate] {
  func candidate(_ subject: Subject, _ measure: @escaping (UInt64) -> UInt64) -> Candidate {
    Candidate(shape: .choices, subject: subject, payloadBytes: 24) {
      Choice(events: scale.events(.rawC), measure)
    }
  }
  let core = [
    candidate(.coreInbox, evb_choice_core_inbox),
    candidate(.coreInboxAlone, evb_choice_core_inbox_alone),
  ]
  guard evb_has_wfcq() else { return core }
  return core + [
    candidate(.calledWfcq, evb_choice_called_wfcq),
    candidate(.calledWfcqAlone, evb_choice_called_wfcq_alone),
  ]
}

private final class Choice: Trial {
  private let events: Int
  private let measure: (UInt64) -> UInt64

  init(events: Int, _ measure: @escaping (UInt64) -> UInt64) {
    self.events = events
    self.measure = measure
  }

  func run() -> Double {
    Double(measure(UInt64(events))) / Double(events)
  }

  func end() {}
}
