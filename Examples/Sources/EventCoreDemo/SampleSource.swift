// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import MachineSamples

/// The source of the sensor thread's samples. Times are in nanoseconds since the start of the run.
///
/// **Threads**: one at a time.
protocol SampleSource: AnyObject {
  /// When the next samples are due; nil if there are no more.
  var due: UInt64? { get }

  /// Appends the samples that are due, and goes on to the next ones.
  func take(at now: UInt64, into samples: inout [Sample]) throws

  /// How often samples were left out because the thread was late.
  var missed: Int { get }
}

/// Samples this machine a thousand times a second.
final class LiveSource: SampleSource {
  static let rate = 1_000

  private static let period = Clock.second / UInt64(rate)
  private let sampler: MachineSampler
  private var tick: UInt64 = 0
  private(set) var missed = 0

  init() throws {
    sampler = try MachineSampler()
  }

  var due: UInt64? { tick * Self.period }

  func take(at now: UInt64, into samples: inout [Sample]) throws {
    try sampler.read(at: now, into: &samples)
    tick += 1
    // A late sample is left out; two at once would say nothing more.
    let current = now / Self.period
    if current > tick {
      missed += Int(current - tick)
      tick = current
    }
  }
}

/// Replays a recording, at its own speed, faster or slower.
final class ReplaySource: SampleSource {
  private let samples: [Sample]
  private let scale: Double
  private var next = 0
  let missed = 0

  /// - Parameter seconds: How long the replay lasts; nil for the time that the recording took.
  init(_ samples: [Sample], seconds: Double?) {
    self.samples = samples
    let length = Self.length(of: samples)
    scale = seconds.map { length > 0 ? $0 / length : 1 } ?? 1
  }

  /// How many seconds a recording lasts.
  static func length(of samples: [Sample]) -> Double {
    Double(samples.last?.time ?? 0) / Double(Clock.second)
  }

  var due: UInt64? {
    next < samples.count ? UInt64(Double(samples[next].time) * scale) : nil
  }

  func take(at now: UInt64, into samples: inout [Sample]) {
    // Samples with one time are dispatched together.
    let time = self.samples[next].time
    while next < self.samples.count, self.samples[next].time == time {
      samples.append(self.samples[next])
      next += 1
    }
  }
}
