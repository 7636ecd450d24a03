// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

extension EventCentral {
  /// What the scheduler of this central has done so far. **Threads**: any.
  public var scheduleStatistics: EventScheduleStatistics { scheduler.counts.statistics }

  /// Queues an event on this central at a time.
  ///
  /// Parameters, result, **Threads**, **Order**, **Time** and **Ownership** are those of
  /// ``Eventable/scheduleQueue(at:priority:on:)``.
  @inlinable
  @discardableResult
  public func scheduleQueue<E: Eventable>(
    _ event: consuming E, at deadline: DispatchTime, priority: EventPriority = .normal
  ) -> EventScheduleHandle {
    event.scheduleQueue(at: deadline, priority: priority, on: self)
  }

  /// Queues an event on this central after a while.
  ///
  /// Parameters, result, **Threads**, **Order**, **Time** and **Ownership** are those of
  /// ``Eventable/scheduleQueue(after:priority:on:)``.
  @inlinable
  @discardableResult
  public func scheduleQueue<E: Eventable>(
    _ event: consuming E, after delay: Duration, priority: EventPriority = .normal
  ) -> EventScheduleHandle {
    event.scheduleQueue(after: delay, priority: priority, on: self)
  }

  /// Queues an event on this central again and again.
  ///
  /// Parameters, result, **Threads**, **Order**, **Time** and **Ownership** are those of
  /// ``Eventable/scheduleQueue(every:first:limit:policy:priority:on:)``.
  @inlinable
  @discardableResult
  public func scheduleQueue<E: Eventable>(
    _ event: consuming E, every interval: Duration, first: DispatchTime? = nil, limit: Int? = nil,
    policy: EventRepeatPolicy = .skip, priority: EventPriority = .normal
  ) -> EventScheduleHandle {
    event.scheduleQueue(
      every: interval, first: first, limit: limit, policy: policy, priority: priority, on: self)
  }

  /// Stacks an event on this central at a time.
  ///
  /// Parameters, result, **Threads**, **Order**, **Time** and **Ownership** are those of
  /// ``Eventable/scheduleStack(at:priority:on:)``.
  @inlinable
  @discardableResult
  public func scheduleStack<E: Eventable>(
    _ event: consuming E, at deadline: DispatchTime, priority: EventPriority = .normal
  ) -> EventScheduleHandle {
    event.scheduleStack(at: deadline, priority: priority, on: self)
  }

  /// Stacks an event on this central after a while.
  ///
  /// Parameters, result, **Threads**, **Order**, **Time** and **Ownership** are those of
  /// ``Eventable/scheduleStack(after:priority:on:)``.
  @inlinable
  @discardableResult
  public func scheduleStack<E: Eventable>(
    _ event: consuming E, after delay: Duration, priority: EventPriority = .normal
  ) -> EventScheduleHandle {
    event.scheduleStack(after: delay, priority: priority, on: self)
  }

  /// Stacks an event on this central again and again.
  ///
  /// Parameters, result, **Threads**, **Order**, **Time** and **Ownership** are those of
  /// ``Eventable/scheduleStack(every:first:limit:policy:priority:on:)``.
  @inlinable
  @discardableResult
  public func scheduleStack<E: Eventable>(
    _ event: consuming E, every interval: Duration, first: DispatchTime? = nil, limit: Int? = nil,
    policy: EventRepeatPolicy = .skip, priority: EventPriority = .normal
  ) -> EventScheduleHandle {
    event.scheduleStack(
      every: interval, first: first, limit: limit, policy: policy, priority: priority, on: self)
  }
}

extension EventCentral {
  /// Queues an event on the shared central at a time.
  ///
  /// Parameters, result, **Threads**, **Order**, **Time** and **Ownership** are those of
  /// ``Eventable/scheduleQueue(at:priority:on:)``.
  @inlinable
  @discardableResult
  public static func scheduleQueue<E: Eventable>(
    _ event: consuming E, at deadline: DispatchTime, priority: EventPriority = .normal
  ) -> EventScheduleHandle {
    event.scheduleQueue(at: deadline, priority: priority, on: shared)
  }

  /// Queues an event on the shared central after a while.
  ///
  /// Parameters, result, **Threads**, **Order**, **Time** and **Ownership** are those of
  /// ``Eventable/scheduleQueue(after:priority:on:)``.
  @inlinable
  @discardableResult
  public static func scheduleQueue<E: Eventable>(
    _ event: consuming E, after delay: Duration, priority: EventPriority = .normal
  ) -> EventScheduleHandle {
    event.scheduleQueue(after: delay, priority: priority, on: shared)
  }

  /// Queues an event on the shared central again and again.
  ///
  /// Parameters, result, **Threads**, **Order**, **Time** and **Ownership** are those of
  /// ``Eventable/scheduleQueue(every:first:limit:policy:priority:on:)``.
  @inlinable
  @discardableResult
  public static func scheduleQueue<E: Eventable>(
    _ event: consuming E, every interval: Duration, first: DispatchTime? = nil, limit: Int? = nil,
    policy: EventRepeatPolicy = .skip, priority: EventPriority = .normal
  ) -> EventScheduleHandle {
    event.scheduleQueue(
      every: interval, first: first, limit: limit, policy: policy, priority: priority, on: shared)
  }

  /// Stacks an event on the shared central at a time.
  ///
  /// Parameters, result, **Threads**, **Order**, **Time** and **Ownership** are those of
  /// ``Eventable/scheduleStack(at:priority:on:)``.
  @inlinable
  @discardableResult
  public static func scheduleStack<E: Eventable>(
    _ event: consuming E, at deadline: DispatchTime, priority: EventPriority = .normal
  ) -> EventScheduleHandle {
    event.scheduleStack(at: deadline, priority: priority, on: shared)
  }

  /// Stacks an event on the shared central after a while.
  ///
  /// Parameters, result, **Threads**, **Order**, **Time** and **Ownership** are those of
  /// ``Eventable/scheduleStack(after:priority:on:)``.
  @inlinable
  @discardableResult
  public static func scheduleStack<E: Eventable>(
    _ event: consuming E, after delay: Duration, priority: EventPriority = .normal
  ) -> EventScheduleHandle {
    event.scheduleStack(after: delay, priority: priority, on: shared)
  }

  /// Stacks an event on the shared central again and again.
  ///
  /// Parameters, result, **Threads**, **Order**, **Time** and **Ownership** are those of
  /// ``Eventable/scheduleStack(every:first:limit:policy:priority:on:)``.
  @inlinable
  @discardableResult
  public static func scheduleStack<E: Eventable>(
    _ event: consuming E, every interval: Duration, first: DispatchTime? = nil, limit: Int? = nil,
    policy: EventRepeatPolicy = .skip, priority: EventPriority = .normal
  ) -> EventScheduleHandle {
    event.scheduleStack(
      every: interval, first: first, limit: limit, policy: policy, priority: priority, on: shared)
  }
}
