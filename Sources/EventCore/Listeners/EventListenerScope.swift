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
    var handles: [any EventListenerHandling] = []
    /// Those that somebody is removing just now, or whose last call runs: `endAndWait` waits for
    /// them too.
    var ending: [any EventListenerHandling] = []
    /// How many there may be before the ended ones are looked for.
    var limit = 16
    /// Somebody is looking for them.
    var isSweeping = false
    var hasEnded = false
  }
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
      let isFull = state.handles.count >= state.limit && !state.isSweeping
      state.isSweeping = state.isSweeping || isFull
      state.handles.append(handle)
      return (false, isFull)
    }
    if isLate { handle.remove() }
    if isFull { sweep() }
  }

  /// Lets go of the listeners that have ended. One at a time, and out of the lock: to ask a
  /// listener may end its requester, and a handle may end with its scope's reference.
  private func sweep() {
    let ended = state.withLock { $0.handles }.filter { !$0.isActive }
    let gone = Set(ended.map { ObjectIdentifier($0) }).subtracting(running(of: ended))
    state.withLock { state in
      state.handles.removeAll { gone.contains(ObjectIdentifier($0)) }
      state.limit = max(16, 2 * state.handles.count)
      state.isSweeping = false
    }
    withExtendedLifetime(ended) {}
  }

  /// Removes all listeners that it holds; it can take others.
  ///
  /// **Complexity**: O(listeners).
  public func removeAll() {
    remove(take(ending: false))
  }

  /// Removes all listeners, and each later one as it is added.
  ///
  /// **Complexity**: O(listeners).
  public func end() {
    remove(take(ending: true))
  }

  private func remove(_ handles: [any EventListenerHandling]) {
    for handle in handles {
      handle.remove()
    }
    // Others may not have removed theirs yet: those are active.
    let own = Set(handles.map { ObjectIdentifier($0) })
    let ended = state.withLock { $0.ending }.filter {
      own.contains(ObjectIdentifier($0)) || !$0.isActive
    }
    forget(ended, but: running(of: ended))
  }

  /// Those of some ended listeners whose last call is running.
  private func running(of ended: [any EventListenerHandling]) -> Set<ObjectIdentifier> {
    let calls = ended.compactMap { handle in
      let call = (handle as? ListenerRegistration)?.call ?? (handle as? EventCallbackHandle)?.call
      return call.map { (ObjectIdentifier(handle), $0.consumer, $0.handler) }
    }
    // One is enough for all of a core, and the locking one needs none.
    calls.first { $0.1.hasBarrier }?.1.fence()
    return Set(calls.filter { $0.1.isRunning($0.2) }.map(\.0))
  }

  private func forget(
    _ ended: [any EventListenerHandling], but running: Set<ObjectIdentifier>
  ) {
    let gone = Set(ended.map { ObjectIdentifier($0) }).subtracting(running)
    // What ends with them ends with `ended`, out of the lock.
    state.withLock { state in
      state.ending.removeAll { gone.contains(ObjectIdentifier($0)) }
    }
  }

  /// Removes all listeners, and each later one as it is added, and returns when no call of the ones
  /// it held is running (D6): what they touch is the caller's from then on.
  ///
  /// **Threads**: any. Inside a callback of one of them it would wait for itself, and traps. It
  /// blocks its thread while callbacks run: a task writes `await ended()`.
  @available(*, noasync, message: "It blocks its thread: write await ended().")
  public func endAndWait() {
    let handles = endAll()
    for handle in handles {
      handle.removeAndWait()
    }
    forget(handles, but: [])
  }

  /// Removes all listeners, and each later one as it is added, and returns when no call of the ones
  /// it held is running (D6), without blocking the thread of the task.
  ///
  /// **Threads**: any task or actor.
  public func ended() async {
    let handles = endAll()
    for handle in handles {
      await handle.removed()
    }
    forget(handles, but: [])
  }

  /// Ends all, so that nobody is called any more while one is waited for. Those that may be running.
  private func endAll() -> [any EventListenerHandling] {
    _ = take(ending: true)
    let handles = state.withLock { $0.ending }
    for handle in handles {
      handle.remove()
    }
    return handles
  }

  /// Out of the lock: letting a listener go is user code.
  private func take(ending: Bool) -> [any EventListenerHandling] {
    state.withLock { state in
      state.hasEnded = state.hasEnded || ending
      state.ending += state.handles
      defer { state.handles.removeAll() }
      return state.handles
    }
  }
}
