// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventThread {
  /// How many events wait for this thread.
  ///
  /// **Threads**: any. Exact while nothing is dispatched or handled, approximate otherwise.
  ///
  /// **Complexity**: O(callbacks of the thread that want the latest event only).
  public var eventCount: Int { consumer.mailbox.waiting }

  /// How many events wait in one lane.
  ///
  /// - Parameters:
  ///   - priority: The priority of the lane.
  ///   - method: Whether it is a queue or a stack.
  /// - Returns: The number, as exact as ``eventCount``.
  ///
  /// **Threads**, **Complexity**: as ``eventCount``.
  public func eventCount(priority: EventPriority, method: EventDispatchMethod) -> Int {
    consumer.mailbox.depths()[Int(Lane(method, priority).index)]
  }

  /// What the thread has done so far. **Threads**: any.
  public var statistics: EventThreadStatistics { consumer.statistics }

  /// What came to the thread's own mailbox, and what became of it there. **Threads**: any.
  public var mailboxStatistics: EventMailboxStatistics { consumer.mailboxStatistics }
}

extension EventThread: EventReceiver {
  /// Its name, which is that of its class if it has none.
  public var receiverName: String { consumer.probe.name }

  /// As ``statistics``.
  public var receiverStatistics: EventThreadStatistics { statistics }
}
