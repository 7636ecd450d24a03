// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What an event thread has done so far. Once nothing waits, the counts add up to the accepted events.
///
/// A job of an actor or a task on the thread counts as an event, and so does what a tree or another source hands over to
/// it: as delivered if it ran there, or if its handler had been removed meanwhile; otherwise as cancelled, though
/// the jobs of actors and tasks then run elsewhere.
/// So does the kept event for a handler that registers (``Eventable/keepNewest(on:maximumAge:)``): as delivered when
/// its turn has come, also if the handler's interest skips it, or something newer has made it superfluous.
public struct EventThreadStatistics: Sendable, Equatable, Codable {
  /// Events for which at least one callback was called.
  public var delivered: UInt64
  /// Events for which no callback was called: all had ended, or their interests skipped the event.
  public var skipped: UInt64
  /// Events that were freed because the thread ended.
  public var cancelled: UInt64

  /// Makes statistics by hand, for comparisons.
  public init(delivered: UInt64, skipped: UInt64, cancelled: UInt64) {
    self.delivered = delivered
    self.skipped = skipped
    self.cancelled = cancelled
  }
}
