// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The calls of one handler that runs elsewhere than on the thread that raises: each event is
/// handed over with a closure, which runs there in the order of the hand-overs.
@usableFromInline
final class TreeDelivery: Sendable {
  // Constant but for the state. Lock order: nothing is locked within it.
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

  /// Hands a call over. False if the place has ended, and with it the handler.
  @usableFromInline
  func handOver(_ handle: EventNodeHandle, _ body: @escaping @Sendable () -> Void) -> Bool {
    // The consumer of an actor that is gone is closed later, by a task: asked first.
    let isPosted = consumer.canRun && consumer.post {
      // First "it is running", then the look whether it may: `waitUntilDone` comes after the end.
      self.state.withLock { $0.isRunning = true }
      if handle.isActive { body() }
      let waiting = self.state.withLock { state in
        state.isRunning = false
        defer { state.waiting.removeAll() }
        return state.waiting
      }
      for latch in waiting { latch.open() }
    }
    if !isPosted { handle.remove() }
    return isPosted
  }

  /// Returns when no call of a handler that has ended is running. False, at once, inside one.
  func waitUntilDone() -> Bool {
    let latch = Latch()
    let isRunning = state.withLock { state in
      if state.isRunning { state.waiting.append(latch) }
      return state.isRunning
    }
    guard isRunning else { return true }
    // The place runs one call at a time: if this is its thread, it is in this handler.
    guard !consumer.isCurrent else { return false }
    latch.wait()
    return true
  }
}
