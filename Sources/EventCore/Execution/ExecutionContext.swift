// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A place in which users' closures run, one at a time and in order: a consumer, and what drives it.
///
/// `ExecutionContexts` makes one for each place and shares it. Each call that returns one adds a user,
/// which ends by one `leave()`:
///
///     let context = central.listener.contexts.current()   // the place in which the caller runs
///     context.run { observer.onChange() }                 // there, in order; false if the context has ended
///     context.leave()                                     // once, with no lock held
///
/// | `place` | Driven by | Ends |
/// |---|---|---|
/// | `.eventThread` | the event thread's own loop | with the thread |
/// | `.listenerThread` | a thread, made with the first user | with its `ExecutionContexts` |
/// | `.mainQueue`, `.dispatchQueue` | jobs of at most `batch` events, or one more | with its last user |
/// | `.actor` | the same, on the actor | with its last user, or the actor |
/// | `.task` | one task | with its user: not shared |
///
/// Its end frees at once what waits there, even if the queue is never served. A running handler finishes.
package final class ExecutionContext: @unchecked Sendable {
  // Constant, except for `users` and `isRetired`, which the host's lock guards.
  let place: EventListenerContext
  let consumer: Consumer
  /// The key under which the host shares the context; nil if it is not shared.
  let key: ExecutionContexts.Key?
  /// Whether the context ends with its last user.
  let endsWithUsers: Bool
  private weak let host: ExecutionContexts?
  var users = 1
  /// Whether the host counts the context among those that end.
  var isRetired = false

  init(
    _ place: EventListenerContext, _ consumer: Consumer, key: ExecutionContexts.Key?,
    endsWithUsers: Bool, host: ExecutionContexts
  ) {
    self.place = place
    self.consumer = consumer
    self.key = key
    self.endsWithUsers = endsWithUsers
    self.host = host
  }

  /// Runs a closure in the context as an event, queued with normal priority. Never runs it before the call
  /// returns. False if the context has ended; a closure that waits when it ends is freed. Any thread.
  package func run(_ body: @escaping @Sendable () -> Void) -> Bool {
    consumer.post(body)
  }

  /// Ends one use. It may free what waits in the context, which runs user code: call it with no lock held.
  package func leave() {
    // A host that is gone has ended its contexts.
    host?.leave(self)
  }

  /// False if the context has ended: its actor, its thread or its host is gone.
  package var isUsable: Bool { consumer.canRun && consumer.isOpen }

  /// The same, but true also while it handles what waits before its end, and after that until it is closed.
  var delivers: Bool { consumer.canRun && consumer.delivers }

  /// Whether it takes nothing more, and still handles what waits.
  package var isDraining: Bool { consumer.isDraining }

  /// How many events wait in the context, of all its users.
  var waitingCount: Int { consumer.waitingWithCalls }
}
