// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Removes all its listeners when it ends.
///
/// ```swift
/// final class Dashboard {
///   let listeners = EventListenerScope()
///
///   init() {
///     TemperatureEvent.addListener(nil, executeOn: .listenerThread) { event in print(event) }
///       .stored(in: listeners)
///   }
/// }
/// ```
///
/// **Threads**: any, for every member.
public final class EventListenerScope: Sendable {
  private struct State {
    /// Those that may be called, and those that have ended and whose last call may be running:
    /// `endAndWait` waits for them too.
    var handles: [any EventListenerHandling] = []
    /// How many there may be before those that are over are looked for.
    var limit = EventListenerScope.smallestLimit
    /// Somebody is looking for them,
    var isSweeping = false
    /// and has to look once more.
    var isSweepDue = false
    var hasEnded = false
  }
  private static let smallestLimit = 16
  private let state = Guarded(State())

  /// Makes an empty scope.
  public init() {}

  deinit {
    end()
  }

  /// Takes a listener over. A scope that has ended removes it at once.
  ///
  /// - Parameter handle: What to remove when the scope ends; retained until then.
  ///
  /// **Complexity**: O(1), amortised: listeners that ended otherwise are let go of from time to
  /// time.
  public func add(_ handle: any EventListenerHandling) {
    let (isLate, isFull) = state.withLock { state in
      guard !state.hasEnded else { return (true, false) }
      state.handles.append(handle)
      return (false, state.handles.count > state.limit)
    }
    if isLate { handle.remove() }
    if isFull { sweep() }
  }

  /// Lets go of the listeners that have ended and are not running. One at a time, and out of the lock:
  /// to ask a listener may end its requester, and a handle may end with its scope's reference.
  private func sweep() {
    let isFirst = state.withLock { state in
      state.isSweepDue = true
      defer { state.isSweeping = true }
      return !state.isSweeping
    }
    guard isFirst else { return }
    while let handles = nextSweep() {
      let ended = handles.filter { !$0.isActive }
      let calls = ended.compactMap { ($0 as? any ConsumerRegistration)?.call }
      // One is enough for all of a core, and the locking one needs none.
      calls.first { $0.consumer.calls.hasBarrier }?.consumer.fence()
      forget(
        ended.filter { handle in
          guard let call = (handle as? any ConsumerRegistration)?.call else { return true }
          return !call.consumer.calls.isRunning(call.handler)
        })
    }
  }

  private func nextSweep() -> [any EventListenerHandling]? {
    state.withLock { state in
      state.isSweeping = state.isSweepDue
      state.isSweepDue = false
      return state.isSweeping ? state.handles : nil
    }
  }

  private func forget(_ handles: [any EventListenerHandling]) {
    let gone = Set(handles.map { ObjectIdentifier($0) })
    // What ends with them ends with `handles`, out of the lock.
    state.withLock { state in
      state.handles.removeAll { gone.contains(ObjectIdentifier($0)) }
      state.limit = max(Self.smallestLimit, 2 * state.handles.count)
    }
  }

  /// Removes all listeners that it holds; it can take others.
  ///
  /// **Complexity**: O(listeners).
  public func removeAll() {
    _ = removeAll(ending: false)
    sweep()
  }

  /// Removes all listeners, and each later one as it is added.
  ///
  /// **Complexity**: O(listeners).
  public func end() {
    _ = removeAll(ending: true)
    sweep()
  }

  /// Removes all listeners, and each later one as it is added, and returns when no call of the ones
  /// it held is running (D6): what they touch is the caller's from then on.
  ///
  /// **Threads**: any. Inside a callback of one of them it would wait for itself, and traps. It
  /// blocks its thread while callbacks run: a task writes `await ended()`.
  @available(*, noasync, message: "It blocks its thread: write await ended().")
  public func endAndWait() {
    let handles = removeAll(ending: true)
    for handle in handles {
      handle.removeAndWait()
    }
    forget(handles)
  }

  /// Removes all listeners, and each later one as it is added, and returns when no call of the ones
  /// it held is running (D6), without blocking the thread of the task.
  ///
  /// **Threads**: any task or actor.
  public func ended() async {
    let handles = removeAll(ending: true)
    for handle in handles {
      await handle.removed()
    }
    forget(handles)
  }

  /// Removes all, so that nobody is called any more while one is waited for. Returns them.
  private func removeAll(ending: Bool) -> [any EventListenerHandling] {
    let handles = state.withLock { state in
      state.hasEnded = state.hasEnded || ending
      return state.handles
    }
    // Out of the lock: letting a listener go is user code.
    for handle in handles {
      handle.remove()
    }
    return handles
  }
}

/// A registration whose handler a consumer calls.
protocol ConsumerRegistration {
  /// The consumer and what it runs, to look whether a call is running.
  var call: (consumer: Consumer, handler: HandlerState) { get }
}

extension ListenerRegistration: ConsumerRegistration {}
extension EventCallbackHandle: ConsumerRegistration {}
