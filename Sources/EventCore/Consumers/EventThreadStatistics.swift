// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What an event thread has done so far. Once nothing waits, the three add up to the events that it
/// accepted.
public struct EventThreadStatistics: Sendable, Equatable {
  /// Events that at least one callback was called for.
  public var delivered: UInt64
  /// Events that no callback was called for: none was left when they were taken, or the interests
  /// of all turned them away.
  public var skipped: UInt64
  /// Events that were freed because the thread ended.
  public var cancelled: UInt64

  /// Makes a reading to compare with.
  public init(delivered: UInt64, skipped: UInt64, cancelled: UInt64) {
    self.delivered = delivered
    self.skipped = skipped
    self.cancelled = cancelled
  }
}
