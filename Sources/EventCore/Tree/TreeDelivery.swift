// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Hands the calls of one handler over to the place where it runs, if that is not the thread that raises. The
/// calls are made there in the order of the hand-overs.
@usableFromInline
final class TreeDelivery: Sendable {
  // Constant except for the state. Lock order: nothing is locked within it.
  private struct State {
    var isRunning = false
    var waiting: [Latch] = []
  }
  private let state = Guarded(State())
  private let consumer: Consumer
  let place: EventListenerContext

  init(_ consumer: Consumer, _ place: EventListenerContext) {
    self.consumer = consumer
    self.place = place
  }

  /// Hands a call over. False if the place takes no more. That removes the handler, once the place has handled what waits.
  @usableFromInline
  func handOver(_ handle: EventNodeHandle, _ body: @escaping @Sendable () -> Void) -> Bool {
    // `canRun` is needed, since a task closes the consumer of an actor some time after the actor's end.
    let isPosted = consumer.canRun && consumer.post {
      // `isRunning` is set before `isActive` is read: `waitUntilDone` follows the removal, so that either
      // it sees the call or the call sees the removal.
      self.state.withLock { $0.isRunning = true }
      if handle.isActive { body() }
      let waiting = self.state.withLock { state in
        state.isRunning = false
        defer { state.waiting.removeAll() }
        return state.waiting
      }
      for latch in waiting { latch.open() }
    }
    if !isPosted, !consumer.isDraining { handle.remove() }
    return isPosted
  }

  /// Whether the place handles what was handed over.
  var delivers: Bool { consumer.canRun && (consumer.isOpen || consumer.isDraining) }
  /// Whether it takes more.
  @usableFromInline var isOpen: Bool { consumer.canRun && consumer.isOpen }

  /// Waits until no call of the handler, which was removed, is running. Returns false at once if the calling
  /// thread is inside such a call.
  func waitUntilDone() -> Bool {
    let latch = Latch()
    let isRunning = state.withLock { state in
      if state.isRunning { state.waiting.append(latch) }
      return state.isRunning
    }
    guard isRunning else { return true }
    // The place runs one call at a time: if it is the current one, the running call is this handler's.
    guard !consumer.isCurrent else { return false }
    latch.wait()
    return true
  }
}
