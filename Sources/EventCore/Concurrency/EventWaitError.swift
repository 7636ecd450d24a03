// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Why a task waited in vain.
public enum EventWaitError: Error, Equatable, CustomStringConvertible {
  /// What it waited for did not come within this time.
  case timedOut(Duration)
  /// The central, the event thread, the pool or the listener that it listened to has ended, or the central whose clock
  /// its limit goes by.
  case sourceEnded
  /// Nobody answers queries of this type with answers of this type, or whoever did has ended or is draining: an
  /// answerer is found by both types.
  case nobodyAnswers
  /// Whoever answers requests of this type has a bounded mailbox that is full, and takes no more.
  case refused
  /// All that were asked have ended, or have dropped the request, without an answer.
  case unanswered
  /// An answer came when nobody waited for it any more; it is in ``EventFailure/lateAnswer``.
  case late
  /// The requester has the answer of another, which came first. Nothing has failed: the answer is in
  /// ``EventFailure/lateAnswer`` for whoever has to free it.
  case answeredByAnother

  /// A sentence for a log.
  public var description: String {
    switch self {
    case .timedOut(let limit): "Neither an event nor an answer came within \(limit)."
    case .sourceEnded:
      "The source of what a task waited for has ended, or the central whose clock its limit goes by."
    case .nobodyAnswers:
      """
      Nobody answers queries of this type with answers of this type, or whoever did has ended or is draining. Answers \
      are found by the types of both: register the answer before the request, on the same central, keep it until the \
      last request, and expect the type that it returns. Name that type by expecting: if it is an Optional.
      """
    case .refused: "Whoever answers is full, and refused the request: ask again later, or give it a larger mailbox."
    case .unanswered: "Whoever got the request ended, or dropped it, without an answer."
    case .late: "The answer came when nobody waited for it any more."
    case .answeredByAnother: "Another answer came first."
    }
  }
}
