// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation
import RawCore

/// Measures the candidates of one shape and payload.
///
///     A warm, B warm, ..., A run 1, B run 1, ..., A run 2, B run 2, ...
///
/// The machine drifts over seconds (clock, neighbours), and a ratio of two figures should not. How fast the core was is
/// measured before each run.
///
/// Allocations are counted in the whole process, and do not drift: there each candidate ends before the next one begins.
/// Or an idle one counts for another: the locking core's consumer allocates two lists to free what a burst has left.
func measure(_ candidates: [Candidate], runs: Int) -> [Row] {
  if candidates.count > 1, candidates[0].shape.countsAllocations {
    return candidates.flatMap { measure([$0], runs: runs) }
  }
  let trials = candidates.map { $0.make() }
  for trial in trials {
    _ = trial.run()
  }
  var figures: [[Double]] = candidates.map { _ in [] }
  var additions = figures
  for _ in 0..<runs {
    for (index, trial) in trials.enumerated() {
      additions[index].append(evb_eight_additions())
      figures[index].append(trial.run())
    }
  }
  for trial in trials {
    trial.end()
  }
  return candidates.indices.map { Row(candidates[$0], figures[$0], additions: additions[$0]) }
}

/// The candidates by shape, then payload, in the order of the shapes.
func groups(of candidates: [Candidate]) -> [[Candidate]] {
  Shape.allCases.flatMap { shape in
    let ofShape = candidates.filter { $0.shape == shape }
    return Set(ofShape.map(\.payloadBytes)).sorted().map { bytes in
      ofShape.filter { $0.payloadBytes == bytes }
    }
  }
}

/// Tells on standard error what is going on; standard output gets the table alone.
func progress(_ text: String) {
  FileHandle.standardError.write(Data("\(text)\n".utf8))
}
