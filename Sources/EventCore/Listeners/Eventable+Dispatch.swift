// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension Eventable {
  /// Dispatches this event to every receiver of its type, behind those that were queued before it.
  ///
  /// - Parameters:
  ///   - priority: Which of the five queues it joins.
  ///   - central: Where its receivers are registered.
  /// - Returns: How many receivers accepted it.
  ///
  /// **Threads**: any, also inside a handler. Runs no user code and waits for nobody (D5).
  ///
  /// **Order**: first in, first out among the events of this priority that are queued (D2); every
  /// stacked event comes before every queued one (D1).
  ///
  /// **Complexity**: O(receivers); no lock and no allocation once the calling thread is warm.
  @inlinable
  @discardableResult
  public consuming func queue(
    priority: EventPriority = .normal, on central: EventCentral = .shared
  ) -> Int {
    dispatch(self, lane: Lane(.queue, priority), through: central.router)
  }

  /// Dispatches this event to every receiver of its type, before those that were stacked before it.
  ///
  /// - Parameters:
  ///   - priority: Which of the five stacks it joins.
  ///   - central: Where its receivers are registered.
  /// - Returns: How many receivers accepted it.
  ///
  /// **Threads**: any, also inside a handler. Runs no user code and waits for nobody (D5).
  ///
  /// **Order**: last in, first out among what is there when the receiver takes (D3); before every
  /// queued event (D1).
  ///
  /// **Complexity**: O(receivers); no lock and no allocation once the calling thread is warm.
  @inlinable
  @discardableResult
  public consuming func stack(
    priority: EventPriority = .normal, on central: EventCentral = .shared
  ) -> Int {
    dispatch(self, lane: Lane(.stack, priority), through: central.router)
  }
}
