// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension Eventable {
  /// Dispatches this event to every receiver of its type, behind events that were queued before it.
  ///
  /// - Parameters:
  ///   - priority: Which of the five queues it joins.
  ///   - central: Where its receivers are registered.
  /// - Returns: How many receivers accepted it. Each handler with `.latestOnly` or `.latestPerKey` is one more, and so
  ///   is a central that keeps the newest event of the type (``keepNewest(on:maximumAge:)``).
  ///
  /// **Threads**: any, also inside a handler. Runs no user code and waits for nobody (D5), but for what the bounds of
  /// its receivers say (<doc:BoundedMailboxes>).
  ///
  /// **Order**: first in, first out among queued events of this priority (D2); every stacked event comes
  /// before every queued one (D1).
  ///
  /// **Complexity**: O(receivers); no lock and no allocation once the calling thread is warm.
  @inlinable
  @discardableResult
  public consuming func queue(
    priority: EventPriority = .normal, on central: EventCentral = .shared
  ) -> Int {
    dispatch(self, lane: Lane(.queue, priority), through: central.router)
  }

  /// Dispatches this event to every receiver of its type, in front of events that were stacked before it.
  /// As ``queue(priority:on:)``, but for the order.
  ///
  /// **Order**: last in, first out among the events that wait when the receiver takes one (D3); before
  /// every queued event (D1).
  @inlinable
  @discardableResult
  public consuming func stack(
    priority: EventPriority = .normal, on central: EventCentral = .shared
  ) -> Int {
    dispatch(self, lane: Lane(.stack, priority), through: central.router)
  }
}

extension Sequence where Element: Eventable {
  /// Dispatches these events in their order, in batches of up to 64 that stay together. Those of a sequence that does not
  /// keep its elements side by side, as an array does, are written to the stack first, and a batch has 1 KiB at most.
  ///
  /// - Parameters:
  ///   - priority: Which of the five queues they join.
  ///   - central: Where their receivers are registered.
  /// - Returns: The sum over the events of how many receivers accepted each.
  ///
  /// **Threads**: any, also inside a handler. User code runs only in the sequence's iterator, between
  /// batches.
  ///
  /// **Order**: as if each event had been queued in turn, without other events within a batch. A balanced
  /// pool distributes a batch event by event, and other events may come in between; so they may in a mailbox that is full
  /// meanwhile, and in one with ``EventOverflowPolicy/dropOldest``.
  ///
  /// **Complexity**: O(events × receivers), at about half the cost of single dispatches.
  @inlinable
  @discardableResult
  public func queue(
    priority: EventPriority = .normal, on central: EventCentral = .shared
  ) -> Int {
    dispatchBatches(of: self, lane: Lane(.queue, priority), through: central.router)
  }

  /// Stacks these events in their order, in batches of up to 64 that stay together, so that the last of the
  /// sequence is handled first. All else is as for `queue(priority:on:)`.
  @inlinable
  @discardableResult
  public func stack(
    priority: EventPriority = .normal, on central: EventCentral = .shared
  ) -> Int {
    dispatchBatches(of: self, lane: Lane(.stack, priority), through: central.router)
  }
}
