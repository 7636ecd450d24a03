// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventThread {
  /// Queues an event for this thread alone.
  ///
  /// - Parameters:
  ///   - event: What to dispatch.
  ///   - priority: Which of the five queues it joins.
  /// - Returns: False if nobody gets it: the thread has ended, has no callback for the type, or is full and refuses it.
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
  /// The order is that of ``Eventable/stack(priority:on:)``; all else is as for
  /// ``queueEvent(_:priority:)``.
  @inlinable
  @discardableResult
  public func stackEvent<E: Eventable>(
    _ event: consuming E, priority: EventPriority = .normal
  ) -> Bool {
    dispatch(event, lane: Lane(.stack, priority), through: direct) != 0
  }
}
