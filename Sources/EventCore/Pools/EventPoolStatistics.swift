// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// What a pool has done so far, and what each of its threads is doing.
public struct EventPoolStatistics: Sendable, Equatable {
  /// The threads that ``EventPool/withThreads(_:)`` lists, followed by those that are being retired.
  public var threads: [EventPoolThreadStatistics]
  /// Events for which at least one callback was called, on any thread that the pool ever had.
  public var delivered: UInt64
  /// Events for which no callback was called, because none was left when the event was taken or because
  /// the interests of all excluded it.
  public var skipped: UInt64
  /// Events that were freed because the pool or one of its threads was cancelled. What is being sent straight to a thread
  /// of a shared pool at the moment when the thread ends may be missing.
  public var cancelled: UInt64
  /// Events whose last possible receiver ended while they were being dispatched. Events that are
  /// dispatched to a pool that has ended are not counted. What full mailboxes have refused is another figure, in
  /// ``EventPool/mailboxStatistics``.
  public var refused: UInt64
}

/// What one thread of a pool is doing, at one moment.
public struct EventPoolThreadStatistics: Sendable, Equatable {
  /// The thread's index in the pool.
  public var index: Int
  /// Events that wait for this thread alone; in a shared pool those that were sent straight to it.
  public var waiting: Int
  /// How long the current handler has been running, to a few milliseconds; nil if none is running.
  public var runningFor: Duration?
  /// Whether it is being retired: it gets no new events, and ends when it has handled those that wait. So is a thread that
  /// somebody has cancelled, once the capacity is set.
  public var isRetiring: Bool
  /// What the thread has done so far.
  public var counts: EventThreadStatistics
}

extension EventPool {
  /// How many events wait in the pool, without those that are being handled.
  ///
  /// **Threads**: any. Exact while nothing is dispatched or handled, approximate otherwise.
  ///
  /// **Complexity**: O(threads + callbacks of theirs that want the latest event only).
  public var eventCount: Int {
    let slots = core.slots
    return (slots.active + slots.retiring).reduce(0) { $0 + $1.thread.eventCount }
      + (core.shared?.waiting ?? 0)
  }

  /// What the pool has done so far, and what each of its threads is doing. **Threads**: any.
  public var statistics: EventPoolStatistics {
    let (active, retiring, past) = core.slotsAndPast
    var statistics = EventPoolStatistics(
      threads: active.map { describe($0, isRetiring: false) }
        + retiring.map { describe($0, isRetiring: true) },
      delivered: past.delivered, skipped: past.skipped + (core.shared?.core.supersededCount ?? 0),
      cancelled: past.cancelled + (core.shared?.core.counts().dropped ?? 0),
      refused: core.routes.refused)
    for thread in statistics.threads {
      statistics.delivered += thread.counts.delivered
      statistics.skipped += thread.counts.skipped
      statistics.cancelled += thread.counts.cancelled
    }
    return statistics
  }

  /// What came to the mailboxes of all threads that the pool ever had, and to the one that they share, and what became
  /// of it there. **Threads**: any.
  public var mailboxStatistics: EventMailboxStatistics {
    core.mailboxStatistics + (core.shared?.statistics ?? .none)
  }

  /// The threads whose current handler has been running for longer than a limit. The other threads of
  /// the pool are not affected by it.
  ///
  /// In a balanced pool ``EventPoolThreadStatistics/waiting`` tells how many events wait for the handler
  /// to return; in a shared pool those are only the events that were sent straight to the thread.
  ///
  /// - Parameter limit: A handler that has been running for longer counts as stuck.
  /// - Returns: The statistics of those threads, in the order of ``EventPoolStatistics/threads``.
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
      // The lowest bit of the time marks "running", so the time may be 1 ns ahead of the clock.
      runningFor: since.map { .nanoseconds(Int64(clamping: now > $0 ? now - $0 : 0)) },
      isRetiring: isRetiring, counts: slot.thread.statistics)
  }
}

/// What those threads of a pool have done that have ended.
///
/// A dispatch that began before the end of its thread may finish after it: then the dispatching thread
/// frees the event and counts it. So a consumer is kept until all of its promises are accounted for.
struct PoolPast {
  private var settled = ReceiverReading()
  private var settledJobs: UInt64 = 0
  private var unsettled: [(member: PoolMember, consumer: Consumer)] = []
  /// Events that these threads handled.
  private(set) var handled: UInt64 = 0

  /// The most consumers that are kept. The oldest goes first, even if a dispatch has not finished.
  private static let limit = 64

  /// Adds a thread that has ended.
  ///
  /// - Parameter isCounted: Whether its events were promised to it. Those of a shared mailbox are not.
  mutating func add(_ member: PoolMember, _ consumer: Consumer, isCounted: Bool) {
    handled += member.load.done
    if isCounted {
      unsettled.append((member, consumer))
      settle()
    } else {
      settle(consumer)
    }
  }

  /// As `WorkElsewhere.jobs`.
  var jobs: UInt64 { unsettled.reduce(settledJobs) { $0 + $1.consumer.keptJobs.load(ordering: .relaxed) } }

  var statistics: EventThreadStatistics {
    mutating get {
      settle()
      return unsettled.reduce(settled.counts) { $0 + $1.consumer.statistics }
    }
  }

  var mailboxes: EventMailboxStatistics {
    mutating get {
      settle()
      return unsettled.reduce(settled.mailbox) { $0 + $1.consumer.mailboxStatistics }
    }
  }

  private mutating func settle() {
    var settled: [Consumer] = []
    unsettled.removeAll { member, consumer in
      let statistics = consumer.statistics
      // A job is promised as it begins. One that is being dropped may count as a job first: then the sums differ, as they
      // should. Of one that the ending mailbox has refused they differ for good, and the consumer is kept as long as the
      // limit allows.
      let dropped = statistics.cancelled &- consumer.droppedJobs.load(ordering: .relaxed)
      let isSettled = member.load.promised == member.load.done &+ dropped
      if isSettled { settled.append(consumer) }
      return isSettled
    }
    while unsettled.count > Self.limit { settled.append(unsettled.removeFirst().consumer) }
    for consumer in settled { settle(consumer) }
  }

  private mutating func settle(_ consumer: Consumer) {
    settled = settled + consumer.lastFigures
    settledJobs += consumer.keptJobs.load(ordering: .relaxed)
  }
}

extension EventThreadStatistics {
  static let none = EventThreadStatistics(delivered: 0, skipped: 0, cancelled: 0)

  static func + (lhs: EventThreadStatistics, rhs: EventThreadStatistics) -> EventThreadStatistics {
    EventThreadStatistics(
      delivered: lhs.delivered + rhs.delivered, skipped: lhs.skipped + rhs.skipped,
      cancelled: lhs.cancelled + rhs.cancelled)
  }
}

extension EventPool: EventReceiver {
  /// As ``statistics``, without the single threads.
  public var receiverStatistics: EventThreadStatistics {
    let statistics = statistics
    return EventThreadStatistics(
      delivered: statistics.delivered, skipped: statistics.skipped, cancelled: statistics.cancelled)
  }
  public var waitingEventCount: Int { eventCount }
  public var handlerRunningFor: Duration? { statistics.threads.compactMap(\.runningFor).max() }
}

extension EventPool: WorkingElsewhere {
  package var elsewhere: WorkElsewhere { WorkElsewhere(ownListener) + core.elsewhere }
}
