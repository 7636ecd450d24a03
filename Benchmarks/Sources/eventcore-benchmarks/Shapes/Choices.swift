// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import RawCore

// Alternatives that the core decided between, kept so that the decision can be checked again. Runs
// only with `--shape choices`; see Documentation/Choices.md.
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
  func order(
    _ subject: Subject, isWheel: Bool, _ figure: @escaping (evb_timer_order) -> Double
  ) -> Candidate {
    Candidate(shape: .choices, subject: subject, payloadBytes: 0) {
      TimerOrder { figure(evb_choice_timer_order(isWheel)) }
    }
  }
  let orders = [
    order(.timerHeapInsert, isWheel: false) { $0.insert },
    order(.timerWheelInsert, isWheel: true) { $0.insert },
    order(.timerHeapCancel, isWheel: false) { $0.cancel },
    order(.timerWheelCancel, isWheel: true) { $0.cancel },
    order(.timerHeapFire, isWheel: false) { $0.fire },
    order(.timerWheelFire, isWheel: true) { $0.fire },
    order(.timerHeapLongest, isWheel: false) { $0.longest },
    order(.timerWheelLongest, isWheel: true) { $0.longest },
  ]
  guard evb_has_wfcq() else { return core + orders }
  return core + orders + [
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

/// One figure of an order of timers. Nothing crosses threads, and an "event" is one step.
private final class TimerOrder: Trial {
  private let measure: () -> Double

  init(_ measure: @escaping () -> Double) {
    self.measure = measure
  }

  func run() -> Double { measure() }

  func end() {}
}
