// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// What a schedule that dispatches more than once keeps beside its handle.
final class ScheduleRepetition: @unchecked Sendable {
  // Constant, but for: atomics; `remaining`, which `fire` alone reads and writes. The next one
  // comes after the schedule was put back into the core, whose hand-over to the thread that takes
  // it out orders the two.
  private let policy: EventRepeatPolicy
  private let interval: UInt64
  /// Dispatches that are left; -1: no limit.
  private var remaining: Int
  let dispatches = Atomic<Int>(0)
  let skipped = Atomic<Int>(0)
  /// The thread that is in `dispatching`, so that a cancel on it does not wait for itself; 0 for
  /// none.
  private let dispatchingThread = Atomic<UInt>(0)

  init(_ plan: SchedulePlan) {
    policy = plan.policy
    interval = plan.interval
    remaining = plan.limit
  }

  var isAtLast: Bool { remaining == 1 }

  /// Whether the calling thread is the one that dispatches. Relaxed: it reads what it wrote itself.
  var isDispatchingHere: Bool {
    dispatchingThread.load(ordering: .relaxed) == currentThreadNumber()
  }

  /// Before a dispatch that is not the last. Relaxed: numbers alone.
  func begin() {
    dispatches.wrappingAdd(1, ordering: .relaxed)
    dispatchingThread.store(currentThreadNumber(), ordering: .relaxed)
  }

  /// After it. Returns the next deadline.
  func end(_ deadline: UInt64, _ scheduler: Scheduler) -> UInt64 {
    remaining -= remaining > 0 ? 1 : 0
    let next = nextDeadline(after: deadline, scheduler)
    dispatchingThread.store(0, ordering: .relaxed)
    return next
  }

  /// Repetitions stay on the grid of their deadlines, however late one of them comes.
  private func nextDeadline(after deadline: UInt64, _ scheduler: Scheduler) -> UInt64 {
    var steps: UInt64 = 1
    let now = policy == .skip ? scheduler.now : 0
    if now > deadline {
      let missed = (now - deadline) / interval
      steps += missed
      skipped.wrappingAdd(Int(clamping: missed), ordering: .relaxed)
      scheduler.counts.skipped.wrappingAdd(Int(clamping: missed), ordering: .relaxed)
    }
    let (distance, isFar) = interval.multipliedReportingOverflow(by: steps)
    let (next, isBeyond) = deadline.addingReportingOverflow(distance)
    // What is beyond the clock never comes.
    return isFar || isBeyond ? .max : next
  }
}

/// What a repeated schedule does about deadlines that have passed before it could dispatch: the
/// machine slept or was overloaded, or the first deadline lay in the past.
///
/// With either policy the deadlines stay where they are: first, first + interval, first + 2 ×
/// interval, and so on. A late dispatch shifts none of them.
public enum EventRepeatPolicy: Sendable, CaseIterable {
  /// One dispatch for all of them; the next is at the first deadline still to come. What is left
  /// out is counted (``EventScheduleHandle/skipped``).
  case skip
  /// One dispatch for each of them, one right after the other.
  case catchUp
}
