// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import Synchronization

/// Where scheduled events go, a central, an event thread, a pump, a pool or a listener, and the scheduler of its
/// central. A schedule retains this object, but neither the central nor the thread, pump, pool or listener.
@usableFromInline
final class ScheduleTarget: Sendable {
  let scheduler: Scheduler
  let router: any RouterCore
  /// The same, if the central has a carrier.
  private let carrying: CarryingRouter?
  /// Of the target of one schedule: the one from which it was made.
  private let origin: ScheduleTarget?
  private let ended = Atomic<Bool>(false)

  init(_ scheduler: Scheduler, _ router: any RouterCore, of origin: ScheduleTarget? = nil) {
    self.scheduler = scheduler
    self.router = router
    self.origin = origin
    carrying = router as? CarryingRouter
  }

  /// The target of one schedule: its events carry what whoever makes the schedule has.
  private var present: ScheduleTarget {
    carrying.map { ScheduleTarget(scheduler, $0.withPresentValue(), of: self) } ?? self
  }

  /// Notes that its receiver has ended. Any thread.
  func end() { ended.store(true, ordering: .relaxed) }

  /// Whether its receiver has ended, as that of a central never does before the scheduler. Relaxed: a schedule that has not
  /// seen it yet reaches nobody.
  var hasEnded: Bool { (origin ?? self).ended.load(ordering: .relaxed) }

  /// The plan for one dispatch at a time.
  @usableFromInline
  func plan(at deadline: DispatchTime) -> SchedulePlan {
    SchedulePlan(target: present, first: deadline.uptimeNanoseconds)
  }

  /// The plan for one dispatch after a delay.
  @usableFromInline
  func plan(after delay: Duration) -> SchedulePlan {
    SchedulePlan(target: present, first: time(after: delay))
  }

  /// The plan for repeated dispatches.
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
      target: present, first: first?.uptimeNanoseconds ?? time(after: interval),
      interval: interval.wholeNanoseconds, limit: limit ?? -1, policy: policy)
  }

  /// The time after a delay, at most the last one that the clock can express, which never comes.
  private func time(after delay: Duration) -> UInt64 { later(scheduler.now, by: delay) }
}

extension Duration {
  /// Rounded up, so that nothing is early; 0 for a negative duration, and at most `UInt64.max`.
  var wholeNanoseconds: UInt64 {
    guard self > .zero else { return 0 }
    // `components` traps for longer durations.
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
  /// In nanoseconds; 0 for one dispatch.
  var interval: UInt64 = 0
  /// How many dispatches; -1 for no limit.
  var limit = 1
  var policy = EventRepeatPolicy.skip
}

/// A handle that also stores the event, so that both take one allocation: 96 bytes with an event of 24.
@usableFromInline
final class ScheduledEvent<E: Eventable>: EventScheduleHandle, @unchecked Sendable {
  // Only the thread that owns the event by the handle's phase uses `event`; the rest is constant.
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
    // An event without references is not written to, which saves fetching its cache line.
    if _isPOD(E.self) { return }
    event = nil
  }
}

/// Makes the handle of a schedule and sets its timer: all verbs come here.
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
