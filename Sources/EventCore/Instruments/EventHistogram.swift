// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// How often which durations occurred, in the buckets of an HdrHistogram: exact below 64 nanoseconds, and to a
/// thirty-second (3 %) above that. Its memory grows with the number of different durations, to at most some 1,900
/// buckets.
///
/// ```swift
/// var frames = EventHistogram()
/// frames.record(.milliseconds(16))
/// print(frames.value(atPercentile: 99))
/// ```
public struct EventHistogram: Sendable, Equatable, Codable, CustomStringConvertible {
  /// How many durations were recorded.
  public private(set) var count: UInt64 = 0
  private var smallest: UInt64 = .max
  private var largest: UInt64 = 0
  private var sum: Double = 0
  /// The buckets that have a count, by their indices.
  private var buckets: [Bucket] = []

  private struct Bucket: Sendable, Equatable, Codable {
    var index: Int
    var count: UInt64
  }

  /// Makes an empty histogram.
  public init() {}

  /// The shortest duration, exactly; zero if there is none.
  public var min: Duration { .nanoseconds(Int64(clamping: count == 0 ? 0 : smallest)) }
  /// The longest duration, exactly; zero if there is none.
  public var max: Duration { .nanoseconds(Int64(clamping: largest)) }
  /// The mean; zero if there is none.
  public var mean: Duration { .nanoseconds(count == 0 ? 0 : Int64(Swift.min(sum / Double(count), 0x1p62).rounded())) }

  /// The duration that so many percent of the recorded ones do not exceed.
  ///
  /// - Parameter percentile: From 0 to 100; 50 is the median.
  /// - Returns: The upper end of its bucket, at most ``max``; zero if nothing was recorded.
  ///
  /// **Complexity**: O(buckets).
  public func value(atPercentile percentile: Double) -> Duration {
    require(
      percentile >= 0 && percentile <= 100,
      "A percentile is a number from 0 to 100, and this one is \(percentile): pass 50 for the median.")
    guard count > 0 else { return .zero }
    // A little less, since 99.9 / 100 is not exact: of 1,000 durations the 999th is meant.
    let rank = Swift.max(1, (percentile / 100 * Double(count) * (1 - 1e-12)).rounded(.up))
    var seen = 0.0
    for bucket in buckets {
      seen += Double(bucket.count)
      guard seen < rank else {
        let end = HistogramLayout.end(of: bucket.index)
        return .nanoseconds(Int64(clamping: Swift.max(smallest, Swift.min(end, largest))))
      }
    }
    return max
  }

  /// Adds a duration. One below zero counts as zero.
  ///
  /// **Complexity**: O(buckets).
  public mutating func record(_ duration: Duration) {
    let nanoseconds = duration.wholeNanoseconds
    add(1, at: HistogramLayout.index(of: nanoseconds))
    note(nanoseconds, nanoseconds, Double(nanoseconds))
  }

  /// For EventCoreMetrics: the durations that were added since an earlier reading.
  package func growth(since earlier: EventHistogram) -> EventHistogram {
    let counted = Dictionary(uniqueKeysWithValues: earlier.buckets.map { ($0.index, $0.count) })
    var growth = EventHistogram()
    for bucket in buckets {
      let before = counted[bucket.index] ?? 0
      if bucket.count > before { growth.add(bucket.count - before, at: bucket.index) }
    }
    growth.note(smallest, largest, 0)
    return growth
  }

  /// For EventCoreMetrics: each duration, at the upper end of its bucket, and how often it was recorded.
  package func forEach(_ body: (_ nanoseconds: UInt64, _ count: UInt64) -> Void) {
    for bucket in buckets { body(Swift.min(HistogramLayout.end(of: bucket.index), largest), bucket.count) }
  }

  /// Both together: each duration counts as often as in the two; at most `UInt64.max` durations in all.
  public static func + (lhs: Self, rhs: Self) -> Self {
    var sum = lhs
    for bucket in rhs.buckets { sum.add(bucket.count, at: bucket.index) }
    sum.note(rhs.smallest, rhs.largest, rhs.sum)
    return sum
  }

  /// One line: the number, the median, the 99th percentile, and the longest.
  public var description: String {
    guard count > 0 else { return "none" }
    let parts = [value(atPercentile: 50), value(atPercentile: 99), max].map(\.brief)
    return "\(count): median \(parts[0]), 99 % \(parts[1]), longest \(parts[2])"
  }

  /// From what `HistogramRecorder` has counted.
  init(smallest: UInt64, largest: UInt64, sum: UInt64, _ counts: some Sequence<(index: Int, count: UInt64)>) {
    for (index, count) in counts {
      buckets.append(Bucket(index: index, count: count))
      self.count += count
    }
    if count > 0 { note(smallest, largest, Double(sum)) }
  }

  /// Reads one that was written before.
  ///
  /// - Throws: `DecodingError` if it is none: it may come from another process.
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    smallest = try values.decode(UInt64.self, forKey: .smallest)
    largest = try values.decode(UInt64.self, forKey: .largest)
    sum = try values.decode(Double.self, forKey: .sum)
    buckets = try values.decode([Bucket].self, forKey: .buckets)
    count = try values.decode(UInt64.self, forKey: .count)
    var (total, last) = (0 as UInt64, -1)
    for bucket in buckets {
      let (next, isTooMuch) = total.addingReportingOverflow(bucket.count)
      guard bucket.index > last, bucket.index < HistogramLayout.count, !isTooMuch else {
        throw DecodingError.dataCorruptedError(
          forKey: .buckets, in: values,
          debugDescription: """
            The buckets of an EventHistogram have growing indices below \(HistogramLayout.count), and counts whose sum \
            is a UInt64; bucket \(bucket.index) with a count of \(bucket.count) comes behind \(last).
            """)
      }
      (total, last) = (next, bucket.index)
    }
    guard total == count, sum >= 0, count == 0 || smallest <= largest else {
      throw DecodingError.dataCorruptedError(
        forKey: .count, in: values,
        debugDescription: """
          An EventHistogram counts what its buckets have, \(total), with a sum from 0 on and a smallest value that is not \
          above the largest one; here they are \(count), \(sum), \(smallest) and \(largest).
          """)
    }
  }

  private mutating func add(_ more: UInt64, at index: Int) {
    // What was read from elsewhere may count any number: as many as there is room for.
    let more = Swift.min(more, .max - count)
    guard more > 0 else { return }
    count += more
    // A binary search: the buckets are sorted by index.
    var (low, high) = (0, buckets.count)
    while low < high {
      let middle = (low + high) / 2
      if buckets[middle].index < index { low = middle + 1 } else { high = middle }
    }
    if low < buckets.count, buckets[low].index == index {
      buckets[low].count += more
    } else {
      buckets.insert(Bucket(index: index, count: more), at: low)
    }
  }

  private mutating func note(_ smallest: UInt64, _ largest: UInt64, _ sum: Double) {
    self.smallest = Swift.min(self.smallest, smallest)
    self.largest = Swift.max(self.largest, largest)
    self.sum = Swift.min(self.sum + sum, .greatestFiniteMagnitude)
  }
}

/// Where a number of nanoseconds is counted: log-linear buckets, 32 for each power of two.
enum HistogramLayout {
  private static var bits: Int { 5 }
  private static var half: UInt64 { 1 << bits }
  /// How many buckets there are.
  static var count: Int { (64 - bits + 1) << bits }

  @inline(__always)
  static func index(of value: UInt64) -> Int {
    guard value >= 2 * half else { return Int(value) }
    // The highest `bits` + 1 bits of the value, and how far they were shifted.
    let shift = 63 - value.leadingZeroBitCount - bits
    return (shift << bits) + Int(truncatingIfNeeded: value >> shift)
  }

  /// The largest value of a bucket.
  static func end(of index: Int) -> UInt64 {
    guard index >= 2 << bits else { return UInt64(index) }
    let shift = (index >> bits) - 1
    let top = UInt64(index - (shift << bits))
    return ((top + 1) << shift) &- 1
  }
}

extension Duration {
  /// In the unit that suits it, with three digits.
  var brief: String {
    let nanoseconds = Double(wholeNanoseconds)
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")]
    guard let (scale, unit) = units.first(where: { nanoseconds >= $0.0 }) else { return "\(wholeNanoseconds) ns" }
    let value = nanoseconds / scale
    let tenths = Int((value * 10).rounded())
    return value >= 100 ? "\(Int(value.rounded())) \(unit)" : "\(tenths / 10).\(tenths % 10) \(unit)"
  }
}
