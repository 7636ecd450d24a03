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
  private let answers: RequestAnswers<Answer>

  init(_ answers: RequestAnswers<Answer>) {
    self.answers = answers
  }

  deinit {
    answers.end()
  }

  @usableFromInline
  func give(_ answer: Result<Answer, any Error>) { answers.add(answer) }

  /// For tests.
  var answerCount: Int { answers.all.count }
}

/// The answers to one request, as they come, from any thread.
final class RequestAnswers<Answer: Sendable>: Sendable {
  private struct State {
    var answers: [Result<Answer, any Error>] = []
    var hasEnded = false
    var sleeper: UnsafeContinuation<Void, Never>?
  }
  private let state = Guarded(State())
  /// How many answers the requester waits for.
  private let wanted: Int

  init(wanted: Int) {
    self.wanted = wanted
  }

  /// Those that have come, of which there are at most as many as are wanted.
  var all: [Result<Answer, any Error>] { state.withLock { $0.answers } }

  /// Moves them out, so that whoever lets go of this object last, a timer perhaps, frees nothing of the user's. After
  /// `ended`.
  func take() -> [Result<Answer, any Error>] {
    state.withLock { state in
      state.hasEnded = true
      defer { state.answers = [] }
      return state.answers
    }
  }

  func add(_ answer: Result<Answer, any Error>) {
    wake { state in
      guard !state.hasEnded else { return false }
      state.answers.append(answer)
      state.hasEnded = state.answers.count >= wanted
      return state.hasEnded
    }
  }

  /// No more answers: nobody has the request any more, the time is over, or the requester is cancelled.
  func end() {
    wake { state in
      state.hasEnded = true
      return true
    }
  }

  private func wake(_ change: (inout State) -> Bool) {
    let sleeper = state.withLock { state -> UnsafeContinuation<Void, Never>? in
      guard change(&state) else { return nil }
      defer { state.sleeper = nil }
      return state.sleeper
    }
    sleeper?.resume()
  }

  /// Returns when there are enough answers, or no more come. One task, once.
  func ended() async {
    await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        let isOver = state.withLock { state in
          if !state.hasEnded { state.sleeper = continuation }
          return state.hasEnded
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      end()
    }
  }
}
