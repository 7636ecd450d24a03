// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// What is counted of the events of one type at one receiver, while its central is observed.
///
/// Synchronization: written by the consumer's thread, relaxed; read by any.
final class ReceiverProbe: @unchecked Sendable {
  // Atomic or constant, except for `waits`, `handles` and `keptBy`, which only the consumer's thread uses.

  let key: UInt
  let consumer: ConsumerProbe
  private let delivered = Atomic<UInt64>(0)
  private let skipped = Atomic<UInt64>(0)
  /// Made with the first event that is timed, and published by `times`.
  private let times = LazyReference<Times>()
  /// The trace that knows this probe.
  var keptBy: UInt64 = 0

  private final class Times: Sendable {
    let waiting = HistogramRecorder()
    let handling = HistogramRecorder()
  }

  init(_ key: UInt, of consumer: ConsumerProbe) {
    self.key = key
    self.consumer = consumer
  }

  @inline(__always)
  func count(_ called: Bool) {
    if called {
      delivered.store(delivered.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
    } else {
      skipped.store(skipped.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
    }
  }

  /// Counts the times of an event that was handled.
  func record(waiting: UInt64, handling: UInt64) {
    let times = times.value(or: { Times() })
    times.waiting.record(waiting)
    times.handling.record(handling)
  }

  /// What was counted so far. Any thread.
  var reading: HandledReading {
    let times = times.value
    return HandledReading(
      delivered: delivered.load(ordering: .relaxed), skipped: skipped.load(ordering: .relaxed),
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
