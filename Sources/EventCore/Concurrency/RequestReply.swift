// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A request on its way: the event that answerers get. Its type names both the query and the answer, so that a query
/// may have answers of several types.
@usableFromInline
struct EventRequest<Query: Eventable, Answer: Sendable>: Eventable {
  @usableFromInline let query: Query
  /// All copies of the request share it; its end tells the requester that nobody has the request any more.
  @usableFromInline let ticket: RequestTicket<Answer>

  @usableFromInline
  init(_ query: Query, _ ticket: RequestTicket<Answer>) {
    self.query = query
    self.ticket = ticket
  }
}

/// What a request's receivers share: the way back to the requester.
@usableFromInline
final class RequestTicket<Answer: Sendable>: Sendable {
  @usableFromInline let answers: RequestAnswers<Answer>

  @inlinable
  init(_ answers: RequestAnswers<Answer>) {
    self.answers = answers
  }

  @inlinable
  deinit {
    answers.end()
  }

  @inlinable
  func give(_ answer: Result<Answer, any Error>, by answerer: any EventListenerHandling) {
    answers.add(GivenAnswer(result: answer, answerer: answerer))
  }

  /// Says why a receiver has no answer. It does not end the request, which another receiver may answer yet.
  func withdraw(_ reason: any Error) {
    answers.withdraw(reason)
  }

  /// Whether the requester still waits for an answer.
  var isAwaited: Bool { answers.isAwaited }

  /// For tests.
  var answerCount: Int { answers.all.count }
}

/// An answer, and whose it is.
@usableFromInline
struct GivenAnswer<Answer: Sendable>: Sendable {
  @usableFromInline let result: Result<Answer, any Error>
  @usableFromInline let answerer: any EventListenerHandling

  @inlinable
  init(result: Result<Answer, any Error>, answerer: any EventListenerHandling) {
    self.result = result
    self.answerer = answerer
  }
}

/// The answers to one request, as they come, from any thread.
@usableFromInline
final class RequestAnswers<Answer: Sendable>: Sendable {
  @usableFromInline
  struct State {
    @usableFromInline var answers: [GivenAnswer<Answer>] = []
    @usableFromInline var hasEnded = false
    /// Whether as many have come as are wanted.
    @usableFromInline var hasAll = false
    /// What the first receiver that withdrew has said.
    @usableFromInline var withdrawal: (any Error)?
    /// Freed when it is called, which the end of the ticket does at the latest.
    @usableFromInline var whenEnded: (@Sendable () -> Void)?
    @inlinable init() {}
  }
  @usableFromInline let state: Guarded<State>
  @usableFromInline let query: any Eventable.Type
  /// How many answers the requester waits for.
  @usableFromInline let wanted: Int
  /// Where answers go that nobody waits for.
  @usableFromInline let router: any RouterCore

  @inlinable
  init(to query: any Eventable.Type, wanted: Int, orThrough router: any RouterCore) {
    state = Guarded(State())
    self.query = query
    self.wanted = wanted
    self.router = router
  }

  /// Those that have come, of which there are at most as many as are wanted.
  var all: [GivenAnswer<Answer>] { state.withLock { $0.answers } }

  var isAwaited: Bool { state.withLock { !$0.hasEnded } }

  /// Moves them out, so that whoever lets go of this object last, a timer perhaps, frees nothing of the user's. After
  /// `ended`.
  @inlinable
  func take() -> [GivenAnswer<Answer>] {
    state.withLock { state in
      state.hasEnded = true
      defer { state.answers = [] }
      return state.answers
    }
  }

  @inlinable
  func add(_ answer: GivenAnswer<Answer>) {
    var loss: EventWaitError?
    wake { state in
      guard !state.hasEnded else {
        loss = state.hasAll ? .answeredByAnother : .late
        return false
      }
      state.answers.append(answer)
      state.hasAll = state.answers.count >= wanted
      state.hasEnded = state.hasAll
      return state.hasEnded
    }
    if let loss { report(answer, loss) }
  }

  /// See `RequestTicket`.
  func withdraw(_ reason: any Error) {
    state.withLock { if $0.withdrawal == nil { $0.withdrawal = reason } }
  }

  /// Why no answer has come. After `ended`.
  @inlinable
  var lack: any Error { state.withLock { $0.withdrawal } ?? EventWaitError.unanswered }

  /// Dispatches an answer that nobody waits for as a failure, so that it can be freed by whoever knows how.
  @usableFromInline
  func report(_ given: GivenAnswer<Answer>, _ loss: EventWaitError) {
    let failure =
      switch given.result {
      case .success(let answer):
        EventFailure(eventType: query, receiver: given.answerer, error: loss, lateAnswer: answer)
      case .failure(let error):
        EventFailure(eventType: query, receiver: given.answerer, error: error)
      }
    dispatch(failure, lane: Lane(.queue, .normal), through: router)
  }

  /// The same of an answer that was given when the requester had gone already, as are all that come after it.
  func reportUnwanted(_ given: GivenAnswer<Answer>) {
    state.withLock { $0.hasAll = false }
    report(given, .late)
  }

  /// No more answers: nobody has the request any more, the time is over, or the requester is cancelled.
  @inlinable
  func end() {
    wake { state in
      state.hasEnded = true
      return true
    }
  }

  @inlinable
  func wake(_ change: (inout State) -> Bool) {
    let body = state.withLock { state -> (@Sendable () -> Void)? in
      guard change(&state) else { return nil }
      defer { state.whenEnded = nil }
      return state.whenEnded
    }
    body?()
  }

  /// Calls a closure when there are enough answers, or no more come. Once.
  @inlinable
  func whenEnded(_ body: @escaping @Sendable () -> Void) {
    let isOver = state.withLock { state in
      if !state.hasEnded { state.whenEnded = body }
      return state.hasEnded
    }
    if isOver { body() }
  }

  /// Returns when there are enough answers, or no more come. One task, once.
  @inlinable
  func ended() async {
    await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in whenEnded { continuation.resume() } }
    } onCancel: {
      end()
    }
  }
}
