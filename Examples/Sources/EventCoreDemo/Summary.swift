// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// The result of a run as text.
struct Summary {
  var engine: Engine
  var seconds: Double
  var counts: GameLoop
  var account: Account

  var text: String {
    ([heading, sampling, ""] + balance + [""] + latencies).joined(separator: "\n")
  }

  private var heading: String {
    let dropped = counts.dropped > 0 ? ", \(grouped(counts.dropped)) dropped" : ""
    return
      "\(fixed(seconds, 1)) s on the \(engine.central.core) core: \(grouped(counts.frames)) frames"
      + " at \(GameLoop.rate) Hz, \(grouped(counts.late)) of them late\(dropped)."
  }

  private var sampling: String {
    let held = engine.filler.heldBack
    return "Sampled \(grouped(engine.sensor.ticks)) times, and \(grouped(engine.sensor.missed)) times left out"
      + " for being late:"
      + " \(grouped(engine.sensor.sampleCount)) samples,"
      + " \(grouped(engine.spikeCount)) spikes of a rate, each an alarm,"
      + " \(grouped(engine.filler.dispatched)) events of bursts and load"
      + (held > 0 ? ", \(grouped(held)) of load held back." : ".")
  }

  private var balance: [String] {
    ["Events, each counted once for each of its receivers:"] + [
      ("dispatched", grouped(account.dispatched)), ("delivered", grouped(account.delivered)),
      ("skipped", grouped(account.skipped)), ("cancelled", grouped(account.cancelled)),
      ("lost", grouped(account.lost)),
    ].map { left($0.0, 12) + right($0.1, 14) }
  }

  private var latencies: [String] {
    let lanes = engine.latencies
    let rows = DemoLane.allCases.map { lane in
      Self.row(lane.title, lanes[lane.rawValue])
    }
    let heading = left("dispatch to handler", 25) + right("events", 11) + Dashboard.latencyHeading
    return [heading] + rows + [Self.row("all", lanes.reduce(Latencies(), +))]
  }

  private static func row(_ name: String, _ latencies: Latencies) -> String {
    left(name, 25) + right(grouped(latencies.count), 11) + Dashboard.latencyColumns(latencies)
  }
}

extension Comparison {
  /// The cores side by side.
  func text(samples: Int, checksum: UInt64?) -> String {
    let medians = results.map(\.median)
    func row(_ name: String, _ value: (Round) -> String) -> String {
      left(name, 12) + medians.map { right(value($0), 20) }.joined()
    }
    var lines = [
      "The same \(grouped(samples)) samples at full speed, median of \(Self.roundCount) rounds (on a busy machine the",
      "figures tell of its other programs):", "",
      left("", 12) + results.map { right("\($0.core)", 20) }.joined(),
      row("events/s") { grouped($0.eventsPerSecond) },
      row("spikes") { grouped($0.spikes) },
      row("lost") { grouped($0.account.lost) },
      row("checksum") { String($0.checksum, radix: 16) },
      "",
    ]
    let runs =
      "\(results.count * Self.roundCount) rounds\(checksum == nil ? "" : " and the live run")"
    lines.append(
      agrees(with: checksum)
        ? "The checksums of \(runs) are equal." : "The checksums of \(runs) DIFFER.")
    if !EventCentral.Core.available.contains(.lockFree) {
      lines.append("This build has no lockFree core (package trait URCU): nothing to compare with.")
    }
    return lines.joined(separator: "\n")
  }
}

extension LoadSweep {
  /// A row for each load.
  var text: String {
    let names = cores.map { right("\($0)  ", 33) }.joined()
    let columns = cores.map { _ in ["p50", "p99", "p99.9"].map { right($0, 11) }.joined() }.joined()
    let lines = rows.map { row in right(grouped(row.offered), 12) + row.rounds.map { cell($0, row.offered) }.joined() }
    return ([
      "From dispatch to handler at the same offered load (deliveries a second), up to what each core bears:", "",
      left("", 12) + names, right("offered", 12) + columns,
    ] + lines).joined(separator: "\n")
  }

  private func cell(_ round: Comparison.Round?, _ offered: Double) -> String {
    guard let round else { return right("-", 33) }
    guard bears(round, offered) else { return right("only \(grouped(round.eventsPerSecond))", 33) }
    return [0.5, 0.99, 0.999].map { right(latency(round.latencies.percentile($0)), 11) }.joined()
  }
}
