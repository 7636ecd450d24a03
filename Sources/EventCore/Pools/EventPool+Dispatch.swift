// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventPool {
  /// Queues an event for this pool alone: one of its threads handles it.
  ///
  /// - Returns: False if nobody gets it: the pool has ended, or has no callback for the type.
  ///
  /// **Threads**, **Order**: as ``Eventable/queue(priority:on:)``.
  @inlinable
  @discardableResult
  public func queueEvent<E: Eventable>(
    _ event: consuming E, priority: EventPriority = .normal
  ) -> Bool {
    dispatch(event, lane: Lane(.queue, priority), through: direct) != 0
  }

  /// Stacks an event for this pool alone: one of its threads handles it.
  ///
  /// - Returns: False if nobody gets it: the pool has ended, or has no callback for the type.
  ///
  /// **Threads**, **Order**: as ``Eventable/stack(priority:on:)``.
  @inlinable
  @discardableResult
  public func stackEvent<E: Eventable>(
    _ event: consuming E, priority: EventPriority = .normal
  ) -> Bool {
    dispatch(event, lane: Lane(.stack, priority), through: direct) != 0
  }
}
