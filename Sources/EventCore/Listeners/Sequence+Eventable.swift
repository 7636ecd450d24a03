// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

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
  /// All else is as for ``Swift/Sequence/queue(priority:on:)``.
  @inlinable
  @discardableResult
  public func stack(
    priority: EventPriority = .normal, on central: EventCentral = .shared
  ) -> Int {
    dispatchBatches(of: self, lane: Lane(.stack, priority), through: central.router)
  }
}
