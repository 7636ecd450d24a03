// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// The live screen as lines of text.
struct Dashboard {
  var title: String
  var time: Double
  var total: Double
  var counts: GameLoop
  var scene: Scene
  var state: World
  var telemetry: Telemetry
  var load: Int
  var note: String

  var lines: [String] {
    [heading, ""] + traffic + [""] + lanes + [""] + machine + ["", alarm, "", keys, note]
  }

  private var heading: String {
    left(title, 62) + right("\(fixed(time, 1)) of \(fixed(total, 1)) s", 18)
  }

  private var traffic: [String] {
    [
      column("events/s", grouped(telemetry.eventsPerSecond))
        + column("samples/s", grouped(telemetry.samplesPerSecond))
        + column("spikes", grouped(state.spikes)),
      column("frames", grouped(counts.frames)) + column("late", grouped(counts.late))
        + column("load", "\(load) a sample"),
    ]
  }

  private func column(_ name: String, _ value: String) -> String {
    left(left(name, 10) + right(value, 13), 28)
  }

  private var lanes: [String] {
    let heading = left("lane", 27) + right("depth", 9) + Dashboard.latencyHeading
    let rows = DemoLane.allCases.map { lane in
      left(lane.title, 27) + right(grouped(telemetry.depths[lane.rawValue]), 9)
        + Dashboard.latencyColumns(telemetry.latencies[lane.rawValue])
    }
    let sum =
      left("all", 27) + right(grouped(telemetry.depth), 9) + Dashboard.latencyColumns(telemetry.all)
    return [heading] + rows + [sum]
  }

  static let latencyHeading = ["p50", "p99", "p99.9", "max"].map { right($0, 11) }.joined()

  static func latencyColumns(_ latencies: Latencies) -> String {
    let longest = latencies.count > 0 ? latencies.maximum : nil
    return [0.5, 0.99, 0.999].map { right(latency(latencies.percentile($0)), 11) }.joined()
      + right(latency(longest), 11)
  }

  private var machine: [String] {
    let shown = scene.processors.prefix(4).enumerated().map { index, share in
      left(
        "cpu\(index) \(Dashboard.bar(share)) \(right(String(Int((share * 100).rounded())), 3)) %",
        40)
    }
    let pairs = stride(from: 0, to: shown.count, by: 2).map { index in
      shown[index..<min(index + 2, shown.count)].joined()
    }
    let used = Double(state.memoryTotal - min(state.memoryTotal, state.memoryAvailable))
    let more =
      scene.processors.count > 4 ? " and \(scene.processors.count - 4) processors more" : ""
    return pairs + [
      left("memory    \(bytes(used)) of \(bytes(Double(state.memoryTotal)))", 40)
        + "running   \(state.running) threads\(more)",
      left("switches  \(grouped(scene.switches))/s", 40)
        + "interrupts \(grouped(scene.interrupts))/s",
      left("network   \(bytes(scene.received))/s in, \(bytes(scene.sent))/s out", 40)
        + "disk      \(bytes(scene.diskRead))/s in, \(bytes(scene.diskWritten))/s out",
    ]
  }

  private static func bar(_ share: Double) -> String {
    let filled = Int((share * 20).rounded())
    return String(repeating: "█", count: filled) + String(repeating: "░", count: 20 - filled)
  }

  private var alarm: String {
    guard let spike = state.lastSpike else { return "last alarm  none yet" }
    let when = fixed(Double(spike.time) / Double(Clock.second), 2)
    return "last alarm  \(when) s: \(spike.source.title) \(spike.source.format(spike.value)),"
      + " usually \(spike.source.format(spike.usual))"
  }

  private var keys: String { "q quit    b burst of 1,000,000 events    + more load    - less load" }
}
