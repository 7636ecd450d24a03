// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// What is counted of the events of one type at one receiver, while its central is observed.
///
/// Synchronization: written by the consumer's thread, relaxed; read by any.
final class ReceiverProbe: @unchecked Sendable {
  // Atomic or constant, except for `waits`, `handles` and `keptBy`, which only the consumer's thread uses.

  let key: UInt
  /// The consumer's, which has a list of its probes: they do not retain it.
  private let name: String
  private let ordinal: Int
  var label: String { ConsumerProbe.label(name, ordinal) }
  /// As `HandledCounts`.
  let counts = LineCounters()
  /// Made with the first event that is timed, and published by `times`.
  private let times = LazyReference<Times>()
  /// The trace that knows this probe.
  var keptBy: UInt64 = 0

  private final class Times: Sendable {
    let waiting = HistogramRecorder()
    let handling = HistogramRecorder()

    func record(_ waited: UInt64, _ handled: UInt64) {
      waiting.record(waited)
      handling.record(handled)
    }
  }

  init(_ key: UInt, of consumer: ConsumerProbe) {
    self.key = key
    (name, ordinal) = (consumer.name, consumer.ordinal)
  }

  /// Counts the times of an event that was handled.
  func record(waiting: UInt64, handling: UInt64) {
    if times.withValue({ $0.record(waiting, handling) }) == nil {
      times.value(or: { Times() }).record(waiting, handling)
    }
  }

  /// What was counted so far. Any thread.
  var reading: HandledReading {
    let times = times.value
    return HandledReading(
      delivered: counts[HandledCounts.delivered], skipped: counts[HandledCounts.skipped],
      waiting: times?.waiting.histogram ?? EventHistogram(), handling: times?.handling.histogram ?? EventHistogram())
  }
}

/// What was counted of the events of one type at one receiver.
struct HandledReading: Sendable {
  var delivered: UInt64 = 0
  var skipped: UInt64 = 0
  var waiting = EventHistogram()
  var handling = EventHistogram()

  static func + (lhs: Self, rhs: Self) -> Self {
    Self(
      delivered: lhs.delivered + rhs.delivered, skipped: lhs.skipped + rhs.skipped, waiting: lhs.waiting + rhs.waiting,
      handling: lhs.handling + rhs.handling)
  }
}
