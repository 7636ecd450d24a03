// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// Counts latencies in buckets that grow with them: 32 for each power of two, so that a figure is
/// at most 3 % too large. One thread records, any thread looks, and neither waits.
final class LatencyHistogram: @unchecked Sendable {
  // The address is constant, and what it points to is atomic. Only the recording thread writes, so
  // that load and store suffice. Relaxed throughout: each count stands for itself.
  private let counts: UnsafeMutablePointer<Atomic<UInt64>>
  private let maximum = Atomic<UInt64>(0)

  init() {
    counts = .allocate(capacity: Buckets.count)
    for index in 0..<Buckets.count {
      (counts + index).initialize(to: Atomic(0))
    }
  }

  deinit {
    counts.deinitialize(count: Buckets.count)
    counts.deallocate()
  }

  /// Counts one latency. The recording thread only.
  func record(_ nanoseconds: UInt64) {
    let index = Buckets.index(of: nanoseconds)
    let count = counts[index].load(ordering: .relaxed)
    counts[index].store(count &+ 1, ordering: .relaxed)
    if nanoseconds > maximum.load(ordering: .relaxed) {
      maximum.store(nanoseconds, ordering: .relaxed)
    }
  }

  /// What has been counted so far.
  var snapshot: Latencies {
    var latencies = Latencies()
    for index in 0..<Buckets.count {
      latencies.counts[index] = counts[index].load(ordering: .relaxed)
    }
    latencies.maximum = maximum.load(ordering: .relaxed)
    return latencies
  }
}

/// Which latency falls into which bucket: exact below 32 ns, then 32 buckets for each power of two.
enum Buckets {
  private static let bits = 5
  private static let perPower = 1 << bits
  /// The last bucket takes all that is longer than an hour and more.
  private static let longest: UInt64 = (1 << 42) - 1
  static let count = index(of: longest) + 1

  static func index(of nanoseconds: UInt64) -> Int {
    let value = min(nanoseconds, longest)
    guard value >= perPower else { return Int(value) }
    let shift = 63 - value.leadingZeroBitCount - bits
    return shift * perPower + Int(value >> shift)
  }

  /// The longest latency of a bucket.
  static func upperBound(of index: Int) -> UInt64 {
    guard index >= 2 * perPower else { return UInt64(index) }
    let shift = index / perPower - 1
    return ((UInt64(index % perPower + perPower) + 1) << shift) - 1
  }
}

/// Latencies as counted at one moment: can be added, and compared with an earlier moment.
struct Latencies {
  fileprivate(set) var counts = [UInt64](repeating: 0, count: Buckets.count)
  fileprivate(set) var maximum: UInt64 = 0

  var count: UInt64 { counts.reduce(0, &+) }

  /// The latency that `share` of the events have kept; nil if there were none.
  func percentile(_ share: Double) -> UInt64? {
    let total = count
    guard total > 0 else { return nil }
    let rank = max(1, UInt64((Double(total) * share).rounded(.up)))
    var seen: UInt64 = 0
    for index in counts.indices {
      seen += counts[index]
      if seen >= rank { return min(Buckets.upperBound(of: index), maximum) }
    }
    return maximum
  }

  static func + (left: Latencies, right: Latencies) -> Latencies {
    var sum = left
    for index in sum.counts.indices {
      sum.counts[index] &+= right.counts[index]
    }
    sum.maximum = max(left.maximum, right.maximum)
    return sum
  }

  /// What came since `earlier`. The longest is then known by its bucket only.
  func since(_ earlier: Latencies) -> Latencies {
    var difference = self
    for index in counts.indices {
      difference.counts[index] &-= earlier.counts[index]
    }
    let last = difference.counts.lastIndex { $0 > 0 }
    difference.maximum = min(last.map(Buckets.upperBound) ?? 0, maximum)
    return difference
  }
}
