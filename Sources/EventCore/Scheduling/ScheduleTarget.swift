// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// Where scheduled events go: a central, or an event thread, a pool or a listener of one's own, each by
/// the scheduler of its central. A schedule keeps it, and neither the central nor the thread.
@usableFromInline
final class ScheduleTarget: Sendable {
  let scheduler: Scheduler
  let router: any RouterCore

  init(_ scheduler: Scheduler, _ router: any RouterCore) {
    self.scheduler = scheduler
    self.router = router
  }

  /// Once, at a time.
  @usableFromInline
  func plan(at deadline: DispatchTime) -> SchedulePlan {
    SchedulePlan(target: self, first: deadline.uptimeNanoseconds)
  }

  /// Once, a while from now.
  @usableFromInline
  func plan(after delay: Duration) -> SchedulePlan {
    SchedulePlan(target: self, first: time(after: delay))
  }

  /// Again and again.
  @usableFromInline
  func plan(
    every interval: Duration, first: DispatchTime?, limit: Int?, policy: EventRepeatPolicy
  ) -> SchedulePlan {
    require(
      interval > .zero,
      """
      A schedule repeats after a time that is greater than 0, and this one would after \(interval): \
      pass a positive duration, or schedule once with `at` or `after`.
      """)
    require(
      limit ?? 1 >= 1,
      """
      A limit is how often an event is dispatched, at least once, and this one is \(limit ?? 1): pass \
      1 or more, or nil for no limit.
      """)
    return SchedulePlan(
      target: self, first: first?.uptimeNanoseconds ?? time(after: interval),
      interval: interval.wholeNanoseconds, limit: limit ?? -1, policy: policy)
  }

  /// What is beyond the clock never comes; what is negative has come.
  private func time(after delay: Duration) -> UInt64 {
    let (time, isBeyond) = scheduler.now.addingReportingOverflow(delay.wholeNanoseconds)
    return isBeyond ? .max : time
  }
}

extension Duration {
  /// Rounded up, so that nothing is early; 0 for negative durations, capped at what 64 bits hold.
  var wholeNanoseconds: UInt64 {
    guard self > .zero else { return 0 }
    // `components` traps for more.
    guard self < .seconds(Int64.max) else { return .max }
    let (seconds, attoseconds) = components
    let (whole, isFar) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
    let part = (UInt64(attoseconds) + 999_999_999) / 1_000_000_000
    let (sum, isBeyond) = whole.addingReportingOverflow(part)
    return isFar || isBeyond ? .max : sum
  }
}

/// When and how often an event is dispatched, before the event itself is known.
@usableFromInline
struct SchedulePlan {
  let target: ScheduleTarget
  /// The first deadline, on the scheduler's clock.
  let first: UInt64
  /// Nanoseconds; 0 for once.
  var interval: UInt64 = 0
  /// How many dispatches; -1 for no limit.
  var limit = 1
  var policy = EventRepeatPolicy.skip
}

/// The handle with its event in it: one allocation for both, 96 bytes with an event of 24.
@usableFromInline
final class ScheduledEvent<E: Eventable>: EventScheduleHandle, @unchecked Sendable {
  // `event` is touched by the owner of the handle's phase alone; the rest is constant.
  @usableFromInline var event: E?
  @usableFromInline let lane: Lane

  @inlinable
  init(_ event: consuming E, _ lane: Lane, _ plan: SchedulePlan) {
    self.event = event
    self.lane = lane
    super.init(plan)
  }

  @inlinable
  override func post(isLast: Bool) {
    if isLast {
      guard let event = event.take() else { return }
      dispatch(event, lane: lane, through: router)
    } else {
      guard let event else { return }
      dispatch(event, lane: lane, through: router)
    }
  }

  @inlinable
  override func freeEvent() {
    // What holds nothing need not be written: its line may be far away.
    if _isPOD(E.self) { return }
    event = nil
  }
}

/// The one way in for all verbs: makes the handle and sets its timer.
@inlinable
func schedule<E: Eventable>(
  _ event: consuming E, lane: Lane, _ plan: SchedulePlan
) -> EventScheduleHandle {
  let handle = ScheduledEvent(event, lane, plan)
  begin(handle, plan)
  return handle
}

@usableFromInline
func begin(_ handle: EventScheduleHandle, _ plan: SchedulePlan) {
  plan.target.scheduler.add(handle, at: plan.first)
}
