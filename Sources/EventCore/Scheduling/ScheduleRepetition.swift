// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The part of a schedule handle that only a schedule with several dispatches needs.
final class ScheduleRepetition: @unchecked Sendable {
  // Constant, except for the atomics and `remaining`, which only `fire` uses. One `fire` follows another
  // through the core, which synchronizes them.
  private let policy: EventRepeatPolicy
  private let interval: UInt64
  /// How often the event is dispatched; -1 for no limit.
  let limit: Int
  /// How many dispatches are left; -1 for no limit.
  private var remaining: Int
  /// How often the event was dispatched, while its last dispatch has not begun.
  let dispatches = Atomic<Int>(0)
  let skipped = Atomic<Int>(0)
  /// The thread that is dispatching, or 0, so that a cancel on that thread does not wait for itself.
  private let dispatchingThread = Atomic<UInt>(0)
  /// Opens when the dispatch is over during which the schedule was cancelled; made by whoever waits for that.
  let cancelled = LazyReference<Latch>()

  init(_ plan: SchedulePlan) {
    policy = plan.policy
    interval = plan.interval
    limit = plan.limit
    remaining = plan.limit
  }

  var isAtLast: Bool { remaining == 1 }

  /// Whether the calling thread is dispatching. Relaxed: a thread finds its own number only if it wrote it.
  var isDispatchingHere: Bool {
    dispatchingThread.load(ordering: .relaxed) == currentThreadNumber()
  }

  /// Before a dispatch that is not the last. Relaxed: only the numbers count.
  func begin() {
    dispatches.wrappingAdd(1, ordering: .relaxed)
    dispatchingThread.store(currentThreadNumber(), ordering: .relaxed)
  }

  /// After that dispatch. Returns the next deadline.
  func end(_ deadline: UInt64, _ scheduler: Scheduler) -> UInt64 {
    remaining -= remaining > 0 ? 1 : 0
    let next = nextDeadline(after: deadline, scheduler)
    dispatchingThread.store(0, ordering: .relaxed)
    return next
  }

  /// The next deadline: the first one plus a multiple of the interval, however late a dispatch was.
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
    // A deadline that the clock cannot express never comes.
    return isFar || isBeyond ? .max : next
  }
}

/// What a repeated schedule does about deadlines that it has missed, because the machine slept or was
/// overloaded, or because the first deadline was in the past.
///
/// With either policy a late dispatch does not shift the deadlines: first, first + interval, first + 2 ×
/// interval, and so on.
public enum EventRepeatPolicy: Sendable, CaseIterable {
  /// One dispatch for all missed deadlines, and the next one at the next deadline. The repetitions that are
  /// left out are counted (``EventScheduleHandle/skipped``).
  case skip
  /// One dispatch for each missed deadline, one right after the other.
  case catchUp
}
