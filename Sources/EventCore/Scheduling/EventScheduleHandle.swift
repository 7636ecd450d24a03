// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import Synchronization

/// An event that is scheduled; cancels it.
///
/// ```swift
/// let reminder = Reminder(text: "tea").scheduleQueue(after: .seconds(180))
/// if reminder.cancel() { print("in time") }
/// ```
///
/// The event is dispatched even if nobody holds the handle. The handle does not retain the event, which
/// is freed with its last dispatch or when it is cancelled.
///
/// **Threads**: any, for every member, also inside a handler.
public class EventScheduleHandle: @unchecked Sendable {
  // Constant, but for: `phase` (atomic), which says who owns the event; what a core keeps here for
  // itself, under its own rules (`ticket`, `isWithdrawn`). A million of these may wait: what only
  // repetitions need is in an object of its own.

  /// Where a schedule is in its life.
  ///
  ///     waiting ⇄ dispatching ──► ending ──► cancelled
  ///        │ └──► finishing ──► dispatched
  ///        └────► cancelled, dropped
  ///
  /// Who makes a step out of `waiting`, or holds `dispatching`, `ending` or `finishing`, owns the
  /// event.
  private enum Phase: UInt8, AtomicRepresentable {
    case waiting
    /// Being dispatched, and will be again.
    case dispatching
    /// Being dispatched, and cancelled meanwhile.
    case ending
    /// Being dispatched for the last time.
    case finishing
    case dispatched
    case cancelled
    case dropped
  }
  // First what a cancel touches, on the line of the object's header.
  private let phase = Atomic<Phase>(.waiting)
  /// The locking core's: withdrawn while it fired. Under its lock.
  final var isWithdrawn = false
  private let target: ScheduleTarget
  private var scheduler: Scheduler { target.scheduler }
  /// What its core finds the timer by: the lock-free core's id of it, written before anybody else
  /// has the handle; the locking core's position in its heap, under its lock.
  final var ticket: UInt64 = .max
  /// nil: dispatched once.
  private let repetition: ScheduleRepetition?

  @usableFromInline
  init(_ plan: SchedulePlan) {
    target = plan.target
    repetition = plan.interval == 0 || plan.limit == 1 ? nil : ScheduleRepetition(plan)
  }

  /// Where its event goes.
  @usableFromInline
  final var router: any RouterCore { target.router }

  // MARK: For the user

  /// Whether a schedule waits, or how it ended.
  public enum State: Sendable {
    /// Waits for its (next) deadline.
    case waiting
    /// Was dispatched, for the last time if it repeats.
    case dispatched
    /// Was cancelled.
    case cancelled
    /// Its central was released first.
    case dropped
  }

  /// Whether it waits, or how it ended, at this moment.
  public var state: State {
    // Acquiring: pairs with the steps below: what was done before the step is seen.
    switch phase.load(ordering: .acquiring) {
    case .waiting, .dispatching: .waiting
    case .finishing, .dispatched: .dispatched
    case .ending, .cancelled: .cancelled
    case .dropped: .dropped
    }
  }

  /// How often the event was dispatched.
  public var dispatches: Int {
    if let repetition { return repetition.dispatches.load(ordering: .acquiring) }
    return state == .dispatched ? 1 : 0
  }

  /// How many repetitions ``EventRepeatPolicy/skip`` has left out.
  public var skipped: Int { repetition?.skipped.load(ordering: .acquiring) ?? 0 }

  /// Ends the schedule: after a return of true the event is not dispatched, or not dispatched
  /// again.
  ///
  /// - Returns: False if it was too late: the (last) dispatch has been made or is being made, it
  ///   was cancelled before, or its central has gone.
  ///
  /// **Threads**: any, also inside a handler of the very event. If a repetition is being dispatched
  /// at this moment on another thread, waits until that dispatch is over, which takes no longer
  /// than a dispatch does, so that nothing is dispatched after the return. A dispatch may end an event
  /// that waits for a latest-only handler (D5): hold no lock that the `deinit` of what such an event
  /// holds takes.
  ///
  /// **Complexity**: O(log pending); no lock on the lock-free core.
  @discardableResult
  public final func cancel() -> Bool {
    while true {
      switch phase.load(ordering: .acquiring) {
      case .waiting:
        // One of the two owns the event, this or `fire`.
        guard step(.waiting, to: .cancelled) else { continue }
        scheduler.counts.cancelled.wrappingAdd(1, ordering: .releasing)
        scheduler.withdraw(self)
        freeEvent()
        return true
      case .dispatching:
        guard step(.dispatching, to: .ending) else { continue }
        waitForDispatch()
        return true
      case .ending, .finishing, .dispatched, .cancelled, .dropped:
        return false
      }
    }
  }

  private func waitForDispatch() {
    // The dispatch may free an event whose end cancels it.
    guard repetition?.isDispatchingHere != true else { return }
    // Acquiring: pairs with the end of `fire`.
    while phase.load(ordering: .acquiring) == .ending {
      yieldThread()
    }
  }

  // MARK: For the scheduler

  /// Dispatches the event. One thread at a time: the scheduler's, or the scheduling one if it is
  /// late.
  ///
  /// - Returns: The next deadline; 0 if it was the last.
  final func fire(_ deadline: UInt64) -> UInt64 {
    guard let repetition, !repetition.isAtLast else {
      fireLast()
      return 0
    }
    guard step(.waiting, to: .dispatching) else { return 0 }
    let counts = scheduler.counts
    counts.dispatched.wrappingAdd(1, ordering: .relaxed)
    repetition.begin()
    post(isLast: false)
    // The next may be dispatched by another thread, and cancelled by this one.
    let next = repetition.end(deadline, scheduler)
    if step(.dispatching, to: .waiting) { return next }
    counts.cancelled.wrappingAdd(1, ordering: .releasing)
    // Whoever cancelled goes on from here: the end of the event is user code, which may wait for
    // that one.
    phase.store(.cancelled, ordering: .releasing)
    freeEvent()
    return 0
  }

  private func fireLast() {
    guard step(.waiting, to: .finishing) else { return }
    let counts = scheduler.counts
    repetition?.dispatches.wrappingAdd(1, ordering: .relaxed)
    counts.dispatched.wrappingAdd(1, ordering: .relaxed)
    post(isLast: true)
    counts.finished.wrappingAdd(1, ordering: .releasing)
    phase.store(.dispatched, ordering: .releasing)
  }

  /// False if somebody else was first.
  private func step(_ from: Phase, to next: Phase) -> Bool {
    // Acquiring and releasing: pairs with every other step, which another thread may make.
    phase.compareExchange(expected: from, desired: next, ordering: .acquiringAndReleasing).exchanged
  }

  /// The central has gone. The scheduler's thread, or the one that closes or schedules.
  final func drop() {
    // Not waiting: cancelled while the core had it in its hands.
    guard step(.waiting, to: .dropped) else { return }
    scheduler.counts.dropped.wrappingAdd(1, ordering: .releasing)
    freeEvent()
  }

  // MARK: For the typed subclass

  /// Dispatches the event through the front door; moves it out if it is the last time.
  @usableFromInline
  func post(isLast: Bool) {
    fatalError("A schedule without an event: EventScheduleHandle has one subclass.")
  }

  /// Frees the event.
  @usableFromInline
  func freeEvent() {}
}
