// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// One-to-one once more, with every allocation of the process counted instead of the time.
//
//     warm up ──► arm the counter ──► 131,072 events ──► handled ──► read the counter

/// The candidates of this shape for one type of event.
func allocationCandidates<E: BenchmarkEvent>(_ type: E.Type) -> [Candidate] {
  candidates(.allocations, type, counting: true) { _ in Load(events: 1 << 17) }
}
