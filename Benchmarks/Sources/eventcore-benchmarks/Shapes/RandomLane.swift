// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// Each event goes to a random lane, so that the consumer changes lanes as often as it ever has to.
//
//     producer ──► ten lanes ──► consumer: handler
//                  (5 stacks, 5 queues)

/// The candidates of this shape for one type of event: the subjects that have lanes.
func laneCandidates<E: NumberEvent>(_ type: E.Type, _ scale: Scale) -> [Candidate] {
  func candidate(_ subject: Subject, _ make: @escaping (Load) -> any Trial) -> Candidate {
    Candidate(shape: .randomLane, subject: subject, payloadBytes: MemoryLayout<E>.size) {
      make(Load(events: scale.events(subject)))
    }
  }
  return [
    candidate(.lockFree) { trial($0) { EventCoreChannel<E>(.lockFree, $0) } },
    candidate(.locking) { trial($0) { EventCoreChannel<E>(.locking, $0) } },
    candidate(.plain) {
      Throughput(Shape.randomLane.rawValue, $0) { EventCoreChannel<E>(.lockFree, $0) }
    },
    candidate(.rawC) { RawTrial($0, payloadBytes: MemoryLayout<E>.size, lanes: true) },
    candidate(.mutexSwap) { trial($0) { MutexSwapChannel<E>($0, lanes: 10) } },
  ]
}

private func trial<C: LaneChannel>(
  _ load: Load, _ make: ([[C.Handler]]) -> C
) -> any Trial {
  Throughput(Shape.randomLane.rawValue, load, make) { channel, count, supply in
    channel.produceLanes(count, supply)
  }
}
