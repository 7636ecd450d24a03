// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// Ends the wait of a task after a time on the clock of a central.
@usableFromInline
final class SequenceTimeout: Sendable {
  @usableFromInline let limit: Duration
  private let timer: Timer

  /// A timer of the central's scheduler. It rouses the task, which ends its mailbox itself: no user code runs on the
  /// scheduler's thread.
  private final class Timer: EventScheduleHandle, @unchecked Sendable {
    // Atomic or constant.
    let rouse: @Sendable () -> Void
    let hasPassed = Atomic<Bool>(false)
    let isDropped = Atomic<Bool>(false)

    init(_ plan: SchedulePlan, _ rouse: @escaping @Sendable () -> Void) {
      self.rouse = rouse
      super.init(plan)
    }

    override var isWait: Bool { true }

    override func post(isLast: Bool) {
      // Releasing, pairs with `SequenceTimeout.hasPassed`; the wake-up orders the two anyway.
      hasPassed.store(true, ordering: .releasing)
      rouse()
    }

    override func freeEvent() {
      guard state == .dropped else { return }
      // The central has ended, and with it the clock. As in `post`.
      isDropped.store(true, ordering: .releasing)
      rouse()
    }
  }

  @usableFromInline
  convenience init(_ mailbox: SequenceMailbox, of listener: EventListener, after limit: Duration) {
    // Not the mailbox, whose last reference runs user code, on the scheduler's thread perhaps.
    self.init(of: listener, after: limit) { [driver = mailbox.driver] in driver.rouse() }
  }

  /// - Parameter rouse: Called on any thread when the time is over, or never comes. What it captures may be freed on
  ///   the scheduler's thread, and frees nothing of the user's.
  @usableFromInline
  init(of listener: EventListener, after limit: Duration, _ rouse: @escaping @Sendable () -> Void) {
    self.limit = limit
    let plan = listener.target.plan(after: limit)
    timer = Timer(plan, rouse)
    begin(timer, plan)
  }

  /// Throws if the time is over, or never comes.
  @usableFromInline
  func check() throws {
    if hasPassed { throw EventWaitError.timedOut(limit) }
    if isDropped { throw EventWaitError.sourceEnded }
  }

  /// Whether `check` throws.
  @usableFromInline
  var isOver: Bool { hasPassed || isDropped }

  @usableFromInline
  var hasPassed: Bool { timer.hasPassed.load(ordering: .acquiring) }

  /// Whether the time never comes, since the central has ended.
  @usableFromInline
  var isDropped: Bool { timer.isDropped.load(ordering: .acquiring) }

  /// The wait has ended otherwise.
  @usableFromInline
  func cancel() { timer.cancel() }
}
