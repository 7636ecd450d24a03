// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

@_spi(Bridge) import EventCore
import Synchronization

/// An event did not come that was expected, or one came that was not.
public struct EventExpectationError: Error, Sendable, CustomStringConvertible {
  /// What was expected, and what happened.
  public let description: String
}

extension EventCentral {
  /// Moves the time of a deterministic central on, from one deadline to the next, and runs what is due at each. The
  /// deadlines of other deterministic centrals on the same clock, and of those with timers in pumps, are passed in one
  /// jump: they find them when they are run.
  ///
  /// ```swift
  /// Reminder(text: "tea").scheduleQueue(every: .seconds(60), on: world)
  /// world.advance(by: .seconds(180))   // three reminders, each at its own time
  /// ```
  ///
  /// - Parameter duration: How far: a negative one traps. A central that is not deterministic, or that has no
  ///   `ManualClock`, traps, too; so do handlers that dispatch again and again without end, and thereby keep the time
  ///   from going on: after ten million events at one instant.
  ///
  /// **Threads**: that of the central's runs; inside a handler that the central's run calls it traps.
  public func advance(by duration: Duration) {
    require(
      duration >= .zero,
      "The time of a central goes on, never back, and this advance is by \(duration): pass zero or more.")
    _ = run(for: duration, until: { false })
  }

  /// Returns the next event of a type that is dispatched on the central from now on, and handled.
  ///
  /// ```swift
  /// Hit(player: "Ann", points: 10).queue(on: world)
  /// let score = try await world.next(ScoreChanged.self, within: .seconds(1))
  /// ```
  ///
  /// A deterministic central is run meanwhile, and its manual clock is moved as by ``advance(by:)``. Another clock, and
  /// handlers that dispatch again and again without end, trap as there, and so does a second call at once: await one after
  /// the other. The call takes no time of the system's. In other centrals the time is the system's, and the task is suspended.
  ///
  /// - Parameters:
  ///   - type: The exact type of event.
  ///   - duration: How long to wait at most. With zero or less a deterministic central runs what is due already, and
  ///     in others the call looks once and returns.
  ///   - matches: Which of the events counts; nil for any.
  ///   - isolation: Leave it out. The call stays on the caller's actor.
  /// - Returns: The event.
  /// - Throws: ``EventExpectationError`` if none came in time, or the central's listener has ended, as by its
  ///   `drain(until:)`; `CancellationError` if the task is cancelled while it is suspended.
  public func next<E: Eventable>(
    _ type: E.Type = E.self, within duration: Duration, where matches: (@Sendable (E) -> Bool)? = nil,
    isolation: isolated (any Actor)? = #isolation
  ) async throws -> E {
    let probe = EventProbe<E>(listeningOn: self, where: matches)
    guard try await isReached(by: probe, within: duration), let event = probe.events.first else {
      throw EventExpectationError(
        description: """
          Expected a \(type)\(matches == nil ? "" : " that matches"), and none came within \(duration). What was \
          dispatched before this call does not count: make an EventProbe before the dispatch for that.
          """)
    }
    return event
  }

  /// Makes sure that no event of a type is dispatched on the central, and handled, for a time from now on. All else is as
  /// for ``next(_:within:where:isolation:)``.
  ///
  /// - Throws: ``EventExpectationError``, which names the event, as soon as one came, and if the central's listener has
  ///   ended; `CancellationError` as there.
  public func expect<E: Eventable>(
    no type: E.Type, within duration: Duration, where matches: (@Sendable (E) -> Bool)? = nil,
    isolation: isolated (any Actor)? = #isolation
  ) async throws {
    let probe = EventProbe<E>(listeningOn: self, where: matches)
    if try await isReached(by: probe, within: duration), let event = probe.events.first {
      throw EventExpectationError(description: "Expected no \(type) within \(duration), and there came \(event).")
    }
  }

  /// Asks whoever answers queries of a type, and returns the first answer.
  ///
  /// ```swift
  /// let points = try await world.answer(to: PointsQuery(player: "Ann"), expecting: Int.self, within: .seconds(1))
  /// ```
  ///
  /// As a `request`, but a deterministic central is run meanwhile, and its manual clock moved, as for
  /// ``next(_:within:where:isolation:)``. An answerer that is `async` answers in a task, which such a central does not
  /// run.
  ///
  /// - Parameters:
  ///   - query: The question, an event.
  ///   - type: The type of the answer, which has to be named if it is an Optional.
  ///   - duration: How long to wait at most.
  ///   - isolation: Leave it out. The call stays on the caller's actor.
  /// - Returns: The answer that came first.
  /// - Throws: As a `request`: `EventWaitError`, or what the answerer threw. On a central that was drained that is
  ///   `nobodyAnswers` if it is deterministic, and `sourceEnded` in others.
  public func answer<Query: Eventable, Answer: Sendable>(
    to query: Query, expecting type: Answer.Type = Answer.self, within duration: Duration,
    isolation: isolated (any Actor)? = #isolation
  ) async throws -> Answer {
    guard isDeterministic else { return try await request(query, expecting: type, within: duration) }
    let wait = AnswerWait<Answer>()
    request(query, expecting: type, priority: .normal) { wait.take($0) }
    _ = run(for: duration, until: { wait.hasAnswer })
    guard let answer = wait.end() else { throw EventWaitError.timedOut(duration) }
    return try answer.get()
  }

  /// Asks as ``answer(to:expecting:within:isolation:)`` does where the caller wants an Optional, as with `try?`.
  ///
  /// - Returns: The answer that came first, never nil; it has the type that the Optional wraps.
  public func answer<Query: Eventable, Answer: Sendable>(
    to query: Query, within duration: Duration, isolation: isolated (any Actor)? = #isolation
  ) async throws -> Answer? {
    try await answer(to: query, expecting: Answer.self, within: duration)
  }

  private func isReached<E: Eventable>(
    by probe: EventProbe<E>, within duration: Duration, isolation: isolated (any Actor)? = #isolation
  ) async throws -> Bool {
    guard probe.isListening else { throw EventExpectationError(description: EventProbe<E>.deaf) }
    let isReached =
      isDeterministic
      ? run(for: duration, until: { !probe.events.isEmpty }) : try await probe.hasEvent(within: duration)
    // It may have ended meanwhile.
    guard isReached || probe.isListening else { throw EventExpectationError(description: EventProbe<E>.deaf) }
    return isReached
  }
}

/// The answer that a test waits for.
private final class AnswerWait<Answer: Sendable>: Sendable {
  private let state = Mutex<(answer: Result<Answer, any Error>?, isOver: Bool)>((nil, false))

  var hasAnswer: Bool { state.withLock { $0.answer != nil } }

  /// False if nobody waits any more.
  func take(_ answer: Result<Answer, any Error>) -> Bool {
    state.withLock { state in
      if !state.isOver { state.answer = answer }
      return !state.isOver
    }
  }

  func end() -> Result<Answer, any Error>? {
    state.withLock { state in
      state.isOver = true
      return state.answer
    }
  }
}
