// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// Requests of other machines, and to them, without tasks that wait. For packages that write
// `@_spi(Bridge) import EventCore`; others do not see it.

extension EventCentral {
  /// Answers queries with a closure that may give the answer later: a task of its own calls it, one query at a time. It
  /// does not get those whose requesters have gone, or have all answers, before their turn.
  ///
  /// - Parameter body: Gets the query, a closure that gives the answer, and one that says why there is none. It calls
  ///   one of them, once, from any thread. The second does not end the request: the requester hears the reason when
  ///   nobody else can answer any more. If neither is called it hears then that there is no answer.
  /// - Returns: Ends the answering. It stays if it is released.
  ///
  /// A drain of the central does not end it: handlers that this waits for may ask. So end it before the central goes.
  ///
  /// **Threads**: any. **Ownership**: `body` is kept until the end of the answering, and what `give` has of the request
  /// until `give` and `withdraw` are released.
  @_spi(Bridge)
  public func answerLater<Query: Eventable, Answer: Sendable>(
    _ query: Query.Type, with answer: Answer.Type,
    _ body: @escaping @Sendable (
      Query, _ give: @escaping @Sendable (Result<Answer, any Error>) -> Void,
      _ withdraw: @escaping @Sendable (any Error) -> Void
    ) async -> Void
  ) -> any EventListenerHandling {
    let own = EventListener(on: self)
    return AsyncListener.start(
      EventRequest<Query, Answer>.self, nil, own, HandlerInterest(.all, maximumAge: 0, customFilter: nil), .serial
    ) { request, answerer in
      let ticket = request.ticket
      // It ends with its last reference, which is that of this closure.
      guard withExtendedLifetime(own, { ticket.isAwaited }) else { return }
      await body(request.query, { ticket.give($0, by: answerer) }, { ticket.withdraw($0) })
    }
  }

  /// Asks whoever answers queries of a type, and returns at once.
  ///
  /// - Parameter answered: Gets the first answer, or why there is none, on the thread that gives it, once. If it returns
  ///   false, nobody has waited for it: an answer is dispatched as an ``EventFailure`` then, as one that comes too late.
  ///   It must not wait, since the end of a request may call it, also inside a dispatch that drops the request (D5).
  ///
  /// **Threads**: any. **Ownership**: `answered` is released after its call.
  @_spi(Bridge)
  public func request<Query: Eventable, Answer: Sendable>(
    _ query: Query, expecting answer: Answer.Type, priority: EventPriority,
    answered: @escaping @Sendable (Result<Answer, any Error>) -> Bool
  ) {
    let answers = RequestAnswers<Answer>(to: Query.self, wanted: 1, orThrough: router)
    do {
      try post(query, answers, priority)
    } catch {
      return _ = answered(.failure(error))
    }
    answers.whenEnded {
      let first = answers.take().first
      let isTaken = answered(first?.result ?? .failure(answers.lack))
      if !isTaken, let first { answers.reportUnwanted(first) }
    }
  }
}
