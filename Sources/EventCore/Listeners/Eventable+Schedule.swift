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
  ///   - deadline: When, such as `.now() + .seconds(4)`. If it has passed, the event is dispatched at once
  ///     on the calling thread; `.distantFuture` never comes.
  ///   - priority: Which of the five queues it joins.
  ///   - receiver: Where it is dispatched: on a central, for all receivers that it has at that time, or to
  ///     one event thread, one pump (``EventPump/place``), one pool, or one listener of your own.
  /// - Returns: A handle that cancels it. You may ignore it.
  ///
  /// **Threads**: any, also inside a handler; waits for nobody, but as a dispatch does if the deadline has passed. The
  /// central's scheduler thread dispatches the event.
  ///
  /// **Order**: earlier deadlines first, equal ones in the order in which they were scheduled. Never early.
  /// An event whose deadline has passed waits for no other.
  ///
  /// **Time**: a handler's `dispatchTime` is when the event was dispatched, at the deadline or shortly
  /// after it (D8).
  ///
  /// **Ownership**: the schedule retains the event, and neither the central nor the receiver. If the central ends first,
  /// the event is freed and counted; if the thread, pump, pool or listener does, at the next deadline.
  ///
  /// **Complexity**: O(log pending). With ``EventCentral/Timers/pumps`` one that is due before all others also tells
  /// each pump of the central, as does a run in which an event is due.
  @inlinable
  @discardableResult
  public consuming func scheduleQueue(
    at deadline: DispatchTime, priority: EventPriority = .normal,
    on receiver: any EventListenable = EventCentral.shared
  ) -> EventScheduleHandle {
    schedule(self, lane: Lane(.queue, priority), receiver.listener.target.plan(at: deadline))
  }

  /// Queues this event after a delay. All else is as for ``scheduleQueue(at:priority:on:)``.
  ///
  /// - Parameters:
  ///   - delay: How long from now. If zero or less, the event is dispatched at once on the calling thread.
  ///   - priority: Which of the five queues it joins.
  ///   - receiver: Where it is dispatched.
  /// - Returns: A handle that cancels it. You may ignore it.
  @inlinable
  @discardableResult
  public consuming func scheduleQueue(
    after delay: Duration, priority: EventPriority = .normal,
    on receiver: any EventListenable = EventCentral.shared
  ) -> EventScheduleHandle {
    schedule(self, lane: Lane(.queue, priority), receiver.listener.target.plan(after: delay))
  }

  /// Queues this event repeatedly. All else is as for ``scheduleQueue(at:priority:on:)``.
  ///
  /// The deadlines do not drift: `first`, `first + interval`, `first + 2 * interval`, and so on.
  ///
  /// - Parameters:
  ///   - interval: The time between two deadlines; more than 0, or it traps.
  ///   - first: The first deadline; nil is one interval from now. If it has passed, the event is dispatched
  ///     at once on the calling thread; the scheduler deals with the other missed deadlines.
  ///   - limit: How often the event is dispatched, at least 1; nil for no end.
  ///   - policy: Whether missed deadlines are made up for.
  ///   - priority: Which of the five queues it joins.
  ///   - receiver: Where it is dispatched.
  /// - Returns: A handle that ends the repetition. You may ignore it: without a limit it lasts until the receiver or the
  ///   central ends.
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
  @inlinable
  @discardableResult
  public consuming func scheduleStack(
    at deadline: DispatchTime, priority: EventPriority = .normal,
    on receiver: any EventListenable = EventCentral.shared
  ) -> EventScheduleHandle {
    schedule(self, lane: Lane(.stack, priority), receiver.listener.target.plan(at: deadline))
  }

  /// Stacks this event after a delay. All else is as for ``scheduleQueue(after:priority:on:)``.
  @inlinable
  @discardableResult
  public consuming func scheduleStack(
    after delay: Duration, priority: EventPriority = .normal,
    on receiver: any EventListenable = EventCentral.shared
  ) -> EventScheduleHandle {
    schedule(self, lane: Lane(.stack, priority), receiver.listener.target.plan(after: delay))
  }

  /// Stacks this event repeatedly. All else is as for
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
