// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// What the event threads did during the last second, and how many events wait for them.
struct Telemetry {
  private struct Moment {
    var time: UInt64
    var ticks: Int
    var latencies: [Latencies]
  }

  private let engine: Engine
  private var moments: [Moment] = []
  /// Waiting events by lane, for all event threads.
  private(set) var depths = DemoLane.allCases.map { _ in 0 }
  /// The latencies of the last second by lane.
  private(set) var latencies = DemoLane.allCases.map { _ in Latencies() }
  /// How long that second was.
  private(set) var seconds = 1.0
  private(set) var samplesPerSecond = 0.0

  init(_ engine: Engine) {
    self.engine = engine
  }

  var all: Latencies { latencies.reduce(Latencies(), +) }
  var eventsPerSecond: Double { Double(all.count) / seconds }
  var depth: Int { depths.reduce(0, +) }

  /// Updates the depths, and the figures of the last second.
  mutating func look(at time: UInt64) {
    depths = DemoLane.allCases.map { lane in
      engine.rates.eventCount(priority: lane.priority, method: lane.method)
        + engine.spikes.eventCount(priority: lane.priority, method: lane.method)
    }
    let now = Moment(time: time, ticks: engine.sensor.ticks, latencies: engine.latencies)
    // During the first second the run so far is shown.
    let start = Moment(time: 0, ticks: 0, latencies: latencies.map { _ in Latencies() })
    let then = moments.first ?? start
    moments.append(now)
    while moments.count > 1, time - moments[0].time >= Clock.second * 95 / 100 {
      moments.removeFirst()
    }
    seconds = max(0.001, Double(time - then.time) / Double(Clock.second))
    samplesPerSecond = Double(now.ticks - then.ticks) / seconds
    latencies = zip(now.latencies, then.latencies).map { $0.since($1) }
  }
}
