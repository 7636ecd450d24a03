// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

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
