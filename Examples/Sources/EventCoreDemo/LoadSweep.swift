// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import MachineSamples

/// Latencies of every core at the same offered loads: the samples are dispatched at a pace that is the same for all, and
/// doubled from row to row up to what each core bears. What is dispatched all at once tells of a queue's length, and not
/// of a core.
struct LoadSweep {
  struct Row {
    /// Deliveries a second.
    var offered: Double
    /// For each core the round with the median p99; nil where the core does not bear the load.
    var rounds: [Comparison.Round?]
  }

  private static let lowest = 50_000.0
  private static let roundCount = 3
  /// How long a round lasts, unless the samples do not suffice.
  private static let seconds = 0.25
  /// The share of the offered load below which a core is behind.
  private static let enough = 0.9

  let cores: [EventCentral.Core]
  private(set) var rows: [Row] = []
  /// How many events were lost or arrived twice, in all rounds.
  private(set) var lost: Int64 = 0
  /// Whether all rounds that had the same samples have the same checksum.
  private(set) var agrees = true

  init(of samples: [Sample], waitStrategy: EventWaitStrategy) {
    cores = EventCentral.Core.available
    var isBehind = cores.map { _ in false }
    var offered = Self.lowest
    while isBehind.contains(false) {
      // Both event threads get every sample.
      let count = min(samples.count, Int(offered * Self.seconds / 2))
      let (part, seconds) = (Array(samples[..<count]), Double(2 * count) / offered)
      var rounds = cores.map { _ in [Comparison.Round]() }
      // The cores take turns, so that other work of the machine affects all of them.
      for _ in 0..<Self.roundCount {
        for index in cores.indices where !isBehind[index] {
          rounds[index].append(Comparison.round(part, cores[index], waitStrategy, seconds: seconds))
        }
      }
      let medians = rounds.map { rounds -> Comparison.Round? in
        let sorted = rounds.sorted { $0.latencies.percentile(0.99) ?? 0 < $1.latencies.percentile(0.99) ?? 0 }
        return sorted.isEmpty ? nil : sorted[sorted.count / 2]
      }
      lost += rounds.joined().reduce(0) { $0 + abs($1.account.lost) }
      agrees = agrees && Set(rounds.joined().map(\.checksum)).count == 1
      for (index, round) in medians.enumerated() { isBehind[index] = round.map { !bears($0, offered) } ?? true }
      rows.append(Row(offered: offered, rounds: medians))
      offered *= 2
    }
  }

  /// Whether the core kept up with the load; otherwise its latencies are those of a queue that grows.
  func bears(_ round: Comparison.Round, _ offered: Double) -> Bool {
    round.eventsPerSecond >= offered * Self.enough
  }
}
