// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// A histogram that one thread at a time writes, in memory that does not grow, and any thread reads.
///
/// All but the counts is relaxed: the numbers publish nothing, and a reader may find those of an event that is being
/// counted some apart.
final class HistogramRecorder: Sendable {
  // The pointer is constant.
  private nonisolated(unsafe) let counts: UnsafeMutablePointer<Atomic<UInt64>>
  private let smallest = Atomic<UInt64>(.max)
  private let largest = Atomic<UInt64>(0)
  private let sum = Atomic<UInt64>(0)

  init() {
    counts = .allocate(capacity: HistogramLayout.count)
    for index in 0..<HistogramLayout.count { (counts + index).initialize(to: Atomic(0)) }
  }

  deinit {
    counts.deinitialize(count: HistogramLayout.count)
    counts.deallocate()
  }

  func record(_ nanoseconds: UInt64) {
    // The bounds first: a reader that finds the duration finds them, too.
    if nanoseconds < smallest.load(ordering: .relaxed) { smallest.store(nanoseconds, ordering: .relaxed) }
    if nanoseconds > largest.load(ordering: .relaxed) { largest.store(nanoseconds, ordering: .relaxed) }
    sum.store(sum.load(ordering: .relaxed) &+ nanoseconds, ordering: .relaxed)
    let count = counts + HistogramLayout.index(of: nanoseconds)
    // Releasing, pairs with `histogram`.
    count.pointee.store(count.pointee.load(ordering: .relaxed) &+ 1, ordering: .releasing)
  }

  /// What was recorded so far. Any thread.
  var histogram: EventHistogram {
    // Before the bounds, the other way round than `record`, with which acquiring pairs.
    let filled = (0..<HistogramLayout.count).compactMap { index -> (index: Int, count: UInt64)? in
      let count = self.counts[index].load(ordering: .acquiring)
      return count == 0 ? nil : (index, count)
    }
    return EventHistogram(
      smallest: smallest.load(ordering: .relaxed), largest: largest.load(ordering: .relaxed),
      sum: sum.load(ordering: .relaxed), filled)
  }
}
