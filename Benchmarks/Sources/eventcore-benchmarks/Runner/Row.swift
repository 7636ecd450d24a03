// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A measured row. The field names are those of the results file.
struct Row: Codable {
  let shape: String
  let subject: String
  let payloadBytes: Int
  let unit: String
  let median: Double
  let min: Double
  let max: Double
  let runs: Int
  /// What eight additions took right before each run, in nanoseconds, the median and the least: how fast the core was.
  let additions: Double
  let leastAdditions: Double

  init(_ candidate: Candidate, _ figures: [Double], additions: [Double]) {
    shape = candidate.shape.rawValue
    subject = candidate.subject.rawValue
    payloadBytes = candidate.payloadBytes
    unit = candidate.shape.unit
    median = figures.median
    min = figures.min() ?? 0
    max = figures.max() ?? 0
    runs = figures.count
    self.additions = additions.median
    leastAdditions = additions.min() ?? 0
  }

  /// Whether the core was slower than it has been before a run of one of these rows: mostly since a program of somebody
  /// else's used its other half.
  func wasSlower(than rows: [Row]) -> Bool { additions > 1.25 * rows.leastAdditions }
}

extension [Row] {
  var leastAdditions: Double { map(\.leastAdditions).min() ?? 0 }
}

extension [Double] {
  /// The middle value, or the mean of the two middle ones.
  var median: Double {
    check(!isEmpty, "There is no median of nothing.")
    let sorted = sorted()
    let middle = count / 2
    return count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
  }
}
