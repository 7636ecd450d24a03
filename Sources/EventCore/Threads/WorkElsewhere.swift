// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What the counts of a receiver leave out, and what they have too much, when a report is to say how many events its
/// end has left.
package struct WorkElsewhere: Sendable, Equatable {
  /// Of the listeners `on:` the receiver that run elsewhere, which have counts of their own.
  package var statistics = EventThreadStatistics.none
  /// How many events wait for these listeners.
  package var waiting = 0
  /// Jobs that the receiver has counted as cancelled, and that run elsewhere all the same.
  package var jobs: UInt64 = 0

  package init() {}

  init(statistics: EventThreadStatistics = .none, waiting: Int = 0, jobs: UInt64) {
    (self.statistics, self.waiting, self.jobs) = (statistics, waiting, jobs)
  }

  init(_ listener: borrowing OwnedListener) {
    guard let listener = listener.madeAlready else { return }
    // In this order: what is freed meanwhile counts in both, and not in neither.
    waiting = listener.mailboxStatistics.waiting
    statistics = listener.statistics
  }

  static func + (lhs: Self, rhs: Self) -> Self {
    Self(statistics: lhs.statistics + rhs.statistics, waiting: lhs.waiting + rhs.waiting, jobs: lhs.jobs + rhs.jobs)
  }
}

/// A receiver on which listeners and actors may be: an event thread, a worker, a pool.
package protocol WorkingElsewhere {
  var elsewhere: WorkElsewhere { get }
}

extension EventThread: WorkingElsewhere {
  package var elsewhere: WorkElsewhere {
    WorkElsewhere(ownListener) + WorkElsewhere(jobs: consumer.keptJobs.load(ordering: .relaxed))
  }
}
