// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import Synchronization

/// A clock for tests that stands still until somebody moves it. A central that is made with it dispatches
/// scheduled events inside `advance`, on the calling thread.
package final class ManualClock: Sendable {
  private let time: Atomic<UInt64>
  private let schedulers = Guarded<[Weak]>([])

  private struct Weak: Sendable {
    weak let core: (any SchedulerCore)?
  }

  /// Starts at a time that leaves room for deadlines in the past.
  package init(nanoseconds: UInt64 = 1_000_000_000_000) {
    time = Atomic(nanoseconds)
  }

  /// The time, on the scale of the central's deadlines.
  package var now: DispatchTime { DispatchTime(uptimeNanoseconds: nanoseconds) }

  package var nanoseconds: UInt64 { time.load(ordering: .acquiring) }

  /// Moves on in one jump, and dispatches the events that have become due.
  package func advance(by duration: Duration) {
    advance(to: nanoseconds + duration.wholeNanoseconds)
  }

  /// The same, to a time that is not in the past.
  package func advance(to nanoseconds: UInt64) {
    require(nanoseconds >= self.nanoseconds, "A clock does not go back.")
    time.store(nanoseconds, ordering: .releasing)
    for scheduler in schedulers.withLock({ $0 }) {
      scheduler.core?.runDue(at: nanoseconds)
    }
  }

  func attach(_ scheduler: any SchedulerCore) {
    schedulers.withLock { $0.append(Weak(core: scheduler)) }
  }
}
