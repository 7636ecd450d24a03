// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// When and how often an event is dispatched, before the event itself is known.
@usableFromInline
struct SchedulePlan {
  let target: ScheduleTarget
  /// The first deadline, on the scheduler's clock.
  let first: UInt64
  /// Nanoseconds; 0 for once.
  let interval: UInt64
  /// How many dispatches; -1 for no limit.
  let limit: Int
  let policy: EventRepeatPolicy
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
