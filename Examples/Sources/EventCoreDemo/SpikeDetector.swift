// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Tells whether a rate is a spike: more than six deviations above the mean, after a second of learning.
///
/// Mean and deviation cover the last seconds, with less weight for older rates. They depend on the times of
/// the samples alone, so that a replay finds the same spikes.
struct SpikeDetector {
  private static let weight = 0.05
  private static let deviations = 6.0
  private static let learning = 20
  private static let pause: UInt64 = 250_000_000

  /// A rate below this is never a spike.
  private let floor: Double
  private var mean = 0.0
  private var variance = 0.0
  private var windows = 0
  private var quietUntil: UInt64 = 0

  init(floor: Double) {
    self.floor = floor
  }

  /// The usual rate, if `rate` is a spike; otherwise nil.
  mutating func usual(for rate: Double, at time: UInt64) -> Double? {
    let usual = mean
    let distance = rate - mean
    // At least a tenth of the mean, so that a trifle is no spike after a steady past.
    let deviation = max(variance.squareRoot(), mean * 0.1)
    let isSpike =
      windows >= Self.learning && rate >= floor && distance > Self.deviations * deviation
      && time >= quietUntil
    // Spikes are learnt, too, so that a lasting change becomes usual.
    mean += Self.weight * distance
    variance = (1 - Self.weight) * (variance + Self.weight * distance * distance)
    windows += 1
    guard isSpike else { return nil }
    quietUntil = time + Self.pause
    return usual
  }
}
