// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// One-to-one once more, with every allocation of the process counted instead of the time.
//
//     warm up ──► arm the counter ──► 131,072 events ──► handled ──► read the counter

/// The candidates of this shape, pools among them for one type of event.
func allocationCandidates<E: BenchmarkEvent>(_ type: E.Type) -> [Candidate] {
  let load = Load(events: 1 << 17)
  func pool(_ subject: Subject, isShared: Bool) -> Candidate {
    Candidate(shape: .allocations, subject: subject, payloadBytes: MemoryLayout<E>.size) {
      Throughput("allocations", load, counting: true) {
        PoolChannel<E>(isShared: isShared, $0[0])
      }
    }
  }
  return candidates(.allocations, type, counting: true) { _ in load }
    + [
      pool(.ownBalancer, isShared: false), pool(.shared, isShared: true),
    ]
}

/// The same for batches whose events are made as they are sent, of numbers alone.
func lazyAllocationCandidate<E: NumberEvent>(_ type: E.Type) -> Candidate {
  Candidate(shape: .allocations, subject: .lazyBatches, payloadBytes: MemoryLayout<E>.size) {
    Throughput("allocations", Load(events: 1 << 17), counting: true, { EventCoreChannel<E>(.lockFree, $0) }) {
      $0.sendLazily($1, $2)
    }
  }
}
