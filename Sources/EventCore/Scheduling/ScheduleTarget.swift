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
    SchedulePlan(
      target: self, first: deadline.uptimeNanoseconds, interval: 0, limit: 1, policy: .skip)
  }

  /// Once, a while from now.
  @usableFromInline
  func plan(after delay: Duration) -> SchedulePlan {
    SchedulePlan(
      target: self, first: time(after: delay), interval: 0, limit: 1, policy: .skip)
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
