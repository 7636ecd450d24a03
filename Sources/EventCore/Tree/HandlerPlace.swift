// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Where the owner of a handler may be used that is not `Sendable`: on an actor, on the main queue, which several threads
/// may serve, or on a thread.
@usableFromInline
struct HandlerPlace {
  /// Not retained: it may own the node that has the handler.
  private weak let actor: (any Actor)?
  private let isActor: Bool
  private let isMain: Bool
  private let thread: ThreadIdentity

  /// Here.
  @usableFromInline
  init(_ isolation: (any Actor)?) {
    actor = isolation
    isActor = isolation != nil
    isMain = MainActor.isCurrent
    thread = .current
  }

  /// Traps unless it is called there.
  @usableFromInline
  func requireHere(_ owner: Any.Type) {
    func sentence(_ place: String, _ found: String = "on another one: raise it there") -> String {
      """
      A handler of \(owner), which is not Sendable, belongs to the \(place) on which it was added, and the event was \
      raised \(found), or make the class Sendable.
      """
    }
    if actor is MainActor {
      // `preconditionIsolated` prints its message as garbage on Linux (Swift 6.3.1).
      require(MainActor.isCurrent, sentence("actor"))
    } else if let actor {
      // Not `require`: a test for any actor that does not trap by itself needs the runtime of Swift 6.2.
      actor.preconditionIsolated(sentence("actor"))
    } else {
      require(!isActor, sentence("actor", "in the deinit of that actor, or after it: raise it before"))
      require(ThreadIdentity.current === thread || isMain && MainActor.isCurrent, sentence("thread"))
    }
  }
}
