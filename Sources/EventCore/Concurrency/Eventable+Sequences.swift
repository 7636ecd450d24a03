// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

extension Eventable {
  /// Makes a sequence of the events of this type that are dispatched from now on.
  ///
  /// ```swift
  /// let scores = Score.events(on: world, buffering: .latest)
  /// let display = Task { for await score in scores { board.show(score) } }
  /// ```
  ///
  /// - Parameters:
  ///   - source: What it listens to: a central, an event thread, a pool or a listener of your own
  ///     (``EventListenable``).
  ///   - buffering: Which events wait while the task does something else.
  ///   - interest: Which events the sequence wants; the others are skipped and counted
  ///     (``EventSequence/skippedCount``). With `.latestOnly` or `.latestPerKey` the bound of the buffering
  ///     does not count. `.latestPerKey` together with the buffering `.latest` traps.
  ///   - maximumAge: With `.youngerThan`: the age in nanoseconds from which on an event is too old when it would be
  ///     taken.
  ///   - customFilter: With `.custom`: returns true for an event that the sequence wants. It runs in the task that
  ///     iterates.
  /// - Returns: The sequence, which is registered already.
  ///
  /// **Threads**: any, also inside a handler.
  ///
  /// **Complexity**: O(receivers of the type), whose list is copied.
  @inlinable
  public static func events(
    on source: any EventListenable = EventCentral.shared, buffering: EventBuffering = .unbounded,
    interestedIn interest: EventListenerInterest = .all, maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: Self, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil
  ) -> EventSequence<Self> {
    var interest = interest
    if buffering == .latest { interest.insert(.latestOnly) }
    return EventSequence(
      TypedSequenceMailbox(
        source.listener, nil, buffering,
        HandlerInterest(interest, maximumAge: maximumAge, customFilter: customFilter)))
  }

  /// Waits for the next event of this type.
  ///
  /// ```swift
  /// let high = try await Score.next(where: { $0.points > 100 }, within: .seconds(1))
  /// ```
  ///
  /// - Parameters:
  ///   - source: What it listens to, from the call on (``EventListenable``).
  ///   - predicate: Returns true for the event to wait for. It runs in the calling task.
  ///   - limit: How long to wait at most, on the clock of the source's central; nil is for ever. With
  ///     ``EventCentral/Timers/pumps`` it comes inside a run of a pump. The time of a manual clock stands still until
  ///     somebody moves it, and a deterministic central does nothing until somebody runs it:
  ///     tests wait by `next(_:within:where:isolation:)` of EventCoreTesting, which does both.
  ///   - isolation: Leave it out. The call stays on the caller's actor.
  /// - Returns: The first event for which `predicate` is true.
  /// - Throws: ``EventWaitError/timedOut(_:)``; ``EventWaitError/sourceEnded``, also if the central of the source has
  ///   ended, and with it the clock of the limit; `CancellationError` if the task is cancelled.
  ///
  /// **Threads**: any task.
  ///
  /// **Order**: among events that wait at the same moment the most urgent first (D1 to D3).
  @inlinable
  public static func next(
    on source: any EventListenable = EventCentral.shared, where predicate: (_ event: Self) -> Bool = { _ in true },
    within limit: Duration? = nil, isolation: isolated (any Actor)? = #isolation
  ) async throws -> Self {
    let listener = source.listener
    let mailbox = TypedSequenceMailbox<Self>(
      listener, nil, .unbounded, HandlerInterest(.all, maximumAge: 0, customFilter: nil))
    let lease = mailbox.lease()
    defer { withExtendedLifetime(lease) {} }
    let timeout = limit.map { SequenceTimeout(mailbox, of: listener, after: $0) }
    defer { timeout?.cancel() }
    var rejected = 0
    var left: Int?
    while true {
      try Task.checkCancellation()
      switch mailbox.take() {
      case .event(let event):
        if predicate(event) { return event }
        rejected += 1
        if rejected.isMultiple(of: SequenceMailbox.courtesy) { await Task.yield() }
      case .skippedMany:
        await Task.yield()
      case .nothing:
        try timeout?.check()
        guard await mailbox.wait() else {
          try Task.checkCancellation()
          throw EventWaitError.sourceEnded
        }
        // What has come in time is taken first, however late the task goes on.
        continue
      }
      // After each event, since they may come without end: what has come until now is looked at, and no more.
      if let timeout, timeout.isOver {
        let most = left ?? mailbox.waitingCount
        if most <= 0 { try timeout.check() }
        left = most - 1
      }
    }
  }
}
