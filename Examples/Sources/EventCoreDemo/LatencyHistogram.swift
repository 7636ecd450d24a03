// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// Counts latencies in 32 buckets for each power of two, so that a figure is at most 3 % too large. One
/// thread records, any thread may read, and neither waits.
final class LatencyHistogram: @unchecked Sendable {
  // The address is constant, and the counts are atomic. Only the recording thread writes, so a load and a
  // store are enough to add. Relaxed: each count is independent of the others.
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

  /// Counts one latency. On the recording thread.
  func record(_ nanoseconds: UInt64) {
    let index = Buckets.index(of: nanoseconds)
    let count = counts[index].load(ordering: .relaxed)
    counts[index].store(count &+ 1, ordering: .relaxed)
    if nanoseconds > maximum.load(ordering: .relaxed) {
      maximum.store(nanoseconds, ordering: .relaxed)
    }
  }

  /// The counts so far.
  var snapshot: Latencies {
    var latencies = Latencies()
    for index in 0..<Buckets.count {
      latencies.counts[index] = counts[index].load(ordering: .relaxed)
    }
    latencies.maximum = maximum.load(ordering: .relaxed)
    return latencies
  }
}

/// The buckets of a histogram: exact below 32 ns, then 32 for each power of two.
enum Buckets {
  private static let bits = 5
  private static let perPower = 1 << bits
  /// Longer latencies, of more than an hour, are counted in the last bucket.
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

/// The counts of a histogram at one moment, which can be added, and compared with an earlier moment.
struct Latencies {
  fileprivate(set) var counts = [UInt64](repeating: 0, count: Buckets.count)
  fileprivate(set) var maximum: UInt64 = 0

  var count: UInt64 { counts.reduce(0, &+) }

  /// The latency that the given share of the events did not exceed; nil if there were none.
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

  /// The latencies that were counted since `earlier`. Of the longest only the bucket is known.
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
