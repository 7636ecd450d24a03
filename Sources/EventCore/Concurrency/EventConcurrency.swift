// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// How many calls of an `async` handler may run at the same time.
public struct EventConcurrency: Sendable, Equatable {
  let limit: Int

  /// One at a time: the next call begins when the one before has returned, so that the events are handled in order.
  public static let serial = EventConcurrency(limit: 1)

  /// Up to `limit` at the same time. Their events are taken in order; the calls begin and end in any.
  ///
  /// - Parameter limit: At least 1.
  public static func concurrent(_ limit: Int) -> EventConcurrency {
    require(
      limit > 0,
      """
      A handler's concurrency is how many of its calls may run at the same time, at least 1, and this one is \
      \(limit): pass 1 or more.
      """)
    return EventConcurrency(limit: limit)
  }
}
