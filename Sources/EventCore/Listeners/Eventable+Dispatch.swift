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
  /// **Order**: last in, first out among what is there when the receiver takes (D3); before every
  /// queued event (D1). All else is as for ``queue(priority:on:)``.
  @inlinable
  @discardableResult
  public consuming func stack(
    priority: EventPriority = .normal, on central: EventCentral = .shared
  ) -> Int {
    dispatch(self, lane: Lane(.stack, priority), through: central.router)
  }
}

extension Sequence where Element: Eventable {
  /// Dispatches these events in their order, in batches of up to 64 that stay together.
  ///
  /// - Parameters:
  ///   - priority: Which of the five queues they join.
  ///   - central: Where their receivers are registered.
  /// - Returns: How often an event was accepted by a receiver, in all.
  ///
  /// **Threads**: any, also inside a handler. The sequence's own iterator is the only user code
  /// that runs, and it runs between batches.
  ///
  /// **Order**: as if each had been queued in turn, with nobody else's events within a batch. A
  /// pool that balances shares a batch out event by event, and others' may come in between.
  ///
  /// **Complexity**: O(events × receivers), at about half the cost of single dispatches.
  @inlinable
  @discardableResult
  public func queue(
    priority: EventPriority = .normal, on central: EventCentral = .shared
  ) -> Int {
    dispatchBatches(of: self, lane: Lane(.queue, priority), through: central.router)
  }

  /// Stacks these events in their order, in batches of up to 64 that stay together: the last of the
  /// sequence is the first to be handled.
  ///
  /// All else is as for `queue(priority:on:)`.
  @inlinable
  @discardableResult
  public func stack(
    priority: EventPriority = .normal, on central: EventCentral = .shared
  ) -> Int {
    dispatchBatches(of: self, lane: Lane(.stack, priority), through: central.router)
  }
}
