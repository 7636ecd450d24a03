// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The scheduler of one central: its core, which is made at first use, and its counts.
///
/// It keeps events until their time and then dispatches them through the router of their `ScheduleTarget`,
/// as a user would. It does so on its own thread, on which no handler ever runs; on a clock that the central was
/// given, when that rings; or, by `EventCentral.Timers.pumps`, inside the runs of the central's pumps.
///
/// Lock order: `alarm` or `loops`, then the core's heap. Neither is held while timers fire.
final class Scheduler: Sendable {
  private let basis: CentralBasis
  private let made = LazyReference<Made>()
  /// Whether the central has ended. Held while the core is made, so that only one thread is started, and none after that.
  /// No other lock is taken within it.
  private let hasEnded = Guarded(false)
  /// Whether the central drains: schedules are dropped at their time, and waits keep their limits until `close`.
  private let isDraining = Atomic<Bool>(false)
  let counts = ScheduleCounts()
  private let alarm = Guarded(Alarm())
  private let loops = Guarded<[ObjectIdentifier: WeakLoop]>([:])
  /// How many calls are between `willTell` and `didTell`; 0 unless pumps run the timers.
  private let telling = Atomic<Int>(0)
  /// How many calls of `runDue` have not been answered. Only the thread that raised it from 0 runs timers.
  private let asked = Atomic<Int>(0)

  /// What the clock is to ring for.
  private struct Alarm {
    var deadline = UInt64.max
    /// Raised by each alarm: one may ring while another replaces it.
    var number: UInt64 = 0
    var cancel: (@Sendable () -> Void)?
  }

  private struct WeakLoop: Sendable {
    weak let loop: (any TimerLoop)?
  }

  private final class Made: Sendable {
    let core: any SchedulerCore
    init(_ core: any SchedulerCore) { self.core = core }
  }

  init(_ basis: CentralBasis) {
    self.basis = basis
  }

  /// Nanoseconds on the clock that deadlines are compared with.
  var now: UInt64 { basis.now }

  /// Whether it has no thread.
  private var isDriven: Bool { basis.clock != nil || basis.timersInPumps }

  /// The core; nil if nobody has scheduled anything yet.
  private var existing: (any SchedulerCore)? { made.withValue { $0.core } }

  /// The core, which is made; nil if the central had ended before.
  private var core: (any SchedulerCore)? {
    if let existing { return existing }
    return hasEnded.withLock { hasEnded in
      if let existing { return existing }
      if hasEnded { return nil }
      let new = basis.core.parts.makeScheduler(isDriven)
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
    guard !drops(timer) else { return timer.drop() }
    var deadline = first
    let isLate = first <= now
    if isLate {
      deadline = timer.fireInTime(first)
      guard deadline > first else { return }
    }
    willTell()
    defer { didTell() }
    guard !drops(timer), let core, core.add(timer, at: deadline) else { return timer.drop() }
    guard isDriven else { return }
    // Whoever knows of an earlier one looks for this one then. If that one is in the core and not announced yet, the
    // core's mutex shows its `willTell` here. Acquiring, pairs with `didTell`.
    if !basis.timersInPumps || core.nextDeadline >= deadline || telling.load(ordering: .acquiring) > 1 {
      announce(deadline)
    }
    // The clock may have been moved past the deadline before it knew of it.
    if !isLate, !basis.timersInPumps, now >= deadline { runDue() }
  }

  /// A timer comes into the core, or may come back, and is not announced before `didTell`.
  private func willTell() {
    // Relaxed: comes before the core's mutex, by which the look in `add` sees it.
    if basis.timersInPumps { telling.wrappingAdd(1, ordering: .relaxed) }
  }

  private func didTell() {
    // Releasing, pairs with the look in `add`: the loops know.
    if basis.timersInPumps { telling.wrappingSubtract(1, ordering: .releasing) }
  }

  func withdraw(_ timer: EventScheduleHandle) {
    existing?.withdraw(timer)
  }

  /// The central begins to drain: no schedule is dispatched any more. What waits in the core is freed at its time or by
  /// `close`, whichever comes first.
  func closeForSchedules() {
    // Releasing, pairs with `drops`.
    isDraining.store(true, ordering: .releasing)
  }

  /// Whether this is a schedule of a central that drains, or for a receiver that has ended.
  func drops(_ timer: EventScheduleHandle) -> Bool {
    (isDraining.load(ordering: .acquiring) || timer.target.hasEnded) && !timer.isWait
  }

  /// The central ends.
  func close() {
    hasEnded.withLock { $0 = true }
    existing?.close()
    let cancel = alarm.withLock { alarm in
      // No deadline is earlier, so that nobody who is about to announce one sets another alarm.
      defer { alarm = Alarm(deadline: 0) }
      return alarm.cancel
    }
    cancel?()
  }

  // MARK: Without a thread

  /// The earliest deadline that waits; `.max` if there is none.
  var nextDeadline: UInt64 { existing?.nextDeadline ?? .max }

  /// Dispatches what is due, on the calling thread. If another thread, or this one further out, is doing that,
  /// leaves it to that.
  ///
  /// - Returns: How many timers fired, and the earliest deadline that is left; none in the second case.
  @discardableResult
  func runDue() -> (fired: Int, next: UInt64) {
    guard let core = existing else { return (0, .max) }
    // Acquiring and releasing, both: a call that finds a thread inside has it look once more.
    guard asked.wrappingAdd(1, ordering: .acquiringAndReleasing).oldValue == 0 else { return (0, .max) }
    willTell()
    defer { didTell() }
    var (fired, answered) = (0, 1)
    while true {
      fired += core.runDue(at: now)
      let left = asked.wrappingSubtract(answered, ordering: .acquiringAndReleasing).newValue
      if left == 0 { break }
      answered = left
    }
    let next = core.nextDeadline
    // A loop that looked while a timer fired has not seen it, though it may have been set again. And a clock's alarm
    // rings once: the next one has to be set.
    if fired > 0 || !basis.timersInPumps { announce(next) }
    return (fired, next)
  }

  /// Has the clock ring at a deadline, or the pumps look for it, unless they do so earlier.
  private func announce(_ deadline: UInt64) {
    guard !basis.timersInPumps, let clock = basis.clock else {
      let loops = loops.withLock { $0 }
      for loop in loops.values { loop.loop?.noteTimer(at: deadline) }
      return
    }
    let replaced = alarm.withLock { alarm -> (@Sendable () -> Void)? in
      guard deadline < alarm.deadline else { return nil }
      let (replaced, number) = (alarm.cancel, alarm.number + 1)
      alarm = Alarm(
        deadline: deadline, number: number,
        cancel: clock.alarm(at: deadline) { [weak self] in
          guard let self else { return }
          // From here on another deadline needs another alarm.
          self.alarm.withLock { if $0.number == number { $0 = Alarm(number: number) } }
          self.runDue()
        })
      return replaced
    }
    replaced?()
  }

  /// Adds a loop whose runs call `runDue`. It removes itself at its end.
  func add(_ loop: any TimerLoop) {
    loops.withLock { $0[ObjectIdentifier(loop)] = WeakLoop(loop: loop) }
  }

  func remove(_ loop: any TimerLoop) {
    _ = loops.withLock { $0.removeValue(forKey: ObjectIdentifier(loop)) }
  }
}

/// What calls `Scheduler.runDue` by itself.
protocol TimerLoop: AnyObject, Sendable {
  /// This is the earliest deadline, after a timer was added before all others or one has fired. Any thread.
  func noteTimer(at deadline: UInt64)
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

/// What the scheduler of a central has done so far. The limits of requests, and of other waits for events, are schedules,
/// too: each that was not needed counts as cancelled, or as dropped if its central ends first.
public struct EventScheduleStatistics: Sendable, Equatable {
  /// Schedules that wait for their deadline, or for the next one.
  public var pending: Int
  /// Dispatches at their time; each repetition counts.
  public var dispatched: Int
  /// Repetitions that ``EventRepeatPolicy/skip`` left out.
  public var skipped: Int
  /// Schedules that were cancelled.
  public var cancelled: Int
  /// Schedules that ended with their central, or were found at their time to be for a receiver that has ended.
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

  /// Fires the timers that are due, on the calling thread, and returns how many. Only for a driven scheduler.
  func runDue(at now: UInt64) -> Int

  /// The earliest deadline that waits; `.max` if there is none.
  var nextDeadline: UInt64 { get }
}
