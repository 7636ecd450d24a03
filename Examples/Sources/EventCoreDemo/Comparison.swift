// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import MachineSamples

/// Runs the same samples through every core of this build at full speed, with the same threads. How long an event takes
/// at a given load tells ``LoadSweep``.
struct Comparison {
  struct Round {
    /// How many were delivered in a second.
    var eventsPerSecond: Double
    var latencies: Latencies
    var account: Account
    var spikes: Int
    var checksum: UInt64
  }

  struct Result {
    var core: EventCentral.Core
    /// The round with the median speed.
    var median: Round
    var rounds: [Round]
  }

  static let roundCount = 5
  let results: [Result]

  init(of samples: [Sample], waitStrategy: EventWaitStrategy) {
    var rounds: [EventCentral.Core: [Round]] = [:]
    // The cores take turns, so that other work of the machine affects all of them.
    for _ in 0..<Self.roundCount {
      for core in EventCentral.Core.available {
        rounds[core, default: []].append(Self.round(samples, core, waitStrategy))
      }
    }
    results = EventCentral.Core.available.map { core in
      let all = rounds[core, default: []].sorted { $0.eventsPerSecond < $1.eventsPerSecond }
      return Result(core: core, median: all[all.count / 2], rounds: all)
    }
  }

  /// Whether all rounds of all cores have the same checksum, and the live run as well, if it had the same
  /// samples.
  func agrees(with checksum: UInt64?) -> Bool {
    let sums = results.flatMap { $0.rounds.map(\.checksum) } + (checksum.map { [$0] } ?? [])
    return sums.allSatisfy { $0 == sums.first }
  }

  /// How many events were lost or arrived twice, in all rounds.
  var lost: Int64 {
    results.flatMap(\.rounds).reduce(0) { $0 + abs($1.account.lost) }
  }

  /// Runs the samples through a core within that many seconds; with 0 at full speed.
  static func round(
    _ samples: [Sample], _ core: EventCentral.Core, _ waitStrategy: EventWaitStrategy, seconds: Double = 0
  ) -> Round {
    let engine = Engine(
      core: core, waitStrategy: waitStrategy, source: ReplaySource(samples, seconds: seconds),
      keepsSamples: false)
    let start = Clock.now()
    engine.sensor.start()
    let account = engine.finish(.whenSamplesEnd)
    let seconds = Double(Clock.now() - start) / Double(Clock.second)
    return Round(
      eventsPerSecond: Double(account.delivered) / seconds,
      latencies: engine.latencies.reduce(Latencies(), +), account: account,
      spikes: Int(engine.spikeCount), checksum: engine.checksum)
  }
}
