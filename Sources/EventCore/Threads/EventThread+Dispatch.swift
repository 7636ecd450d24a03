// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventThread {
  /// Queues an event for this thread alone.
  ///
  /// - Parameters:
  ///   - event: What to dispatch.
  ///   - priority: Which of the five queues it joins.
  /// - Returns: False if nobody gets it: the thread has ended, or has no callback for the type.
  ///
  /// **Threads**, **Order**, **Complexity**: as ``Eventable/queue(priority:on:)``.
  @inlinable
  @discardableResult
  public func queueEvent<E: Eventable>(
    _ event: consuming E, priority: EventPriority = .normal
  ) -> Bool {
    dispatch(event, lane: Lane(.queue, priority), through: direct) != 0
  }

  /// Stacks an event for this thread alone.
  ///
  /// All else is as for ``queueEvent(_:priority:)``, but for the order: that of ``Eventable/stack(priority:on:)``.
  @inlinable
  @discardableResult
  public func stackEvent<E: Eventable>(
    _ event: consuming E, priority: EventPriority = .normal
  ) -> Bool {
    dispatch(event, lane: Lane(.stack, priority), through: direct) != 0
  }
}
