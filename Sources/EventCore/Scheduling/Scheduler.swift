// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The scheduler of one central: its core, which is made at first use, and its counts.
///
/// It keeps events until their time and then dispatches them through the router of their `ScheduleTarget`,
/// as a user would. It does so on its own thread, on which no handler ever runs.
final class Scheduler: Sendable {
  private let kind: EventCentral.Core
  /// Nil for the monotonic clock and a thread.
  private let clock: ManualClock?
  private let made = LazyReference<Made>()
  /// Held while the core is made, so that only one thread is started. No other lock is taken within it.
  private let making = Guarded(())
  let counts = ScheduleCounts()

  private final class Made: Sendable {
    let core: any SchedulerCore
    init(_ core: any SchedulerCore) { self.core = core }
  }

  init(_ kind: EventCentral.Core, clock: ManualClock?) {
    self.kind = kind
    self.clock = clock
  }

  /// Nanoseconds on the clock that deadlines are compared with.
  var now: UInt64 { clock?.nanoseconds ?? monotonicNanoseconds() }

  /// The core; nil if nobody has scheduled anything yet.
  private var existing: (any SchedulerCore)? { made.withValue { $0.core } }

  private var core: any SchedulerCore {
    if let existing { return existing }
    return making.withLock { _ in
      if let existing { return existing }
      let new = kind.parts.makeScheduler(clock)
      clock?.attach(new)
      return made.value(or: { Made(new) }).core
    }
  }

  /// Whether anybody has scheduled anything.
  var isMade: Bool { existing != nil }

  /// For tests: returns the core without retaining it.
  var weakCore: () -> AnyObject? {
    weak let core: AnyObject? = existing
    return { core }
  }

  /// Sets a timer for the first time. If its deadline has passed, this thread fires it, but only once, since
  /// a repetition that has to catch up could occupy this thread for ever.
  func add(_ timer: EventScheduleHandle, at first: UInt64) {
    counts.scheduled.wrappingAdd(1, ordering: .relaxed)
    var deadline = first
    if first <= now {
      deadline = timer.fire(first)
      guard deadline > first else { return }
    }
    if !core.add(timer, at: deadline) {
      timer.drop()
    }
  }

  func withdraw(_ timer: EventScheduleHandle) {
    core.withdraw(timer)
  }

  /// The central ends.
  func close() {
    existing?.close()
  }
}

/// What a scheduler has done. The counts of schedules that ended are written releasing and read acquiring,
/// before `scheduled`, so that `pending`, which is their difference, is never below 0. The others are
/// relaxed, since only the numbers count.
final class ScheduleCounts: Sendable {
  let scheduled = Atomic<Int>(0)
  let dispatched = Atomic<Int>(0)
  let skipped = Atomic<Int>(0)
  // Schedules that ended with their last dispatch, a cancel, or the end of the central.
  let finished = Atomic<Int>(0)
  let cancelled = Atomic<Int>(0)
  let dropped = Atomic<Int>(0)

  var statistics: EventScheduleStatistics {
    let finished = finished.load(ordering: .acquiring)
    let cancelled = cancelled.load(ordering: .acquiring)
    let dropped = dropped.load(ordering: .acquiring)
    return EventScheduleStatistics(
      pending: scheduled.load(ordering: .relaxed) - finished - cancelled - dropped,
      dispatched: dispatched.load(ordering: .relaxed), skipped: skipped.load(ordering: .relaxed),
      cancelled: cancelled, dropped: dropped)
  }
}

/// What the scheduler of a central has done so far.
public struct EventScheduleStatistics: Sendable, Equatable {
  /// Schedules that wait for their deadline, or for the next one.
  public var pending: Int
  /// Dispatches at their time; each repetition counts.
  public var dispatched: Int
  /// Repetitions that ``EventRepeatPolicy/skip`` left out.
  public var skipped: Int
  /// Schedules that were cancelled.
  public var cancelled: Int
  /// Schedules that ended with their central.
  public var dropped: Int

  /// Makes statistics to compare with.
  public init(pending: Int, dispatched: Int, skipped: Int, cancelled: Int, dropped: Int) {
    self.pending = pending
    self.dispatched = dispatched
    self.skipped = skipped
    self.cancelled = cancelled
    self.dropped = dropped
  }
}

/// The seam between scheduling and the two cores: fires timers in the order of their deadlines, those with
/// the same deadline in the order in which they were added, and none early.
///
/// A core knows nothing of events: it calls `EventScheduleHandle.fire`, which dispatches.
protocol SchedulerCore: AnyObject, Sendable {
  /// Makes the scheduler's thread call `timer.fire` at a deadline, or at once if that has passed, one timer
  /// at a time. If `fire` returns a later deadline, the timer is set again; otherwise the core releases it.
  /// Any thread.
  ///
  /// - Returns: False if the scheduler is closed.
  func add(_ timer: EventScheduleHandle, at deadline: UInt64) -> Bool

  /// Releases a timer that need not fire any more, at once or after the `fire` that runs. A `fire` that is
  /// about to begin may still be called. Any thread; at most once for each timer.
  func withdraw(_ timer: EventScheduleHandle)

  /// Refuses further timers, calls `drop` for those that wait, and ends the thread. Any thread, also the
  /// scheduler's own.
  func close()

  /// Fires the timers that are due, on the calling thread. Only for a scheduler with a manual clock.
  func runDue(at now: UInt64)
}
