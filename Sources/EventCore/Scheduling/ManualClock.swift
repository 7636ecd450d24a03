// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import Synchronization

/// A clock that stands still until somebody moves it: schedules of a central that is made with it
/// are dispatched inside `advance`, on the thread that calls it. For tests.
package final class ManualClock: Sendable {
  private let time: Atomic<UInt64>
  private let schedulers = Guarded<[Weak]>([])

  private struct Weak: Sendable {
    weak let core: (any SchedulerCore)?
  }

  /// Begins at a time that leaves room for deadlines before it.
  package init(nanoseconds: UInt64 = 1_000_000_000_000) {
    time = Atomic(nanoseconds)
  }

  /// The time as deadlines of such a central are written.
  package var now: DispatchTime { DispatchTime(uptimeNanoseconds: nanoseconds) }

  package var nanoseconds: UInt64 { time.load(ordering: .acquiring) }

  /// Moves on, in one jump, and dispatches what has become due.
  package func advance(by duration: Duration) {
    advance(to: nanoseconds + duration.wholeNanoseconds)
  }

  /// The same, to a time that is not before now.
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
