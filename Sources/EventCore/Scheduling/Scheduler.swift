// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The scheduler of one central: its core, made at first use, and its counts.
///
/// It is a source in front of a router, as the user is: it holds events until their time and then
/// dispatches them through the router of their `ScheduleTarget`, on its own thread, which no handler
/// ever runs on.
final class Scheduler: Sendable {
  private let kind: EventCentral.Core
  /// nil: the monotonic clock and a thread.
  private let clock: ManualClock?
  /// The core, once anybody has scheduled anything.
  private let made = LazyReference<Made>()
  /// Held while the core is made, so that there is one thread; takes no other lock.
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

  /// The core, if anybody has scheduled anything.
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

  /// Looks at the core without keeping it; for tests of its end.
  var weakCore: () -> AnyObject? {
    weak let core: AnyObject? = existing
    return { core }
  }

  /// Sets a timer for the first time. If its deadline has passed, fires it on this thread: once,
  /// since a repetition that has to catch up might never let this thread go.
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

  /// The central ends. Nothing was made: nothing to end.
  func close() {
    existing?.close()
  }
}

/// What a scheduler has done, counted where it happens: relaxed, since only the numbers count.
/// `pending` is what is left of `scheduled`; the others are read first, with acquire, so that it is
/// never below 0.
final class ScheduleCounts: Sendable {
  let scheduled = Atomic<Int>(0)
  let dispatched = Atomic<Int>(0)
  let skipped = Atomic<Int>(0)
  /// Ended by their last dispatch, by a cancel, by the end of the central.
  let finished = Atomic<Int>(0)
  let cancelled = Atomic<Int>(0)
  let dropped = Atomic<Int>(0)

  var statistics: EventScheduleStatistics {
    let finished = finished.load(ordering: .acquiring)
    let cancelled = cancelled.load(ordering: .acquiring)
    let dropped = dropped.load(ordering: .acquiring)
    return EventScheduleStatistics(
      pending: max(0, scheduled.load(ordering: .relaxed) - finished - cancelled - dropped),
      dispatched: dispatched.load(ordering: .relaxed), skipped: skipped.load(ordering: .relaxed),
      cancelled: cancelled, dropped: dropped)
  }
}

/// What the scheduler of a central has done so far.
public struct EventScheduleStatistics: Sendable, Equatable {
  /// Schedules that wait for their (next) deadline.
  public var pending: Int
  /// Events dispatched at their time; each repetition counts.
  public var dispatched: Int
  /// Repetitions that ``EventRepeatPolicy/skip`` left out.
  public var skipped: Int
  /// Schedules that were cancelled.
  public var cancelled: Int
  /// Schedules that ended because their central did.
  public var dropped: Int

  /// Makes a reading to compare with.
  public init(pending: Int, dispatched: Int, skipped: Int, cancelled: Int, dropped: Int) {
    self.pending = pending
    self.dispatched = dispatched
    self.skipped = skipped
    self.cancelled = cancelled
    self.dropped = dropped
  }
}

/// The seam between the module and its two cores: timers in the order of their deadlines, equal
/// ones in the order in which they were added, never early.
///
/// A core knows nothing of events: it calls `EventScheduleHandle.fire`, which dispatches through
/// the front door. Implementations: the lock-free scheduler (C) and the locking scheduler (Swift).
protocol SchedulerCore: AnyObject, Sendable {
  /// Has `timer.fire` called at a time of the scheduler's clock, on its thread, one timer at a
  /// time; at once if the time has passed. If it returns a later deadline the timer is set again.
  /// The core retains the timer until then. Any thread.
  ///
  /// - Returns: False if the scheduler is closed.
  func add(_ timer: EventScheduleHandle, at deadline: UInt64) -> Bool

  /// Lets a timer go that need not fire any more: at once, or after the `fire` that runs. If it
  /// comes too late for a `fire`, that one is called. Any thread; once for each timer that was
  /// added.
  func withdraw(_ timer: EventScheduleHandle)

  /// Takes no more timers and calls `drop` for those that wait; the thread ends. Any thread, also
  /// the scheduler's own.
  func close()

  /// Fires what is due at a time, on the calling thread. Only for a scheduler with a manual clock.
  func runDue(at now: UInt64)
}
