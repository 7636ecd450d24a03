// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Where closures of users run, one at a time and in order: a consumer, and whoever drives it.
///
/// Get one from `ExecutionContexts`, which makes one for each place and shares it; every getting is
/// one user more, and has to be ended by one `leave()`:
///
///     let context = central.listener.contexts.current()       // "here", whatever here is ...
///     context.run { observer.onChange() }            // there, in order; false if it has ended ...
///     context.leave()                                // once, with no lock held
///
/// What it is and when it ends:
///
/// | `place` | Driven by | Ends |
/// |---|---|---|
/// | `.eventThread` | the event thread's own loop | with the thread |
/// | `.listenerThread` | a thread, made with the first user | with its `ExecutionContexts` |
/// | `.mainQueue`, `.dispatchQueue` | jobs of at most `batch` events | with its last user |
/// | `.actor` | the same, on the actor | with its last user, or the actor |
/// | `.task` | one task | with its user: not shared |
///
/// Ending frees what waits there, on the spot, also if nobody ever serves the queue; a handler that
/// runs is not disturbed.
package final class ExecutionContext: @unchecked Sendable {
  // Constant but for `users` and `isRetired`, which the host's lock guards.
  let place: EventListenerContext
  let consumer: Consumer
  /// Under which key the host shares it; nil for those which are not shared.
  let key: ExecutionContexts.Key?
  /// Whether it ends with its last user.
  let endsWithUsers: Bool
  private weak let host: ExecutionContexts?
  var users = 1
  /// Whether the host's figures know that it ends.
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

  /// Has a closure run there, behind everything that is queued there with normal priority. Never
  /// runs it on the spot. False if the context has ended; a closure that waits when it ends is
  /// freed.
  ///
  /// Threads: any, also inside a handler. Order: that of the calls.
  package func run(_ body: @escaping @Sendable () -> Void) -> Bool {
    consumer.post(body)
  }

  /// Ends one use. What waits there may be freed, which is user code: call it with no lock held.
  package func leave() {
    // A host that is gone has ended its contexts.
    host?.leave(self)
  }

  /// False if it has ended: its actor, its thread or its host is gone.
  package var isUsable: Bool { consumer.canRun && consumer.isOpen }

  /// Whether the caller is in a handler or a closure that runs there.
  var isCurrent: Bool { consumer.isCurrent }

  /// How many events wait there, of all its users.
  var waitingCount: Int { consumer.mailbox.depths().reduce(0, +) }
}
