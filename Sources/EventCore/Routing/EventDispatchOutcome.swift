// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What became of an event at its receivers: how many of them did what with it. They add up to the receivers.
///
/// ```swift
/// let outcome = Score(points: 3).queueWithOutcome()
/// if outcome.refused > 0 { throttle() }
/// ```
public struct EventDispatchOutcome: Sendable, Equatable {
  /// At so many it waits to be handled.
  public var accepted = 0
  /// So many were full, and refused it.
  public var refused = 0
  /// So many accepted it, and dropped it at once by their overflow policy.
  public var dropped = 0
  /// So many of those that accepted it dropped an earlier event in its favour. These do not add to the sum.
  public var displaced = 0
  /// So many have ended since the dispatch began.
  public var ended = 0

  /// Makes an outcome without receivers.
  public init() {}
}

extension Eventable {
  /// Dispatches this event as ``queue(priority:on:)``, and says what became of it at each receiver.
  ///
  /// - Parameters:
  ///   - priority: Which of the five queues it joins.
  ///   - central: Where its receivers are registered.
  /// - Returns: How many receivers did what with it.
  ///
  /// **Threads**, **Order**: as ``queue(priority:on:)``. **Complexity**: as there, without the short way for a
  /// single receiver: some 10 ns more.
  @inlinable
  public consuming func queueWithOutcome(
    priority: EventPriority = .normal, on central: EventCentral = .shared
  ) -> EventDispatchOutcome {
    dispatchWithOutcome(self, lane: Lane(.queue, priority), through: central.router)
  }

  /// Dispatches this event as ``stack(priority:on:)``, and says what became of it at each receiver. All else is as
  /// for ``queueWithOutcome(priority:on:)``.
  @inlinable
  public consuming func stackWithOutcome(
    priority: EventPriority = .normal, on central: EventCentral = .shared
  ) -> EventDispatchOutcome {
    dispatchWithOutcome(self, lane: Lane(.stack, priority), through: central.router)
  }
}
