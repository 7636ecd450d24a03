// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventCentral {
  /// Asks whoever answers queries of this type, and waits for the first answer.
  ///
  /// ```swift
  /// let price = try await world.request(PriceQuery(id: 7), expecting: Price.self, within: .milliseconds(50))
  /// ```
  ///
  /// - Parameters:
  ///   - query: The question, an event.
  ///   - answer: The type of the answer, to be named if it is an Optional: the answerers for that type are asked
  ///     (``Eventable/answer(executeOn:on:isolation:with:)``,
  ///     ``Eventable/answer(on:concurrency:with:)``).
  ///   - limit: How long to wait at most, on the clock of the central; nil is for ever. A clock ends with its central,
  ///     and a manual one stands still until somebody moves it. With ``EventCentral/Timers/pumps`` it comes inside a
  ///     run of a pump: a loop that awaits this call itself waits for ever.
  ///   - priority: Which of the five queues the request joins.
  ///   - isolation: Leave it out. The call stays on the caller's actor.
  /// - Returns: The answer that came first.
  /// - Throws: ``EventWaitError/nobodyAnswers`` if there is no answerer for both types, ``EventWaitError/refused`` if the
  ///   mailboxes of all answerers are full and refuse it, ``EventWaitError/timedOut(_:)``,
  ///   ``EventWaitError/unanswered`` when all answerers have ended, or let go of the request, without an answer;
  ///   ``EventWaitError/sourceEnded``, with a limit alone, if the central has ended, and with it the clock of the limit
  ///   (if it had before the call, nobody is asked); what the answerer threw, if that came first; `CancellationError`
  ///   if the task is cancelled. An answerer that was removed lets go of what waits for it when its place comes to it:
  ///   on a thread or a queue that is busy, after the handler that runs there.
  ///
  /// **Ownership**: an answer that comes when nobody waits for it, after the limit or the cancellation or after the first
  /// one, is dispatched as an ``EventFailure`` with ``EventFailure/lateAnswer``. The failure's error tells the two apart:
  /// ``EventWaitError/late``, and ``EventWaitError/answeredByAnother`` after the first one, which nobody has to be told of.
  /// What an answerer throws then is a failure as well, with its own error.
  ///
  /// A deterministic central handles the request, and lets its time pass, only while somebody runs it: a task that does
  /// nothing but await this call waits for ever. Tests ask by `answer(to:expecting:within:)` of EventCoreTesting.
  ///
  /// ``EventCentral/statistics`` count it under a type of its own, `EventRequest<PriceQuery, Price>`, and not
  /// under that of the query.
  ///
  /// **Threads**: any task. **Order**: requests wait among the other events of their answerers (D1, D2).
  @inlinable
  public func request<Query: Eventable, Answer: Sendable>(
    _ query: Query, expecting answer: Answer.Type = Answer.self, within limit: Duration? = nil,
    priority: EventPriority = .normal, isolation: isolated (any Actor)? = #isolation
  ) async throws -> Answer {
    let answers = RequestAnswers<Answer>(to: Query.self, wanted: 1, orThrough: router)
    let asked = try await ask(query, answers, within: limit, priority)
    if let first = asked.answers.first { return try first.result.get() }
    try Task.checkCancellation()
    guard let timeout = asked.timeout else { throw answers.lack }
    if timeout.hasPassed { throw EventWaitError.timedOut(timeout.limit) }
    throw timeout.isDropped ? EventWaitError.sourceEnded : answers.lack
  }

  /// Asks as ``request(_:expecting:within:priority:isolation:)`` does where the caller wants an Optional, as in
  /// `(try? await world.request(query)) ?? -1`: for an answer of the type that the Optional wraps.
  ///
  /// - Returns: The answer that came first, never nil. All else is as there.
  ///
  /// An answer that is an Optional itself is asked for by `expecting:` of
  /// ``request(_:expecting:within:priority:isolation:)``.
  @inlinable
  public func request<Query: Eventable, Answer: Sendable>(
    _ query: Query, within limit: Duration? = nil, priority: EventPriority = .normal,
    isolation: isolated (any Actor)? = #isolation
  ) async throws -> Answer? {
    try await request(query, expecting: Answer.self, within: limit, priority: priority)
  }

  /// Asks all who answer queries of this type, and gathers their answers until all have answered or the time is over,
  /// as it is when the central ends.
  ///
  /// - Parameters: as for ``request(_:expecting:within:priority:isolation:)``.
  /// - Returns: The answers in the order in which they came, with the errors of those that threw. Empty if nobody
  ///   answers.
  /// - Throws: ``EventWaitError/refused`` if the mailboxes of all that answer are full and refuse it;
  ///   ``EventWaitError/sourceEnded``, with a limit alone, if the central had ended before the call: nobody is asked;
  ///   `CancellationError` if the task is cancelled.
  ///
  /// **Ownership**: an answer that comes when nobody waits for it is dispatched as an ``EventFailure``, as there; so are
  /// those that have come before a cancellation.
  ///
  /// **Threads**: any task.
  public func requestAll<Query: Eventable, Answer: Sendable>(
    _ query: Query, expecting answer: Answer.Type = Answer.self, within limit: Duration? = nil,
    priority: EventPriority = .normal, isolation: isolated (any Actor)? = #isolation
  ) async throws -> [Result<Answer, any Error>] {
    let answers = RequestAnswers<Answer>(to: Query.self, wanted: .max, orThrough: router)
    var gathered: [GivenAnswer<Answer>] = []
    do {
      gathered = try await ask(query, answers, within: limit, priority).answers
    } catch EventWaitError.nobodyAnswers {}
    guard !Task.isCancelled else {
      for answer in gathered { answers.report(answer, .late) }
      throw CancellationError()
    }
    // If the time is over, what has come is the answer.
    return gathered.map(\.result)
  }

  /// Dispatches a request and waits until its answers have ended. Throws if nobody got it.
  @inlinable
  func ask<Query: Eventable, Answer: Sendable>(
    _ query: Query, _ answers: RequestAnswers<Answer>, within limit: Duration?, _ priority: EventPriority,
    isolation: isolated (any Actor)? = #isolation
  ) async throws -> (answers: [GivenAnswer<Answer>], timeout: SequenceTimeout?) {
    try Task.checkCancellation()
    // Before the dispatch: nobody is asked what nobody may wait for.
    let timeout = limit.map { SequenceTimeout(of: listener, after: $0) { answers.end() } }
    defer { timeout?.cancel() }
    if timeout?.isDropped == true { throw EventWaitError.sourceEnded }
    try post(query, answers, priority)
    await answers.ended()
    return (answers.take(), timeout)
  }
}

extension EventCentral {
  /// Dispatches a request. In a function of its own, so that no reference to the ticket stays behind: its end says that
  /// nobody has the request.
  @inlinable
  func post<Query: Eventable, Answer: Sendable>(
    _ query: Query, _ answers: RequestAnswers<Answer>, _ priority: EventPriority
  ) throws(EventWaitError) {
    let outcome = dispatchWithOutcome(
      EventRequest(query, RequestTicket(answers)), lane: Lane(.queue, priority), through: router)
    guard outcome.accepted == 0 else { return }
    // What a policy dropped was asked, and has no answer: that is found by the end of the ticket.
    if outcome.dropped == 0 { throw outcome.refused > 0 ? .refused : .nobodyAnswers }
  }
}
