// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What came to a mailbox, and what became of it there. Exact while nothing is dispatched or handled; otherwise
/// a momentary reading, whose parts may be some events apart. Of one mailbox, ``refused``, ``dropped`` and
/// ``highWaterMark`` never fall, and ``highWaterMark`` does not exceed its bound. ``waiting`` may, by what takes no place
/// (<doc:BoundedMailboxes>), which ``highWaterMark`` leaves out.
public struct EventMailboxStatistics: Sendable, Equatable, Codable {
  /// Events that were accepted, including those that were dropped or superseded afterwards.
  public var accepted: UInt64
  /// Events that found a bounded mailbox full and were not accepted. Of an array during whose dispatch the mailbox
  /// closed, the rest may count here, too.
  public var refused: UInt64
  /// Accepted events that the overflow policy of a bounded mailbox dropped.
  public var dropped: UInt64
  /// Events that wait: how far the receiver lags behind. Those that an `async` listener has taken wait until their call
  /// begins.
  public var waiting: Int
  /// The largest number of events that have waited in a bounded mailbox at one time; 0 in an unbounded one, which
  /// does not measure it. For several mailboxes: the largest of them.
  public var highWaterMark: Int

  /// Makes statistics by hand, for comparisons.
  public init(accepted: UInt64, refused: UInt64, dropped: UInt64, waiting: Int, highWaterMark: Int) {
    self.accepted = accepted
    self.refused = refused
    self.dropped = dropped
    self.waiting = waiting
    self.highWaterMark = highWaterMark
  }

  static let none = EventMailboxStatistics(accepted: 0, refused: 0, dropped: 0, waiting: 0, highWaterMark: 0)

  /// Of several mailboxes.
  static func + (lhs: Self, rhs: Self) -> Self {
    EventMailboxStatistics(
      accepted: lhs.accepted + rhs.accepted, refused: lhs.refused + rhs.refused,
      dropped: lhs.dropped + rhs.dropped, waiting: lhs.waiting + rhs.waiting,
      highWaterMark: max(lhs.highWaterMark, rhs.highWaterMark))
  }
}

/// What a bounded mailbox counts.
@usableFromInline
struct OverflowCounts {
  var refused: UInt64 = 0
  var dropped: UInt64 = 0
  var highWaterMark: UInt64 = 0
}
