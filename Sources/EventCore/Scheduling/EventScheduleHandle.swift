// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import Synchronization

/// A scheduled event, which can be cancelled.
///
/// ```swift
/// let reminder = Reminder(text: "tea").scheduleQueue(after: .seconds(180))
/// if reminder.cancel() { print("in time") }
/// ```
///
/// The event is dispatched even if nobody holds the handle. The event is freed with its last dispatch or
/// when it is cancelled, even if somebody holds the handle.
///
/// **Threads**: any, for every member, also inside a handler.
public class EventScheduleHandle: @unchecked Sendable {
  // Constant, except for `phase` (atomic), which decides who owns the event, and for `ticket`, which belongs to the
  // core. The object is small, since a million may wait: what only repetitions need is in a `ScheduleRepetition`.

  /// The phases of a schedule.
  ///
  ///     waiting ⇄ dispatching ──► ending ──► cancelled
  ///        │ └──► finishing ──► dispatched
  ///        └────► cancelled, dropped
  ///
  /// The thread that leaves `waiting` owns the event, and keeps it through `dispatching`, `ending` and
  /// `finishing`.
  private enum Phase: UInt8, AtomicRepresentable {
    case waiting
    /// Being dispatched, but not for the last time.
    case dispatching
    /// Being dispatched, and was cancelled meanwhile.
    case ending
    /// Being dispatched for the last time.
    case finishing
    case dispatched
    case cancelled
    case dropped
  }
  // The fields that `cancel` uses come first, on the cache line of the object's header.
  private let phase = Atomic<Phase>(.waiting)
  let target: ScheduleTarget
  private var scheduler: Scheduler { target.scheduler }
  /// The core finds the timer by this number. On the lock-free core it is the timer's id, written before
  /// anybody else has the handle; on the locking core the position in the heap, under the lock.
  final var ticket: UInt64 = .max
  /// Nil if the event is dispatched once.
  private let repetition: ScheduleRepetition?

  @usableFromInline
  init(_ plan: SchedulePlan) {
    target = plan.target
    repetition = plan.interval == 0 || plan.limit == 1 ? nil : ScheduleRepetition(plan)
  }

  @usableFromInline
  final var router: any RouterCore { target.router }

  // MARK: For the user

  /// Whether a schedule waits, or how it ended.
  public enum State: Sendable {
    /// It waits for its deadline, or for the next one.
    case waiting
    /// The event was dispatched, or is being dispatched, for the last time if it repeats.
    case dispatched
    /// It was cancelled.
    case cancelled
    /// Its central ended before the (next) deadline, or the thread, pump, pool or listener that it is for had ended by
    /// then.
    case dropped
  }

  /// Whether the schedule waits, or how it ended, at this moment.
  public var state: State {
    // Acquiring, pairs with `step` and the stores of `fire`: everything before them has happened.
    switch phase.load(ordering: .acquiring) {
    case .waiting, .dispatching: .waiting
    case .finishing, .dispatched: .dispatched
    case .ending, .cancelled: .cancelled
    case .dropped: .dropped
    }
  }

  /// How often the event was dispatched so far.
  public var dispatches: Int {
    if state == .dispatched { return repetition?.limit ?? 1 }
    return repetition?.dispatches.load(ordering: .acquiring) ?? 0
  }

  /// How many repetitions ``EventRepeatPolicy/skip`` has left out so far.
  public var skipped: Int { repetition?.skipped.load(ordering: .acquiring) ?? 0 }

  /// Cancels the schedule: if this returns true, the event is not dispatched any more.
  ///
  /// - Returns: False if it was too late: the (last) dispatch was made or is being made, the schedule was
  ///   cancelled before, or it was dropped.
  ///
  /// **Threads**: any, also inside a handler of this event. If another thread is dispatching a repetition
  /// at this moment, this waits for the end of that dispatch, so that nothing is dispatched after the
  /// return: for as long as a receiver blocks it, if that is full and has the policy `.block(upTo:)`, so do not call it in
  /// a handler of such a receiver. That dispatch may end an event that waits for a latest-only handler (D5): do not hold a
  /// lock that the `deinit` of an object in such an event takes.
  ///
  /// **Complexity**: O(log pending); waits for no lock on the lock-free core, unless 1,024 changes are not applied yet.
  @discardableResult
  public final func cancel() -> Bool {
    while true {
      switch phase.load(ordering: .acquiring) {
      case .waiting:
        // If `fire` makes its step first, it owns the event.
        guard step(.waiting, to: .cancelled) else { continue }
        scheduler.counts.cancelled.wrappingAdd(1, ordering: .releasing)
        scheduler.withdraw(self)
        freeEvent()
        return true
      case .dispatching:
        // Nil inside the dispatch itself, which may free an event whose `deinit` cancels this schedule. Made before the
        // step, by which `fireInTime` finds it.
        let cancelled = repetition.flatMap { $0.isDispatchingHere ? nil : $0.cancelled.value { Latch() } }
        guard step(.dispatching, to: .ending) else { continue }
        cancelled?.wait()
        return true
      case .ending, .finishing, .dispatched, .cancelled, .dropped:
        return false
      }
    }
  }

  // MARK: For the scheduler

  /// Dispatches the event, unless the central drains or the receiver has ended. On the scheduler's thread.
  ///
  /// - Returns: The next deadline, or 0 if this was the last.
  final func fire(_ deadline: UInt64) -> UInt64 {
    guard scheduler.drops(self) else { return fireInTime(deadline) }
    drop()
    return 0
  }

  /// Dispatches the event. One thread at a time: the scheduler's, or the one that schedules, if the first
  /// deadline has passed.
  ///
  /// - Returns: The next deadline, or 0 if this was the last.
  final func fireInTime(_ deadline: UInt64) -> UInt64 {
    guard let repetition, !repetition.isAtLast else {
      fireLast()
      return 0
    }
    guard step(.waiting, to: .dispatching) else { return 0 }
    let counts = scheduler.counts
    counts.dispatched.wrappingAdd(1, ordering: .relaxed)
    repetition.begin()
    post(isLast: false)
    // Before the step: after it another thread may dispatch the next repetition.
    let next = repetition.end(deadline, scheduler)
    if step(.dispatching, to: .waiting) { return next }
    counts.cancelled.wrappingAdd(1, ordering: .releasing)
    // Before the event is freed: the thread that cancels goes on from here, and the event's `deinit`, which
    // is user code, may wait for that thread.
    phase.store(.cancelled, ordering: .releasing)
    repetition.cancelled.value?.open()
    freeEvent()
    return 0
  }

  private func fireLast() {
    guard step(.waiting, to: .finishing) else { return }
    let counts = scheduler.counts
    counts.dispatched.wrappingAdd(1, ordering: .relaxed)
    post(isLast: true)
    counts.finished.wrappingAdd(1, ordering: .releasing)
    phase.store(.dispatched, ordering: .releasing)
  }

  /// False if the schedule is in another phase: another thread made a step first.
  private func step(_ from: Phase, to next: Phase) -> Bool {
    // Acquiring and releasing, pairs with the steps of other threads.
    phase.compareExchange(expected: from, desired: next, ordering: .acquiringAndReleasing).exchanged
  }

  /// The central has ended, or drains, or the receiver has ended. On the scheduler's thread, or on the one that closes or
  /// schedules.
  final func drop() {
    // It fails if the schedule was cancelled meanwhile.
    guard step(.waiting, to: .dropped) else { return }
    scheduler.counts.dropped.wrappingAdd(1, ordering: .releasing)
    freeEvent()
  }

  // MARK: For the subclasses

  /// Whether this is the limit of a task that waits, which the drain of a central leaves alone.
  var isWait: Bool { false }

  /// Dispatches the event as a user would; moves it out if it is the last time.
  @usableFromInline
  func post(isLast: Bool) {
    fatalError("A schedule without an event: EventScheduleHandle has one subclass.")
  }

  /// Frees the event.
  @usableFromInline
  func freeEvent() {}
}
