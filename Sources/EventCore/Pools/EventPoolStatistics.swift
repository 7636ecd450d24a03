// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What a pool has done so far, and what its threads are doing.
public struct EventPoolStatistics: Sendable, Equatable {
  /// The threads that are there: those that take events by index, then those that are being
  /// retired.
  public var threads: [EventPoolThreadStatistics]
  /// Events that at least one callback was called for, by any thread that the pool ever had.
  public var delivered: UInt64
  /// Events that no callback was called for: none was left when they were taken, or the interests
  /// of all turned them away.
  public var skipped: UInt64
  /// Events that were freed because the pool, or a thread of it, was cancelled.
  public var cancelled: UInt64
  /// Events that found no thread left although one was there when their dispatch began. What is
  /// dispatched to a pool that has ended goes to nobody, and is not counted.
  public var refused: UInt64
}

/// What one thread of a pool is doing, at one moment.
public struct EventPoolThreadStatistics: Sendable, Equatable {
  /// The index of the thread in the pool.
  public var index: Int
  /// Events that wait for this thread alone. In a shared pool only those that were sent straight to
  /// it.
  public var waiting: Int
  /// For how long the handler that runs now has been running, to a few milliseconds; nil if none
  /// runs.
  public var runningFor: Duration?
  /// Whether it is being retired: it gets no new events, and ends once it has handled what waits.
  public var isRetiring: Bool
  /// What it has done so far.
  public var counts: EventThreadStatistics
}

extension EventPool {
  /// How many events wait in the pool, those that are being handled not counted.
  ///
  /// **Threads**: any. Exact while nothing moves, a momentary figure otherwise.
  ///
  /// **Complexity**: O(threads + events that they have not sorted into their lanes yet).
  public var eventCount: Int {
    let slots = core.slots
    return (slots.active + slots.retiring).reduce(0) { $0 + $1.thread.eventCount }
      + (core.shared?.core.depths().reduce(0, +) ?? 0)
  }

  /// What the pool has done so far, and what its threads are doing. **Threads**: any.
  public var statistics: EventPoolStatistics {
    let (active, retiring, past) = core.slotsAndPast
    var statistics = EventPoolStatistics(
      threads: active.map { describe($0, isRetiring: false) }
        + retiring.map { describe($0, isRetiring: true) },
      delivered: past.delivered, skipped: past.skipped + (core.shared?.core.supersededCount ?? 0),
      cancelled: past.cancelled + (core.shared?.core.counts().dropped ?? 0) + core.routes.dropped,
      refused: core.routes.refused)
    for thread in statistics.threads {
      statistics.delivered += thread.counts.delivered
      statistics.skipped += thread.counts.skipped
      statistics.cancelled += thread.counts.cancelled
    }
    return statistics
  }

  /// The threads whose handler has been running for longer than a time: what waits for them waits
  /// until it returns.
  ///
  /// In a balanced pool ``EventPoolThreadStatistics/waiting`` tells how much that is; in a shared
  /// pool nothing waits behind them but what was sent straight to them. The others go on either
  /// way.
  ///
  /// - Parameter limit: From how long on a handler counts as stuck.
  /// - Returns: The readings of those threads, in the order of their indices.
  ///
  /// **Threads**: any.
  public func stuckThreads(runningFor limit: Duration) -> [EventPoolThreadStatistics] {
    statistics.threads.filter { $0.runningFor.map { $0 > limit } ?? false }
  }

  private func describe(_ slot: PoolCore.Slot, isRetiring: Bool) -> EventPoolThreadStatistics {
    let since = slot.member.load.runningSince
    let now = coarseNanoseconds()
    return EventPoolThreadStatistics(
      index: slot.member.index,
      waiting: core.shared == nil ? slot.waiting : slot.thread.eventCount,
      // The mark of "running" is the lowest bit of the time: it may be ahead of the clock by one.
      runningFor: since.map { .nanoseconds(Int64(clamping: now > $0 ? now - $0 : 0)) },
      isRetiring: isRetiring, counts: slot.thread.statistics)
  }
}

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

  /// How many are kept at most; a dispatch that takes longer than the end of as many threads is not
  /// waited for.
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
