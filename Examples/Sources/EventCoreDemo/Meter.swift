// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore

/// Measures the work of one event thread: latencies by lane, and a checksum of the samples.
///
/// **Threads**: the event thread counts. Any thread may read `latencies`, and the rest once the event thread
/// has ended.
final class Meter: @unchecked Sendable {
  // Only the event thread uses the checksums until it has ended, for which `drain(until:)` waits.
  private let histograms = DemoLane.allCases.map { _ in LatencyHistogram() }
  private var checksums = [UInt64](repeating: 0xcbf2_9ce4_8422_2325, count: Source.allCases.count)
  private var sumOfAlarms: UInt64 = 0
  /// The prime number of the hash function FNV-1a, which is used here with words instead of bytes.
  private static let prime: UInt64 = 0x0000_0100_0000_01b3

  /// Counts one event, at the beginning of its handler.
  func count(_ lane: DemoLane, dispatchedAt time: DispatchTime) {
    let now = Clock.now()
    let then = time.uptimeNanoseconds
    histograms[lane.rawValue].record(now > then ? now - then : 0)
  }

  /// Counts a sample, and adds its values to the checksum of its source, which depends on their order. Within
  /// a type that is the order of the dispatches (D2).
  func count(
    _ source: Source, _ priority: EventPriority, _ time: DispatchTime,
    _ values: (UInt64, UInt64, UInt64, UInt64)
  ) {
    count(DemoLane(queue: priority), dispatchedAt: time)
    var sum = checksums[source.rawValue]
    sum = (sum ^ values.0) &* Self.prime
    sum = (sum ^ values.1) &* Self.prime
    sum = (sum ^ values.2) &* Self.prime
    checksums[source.rawValue] = (sum ^ values.3) &* Self.prime
  }

  /// Adds an alarm to the checksum, independently of the order, since that of a stack varies (D3).
  func check(alarm: SpikeAlarm) {
    let value = (alarm.time ^ UInt64(alarm.source.rawValue)) &* 0x9e37_79b9_7f4a_7c15
    sumOfAlarms &+= value ^ alarm.value.bitPattern
  }

  /// The checksum of all samples and alarms.
  var checksum: UInt64 { checksums.reduce(sumOfAlarms) { ($0 &* 31) ^ $1 } }

  /// The latencies so far, by lane.
  var latencies: [Latencies] { histograms.map(\.snapshot) }
}
