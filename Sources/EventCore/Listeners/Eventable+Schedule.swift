// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

extension Eventable {
  /// Queues this event at a time.
  ///
  /// ```swift
  /// reminder.scheduleQueue(at: .now() + .seconds(4), priority: .highest)
  /// ```
  ///
  /// - Parameters:
  ///   - deadline: When, as `DispatchTime.now() + .seconds(4)`. If it has passed, the event is
  ///     dispatched at once on the calling thread; `.distantFuture` never comes.
  ///   - priority: Which of the five queues it joins.
  ///   - receiver: Who gets it: all receivers that a central has at the time of the dispatch, or one
  ///     event thread, one pool, or one listener of your own.
  /// - Returns: A handle that cancels it; it may be ignored.
  ///
  /// **Threads**: any, also inside a handler; waits for nobody. The event is dispatched on the
  /// scheduler's thread of the central.
  ///
  /// **Order**: earlier deadlines first, equal ones in the order in which they were scheduled; what
  /// has passed when it is scheduled waits for none of them. Never early.
  ///
  /// **Time**: a handler's `dispatchTime` is when the event was really dispatched, at the deadline
  /// or a little after it (D8).
  ///
  /// **Ownership**: the schedule keeps the event, and not the central: if that is released first,
  /// the event is freed and counted. If the thread, the pool or the listener that it is for is gone
  /// before, nobody gets it; a repetition goes on, so keep its handle and cancel it.
  ///
  /// **Complexity**: O(log pending).
  @inlinable
  @discardableResult
  public consuming func scheduleQueue(
    at deadline: DispatchTime, priority: EventPriority = .normal,
    on receiver: any EventListenable = EventCentral.shared
  ) -> EventScheduleHandle {
    schedule(self, lane: Lane(.queue, priority), receiver.listener.target.plan(at: deadline))
  }

  /// Queues this event after a while.
  ///
  /// - Parameters:
  ///   - delay: How long from now. Zero and negative durations have passed already: the event is
  ///     dispatched at once on the calling thread.
  ///   - priority: Which of the five queues it joins.
  ///   - receiver: Who gets it, as for the form with a time.
  /// - Returns: A handle that cancels it; it may be ignored.
  ///
  /// **Threads**, **Order**, **Time**, **Ownership**, **Complexity**: as
  /// ``scheduleQueue(at:priority:on:)``.
  @inlinable
  @discardableResult
  public consuming func scheduleQueue(
    after delay: Duration, priority: EventPriority = .normal,
    on receiver: any EventListenable = EventCentral.shared
  ) -> EventScheduleHandle {
    schedule(self, lane: Lane(.queue, priority), receiver.listener.target.plan(after: delay))
  }

  /// Queues this event again and again.
  ///
  /// The deadlines do not drift: `first`, `first + interval`, `first + 2 * interval`, and so on.
  ///
  /// - Parameters:
  ///   - interval: From one deadline to the next; more than 0, or it traps.
  ///   - first: The first deadline; nil is one interval from now. One that has passed is dispatched
  ///     at once on the calling thread; what else was missed, by the scheduler.
  ///   - limit: How often the event is dispatched, at least 1; nil for no end.
  ///   - policy: Whether deadlines that have passed before they could be dispatched are made up for.
  ///   - priority: Which of the five queues it joins.
  ///   - receiver: Who gets it, as for the form with a time.
  /// - Returns: A handle that ends the repetition; it may be ignored.
  ///
  /// **Threads**, **Order**, **Time**, **Ownership**, **Complexity**: as
  /// ``scheduleQueue(at:priority:on:)``.
  @inlinable
  @discardableResult
  public consuming func scheduleQueue(
    every interval: Duration, first: DispatchTime? = nil, limit: Int? = nil,
    policy: EventRepeatPolicy = .skip, priority: EventPriority = .normal,
    on receiver: any EventListenable = EventCentral.shared
  ) -> EventScheduleHandle {
    schedule(
      self, lane: Lane(.queue, priority),
      receiver.listener.target.plan(every: interval, first: first, limit: limit, policy: policy))
  }

  /// Stacks this event at a time. All else is as for ``scheduleQueue(at:priority:on:)``.
  ///
  /// ```swift
  /// reminder.scheduleStack(at: .now() + .seconds(4), priority: .highest)
  /// ```
  @inlinable
  @discardableResult
  public consuming func scheduleStack(
    at deadline: DispatchTime, priority: EventPriority = .normal,
    on receiver: any EventListenable = EventCentral.shared
  ) -> EventScheduleHandle {
    schedule(self, lane: Lane(.stack, priority), receiver.listener.target.plan(at: deadline))
  }

  /// Stacks this event after a while. All else is as for ``scheduleQueue(after:priority:on:)``.
  @inlinable
  @discardableResult
  public consuming func scheduleStack(
    after delay: Duration, priority: EventPriority = .normal,
    on receiver: any EventListenable = EventCentral.shared
  ) -> EventScheduleHandle {
    schedule(self, lane: Lane(.stack, priority), receiver.listener.target.plan(after: delay))
  }

  /// Stacks this event again and again. All else is as for
  /// ``scheduleQueue(every:first:limit:policy:priority:on:)``.
  @inlinable
  @discardableResult
  public consuming func scheduleStack(
    every interval: Duration, first: DispatchTime? = nil, limit: Int? = nil,
    policy: EventRepeatPolicy = .skip, priority: EventPriority = .normal,
    on receiver: any EventListenable = EventCentral.shared
  ) -> EventScheduleHandle {
    schedule(
      self, lane: Lane(.stack, priority),
      receiver.listener.target.plan(every: interval, first: first, limit: limit, policy: policy))
  }
}
