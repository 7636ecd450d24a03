// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Foundation
import Testing

@testable import EventCore

@Suite("EventHistogram")
struct EventHistogramTests {
  @Test("an empty one is all zero, and adds nothing")
  func empty() {
    var histogram = EventHistogram()
    #expect(histogram.count == 0 && histogram.min == .zero && histogram.max == .zero && histogram.mean == .zero)
    #expect(histogram.value(atPercentile: 99) == .zero)
    #expect(histogram.description == "none")
    #expect(histogram + histogram == histogram)
    histogram.record(.nanoseconds(-5))
    #expect(histogram.count == 1 && histogram.max == .zero)
    #expect(histogram + EventHistogram() == histogram)
  }

  @Test("each value lies in its bucket, which is at most 1/32 wide; the buckets follow one another without gaps")
  func buckets() {
    var values: [UInt64] = Array(0..<300)
    for shift in 0..<64 { values += [1 << shift, (1 << shift) &- 1, (1 << shift) | (1 << shift) >> 1] }
    values.append(.max)
    for value in values {
      let index = HistogramLayout.index(of: value)
      #expect(index < HistogramLayout.count)
      let end = HistogramLayout.end(of: index)
      #expect(end >= value && end - value <= value / 32, "\(value)")
      #expect(index == 0 || HistogramLayout.end(of: index - 1) < value, "\(value)")
    }
  }

  @Test("percentiles are those of the sorted values, to 1/32; the ends and the mean are exact")
  func percentiles() {
    var random = SeededRandom(seed: announcedSeed("percentiles"))
    var (histogram, recorder) = (EventHistogram(), HistogramRecorder())
    var values: [UInt64] = []
    for _ in 0..<1000 {
      let value = random.next() >> (24 + random.next() % 40)
      values.append(value)
      histogram.record(.nanoseconds(Int64(value)))
      recorder.record(value)
    }
    values.sort()
    #expect(histogram == recorder.histogram)
    #expect(histogram.count == 1000)
    #expect(histogram.min == .nanoseconds(Int64(values[0])) && histogram.max == .nanoseconds(Int64(values[999])))
    for perMille in [0, 1, 10, 500, 900, 990, 999, 1000] {
      let exact = values[max(1, perMille) - 1]
      let found = histogram.value(atPercentile: Double(perMille) / 10).wholeNanoseconds
      #expect(found >= exact && found - exact <= exact / 32, "\(perMille) per mille")
    }
    let mean = Double(values.reduce(0, +)) / 1000
    #expect(abs(Double(histogram.mean.wholeNanoseconds) - mean) <= 1)
    recorder = HistogramRecorder()
    #expect(recorder.histogram == EventHistogram())
  }

  @Test("the sum of two is that of all values")
  func sum() {
    var (one, other, all) = (EventHistogram(), EventHistogram(), EventHistogram())
    for value in 0..<500 {
      let duration = Duration.microseconds(value * value)
      if value % 3 == 0 { one.record(duration) } else { other.record(duration) }
      all.record(duration)
    }
    #expect(one + other == all)
    #expect(other + one == all)
  }

  @Test("what another process wrote is read, and refused if it is no histogram")
  func decoding() throws {
    var histogram = EventHistogram()
    for value in [0, 63, 64, 1_000_000] { histogram.record(.nanoseconds(value)) }
    histogram.record(.seconds(Int64.max / 1_000_000_000))
    let data = try JSONEncoder().encode(histogram)
    #expect(try JSONDecoder().decode(EventHistogram.self, from: data) == histogram)
    for (buckets, count) in [
      (#"{"index":-1,"count":1}"#, 1), (#"{"index":1920,"count":1}"#, 1), (#"{"index":3,"count":2}"#, 1),
      (#"{"index":3,"count":1},{"index":3,"count":1}"#, 2), (#"{"index":4,"count":1},{"index":3,"count":1}"#, 2),
      (#"{"index":3,"count":18446744073709551615},{"index":4,"count":2}"#, 1),
    ] {
      let text = #"{"smallest":3,"largest":4,"sum":7,"buckets":[\#(buckets)],"count":\#(count)}"#
      #expect(throws: DecodingError.self, "\(text)") {
        try JSONDecoder().decode(EventHistogram.self, from: Data(text.utf8))
      }
    }
  }

  @Test("a sum of more durations than a UInt64 counts stops at the largest count, and can be decoded again")
  func most() throws {
    let count = UInt64.max - 1
    let text = #"{"smallest":3,"largest":4,"sum":1.7e308,"buckets":[{"index":3,"count":\#(count)}],"count":\#(count)}"#
    let huge = try JSONDecoder().decode(EventHistogram.self, from: Data(text.utf8))
    var other = EventHistogram()
    for _ in 0..<3 { other.record(.nanoseconds(4)) }
    for sum in [huge + huge, huge + other, other + huge] {
      #expect(sum.count == .max)
      #expect(try JSONDecoder().decode(EventHistogram.self, from: JSONEncoder().encode(sum)) == sum)
    }
  }

  @Test("bounds and sums that no histogram has are refused", arguments: [
    #""smallest":900,"largest":1,"sum":7"#, #""smallest":3,"largest":3,"sum":-1e300"#,
  ])
  func bounds(fields: String) {
    let text = #"{\#(fields),"buckets":[{"index":3,"count":1}],"count":1}"#
    #expect(throws: DecodingError.self) { try JSONDecoder().decode(EventHistogram.self, from: Data(text.utf8)) }
  }

  @Test("D12: a percentile that is none traps")
  func trap() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = EventHistogram().value(atPercentile: 101)
    }
    expectMessage(result, "A percentile is a number from 0 to 100, and this one is 101.0")
  }
}
