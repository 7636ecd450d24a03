// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// Sixty-four events in one call.
//
//     producer: [event × 64] ──► consumer: handler, 64 times

/// The candidates of this shape for one type of event: the subjects that take several events at
/// once.
func batchCandidates<E: NumberEvent>(_ type: E.Type, _ scale: Scale) -> [Candidate] {
  func candidate(_ subject: Subject, _ make: @escaping (Load) -> any Trial) -> Candidate {
    Candidate(shape: .batch64, subject: subject, payloadBytes: MemoryLayout<E>.size) {
      make(Load(events: scale.events(subject)))
    }
  }
  return [
    candidate(.lockFree) { trial($0) { EventCoreChannel<E>(.lockFree, $0) } },
    candidate(.locking) { trial($0) { EventCoreChannel<E>(.locking, $0) } },
    candidate(.plain) {
      Throughput(Shape.batch64.rawValue, $0) { EventCoreChannel<E>(.lockFree, $0) }
    },
    candidate(.rawC) { RawTrial($0, payloadBytes: MemoryLayout<E>.size, batch: 64) },
    candidate(.mutexSwap) { trial($0) { MutexSwapChannel<E>($0) } },
    candidate(.dispatchQueue) { trial($0) { DispatchQueueChannel<E>($0) } },
    candidate(.nio) { trial($0) { NIOChannel<E>($0) } },
  ]
}

private func trial<C: BatchChannel>(
  _ load: Load, _ make: ([[C.Handler]]) -> C
) -> any Trial {
  Throughput(Shape.batch64.rawValue, load, make) { channel, count, supply in
    channel.produceBatches(count, supply)
  }
}
