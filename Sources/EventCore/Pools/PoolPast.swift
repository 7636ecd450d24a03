// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What the threads of a pool that have ended have done.
///
/// A dispatch that began before its thread's end may come after it; its event is freed by whoever
/// dispatched, and counted then. So a consumer is kept until all that was promised to it is
/// accounted for.
struct PoolPast {
  private var settled = EventThreadStatistics(delivered: 0, skipped: 0, cancelled: 0)
  private var unsettled: [(member: PoolMember, consumer: Consumer)] = []
  /// Events that these threads handled.
  private(set) var handled: UInt64 = 0

  /// So many are kept at most; a dispatch that takes longer than this is not waited for.
  private static let limit = 64

  /// - Parameter isCounted: Whether what it got was promised to it: not what it took from a shared
  ///   mailbox.
  mutating func add(_ member: PoolMember, _ consumer: Consumer, isCounted: Bool) {
    handled += member.load.done
    if isCounted {
      unsettled.append((member, consumer))
      settle()
    } else {
      settled = settled + consumer.statistics
    }
  }

  var statistics: EventThreadStatistics {
    mutating get {
      settle()
      return unsettled.reduce(settled) { $0 + $1.consumer.statistics }
    }
  }

  private mutating func settle() {
    unsettled.removeAll { member, consumer in
      let statistics = consumer.statistics
      let accounted =
        member.load.done + consumer.mailbox.supersededCount + statistics.cancelled
      let isSettled = member.load.promised == accounted
      if isSettled { settled = settled + statistics }
      return isSettled
    }
    while unsettled.count > Self.limit {
      settled = settled + unsettled.removeFirst().consumer.statistics
    }
  }
}

extension EventThreadStatistics {
  static func + (lhs: EventThreadStatistics, rhs: EventThreadStatistics) -> EventThreadStatistics {
    EventThreadStatistics(
      delivered: lhs.delivered + rhs.delivered, skipped: lhs.skipped + rhs.skipped,
      cancelled: lhs.cancelled + rhs.cancelled)
  }
}
