// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Removes all its listeners when it ends.
///
/// ```swift
/// final class Dashboard {
///   let listeners = EventListenerScope()
///
///   init() {
///     TemperatureEvent.addListener(nil) { event in print(event) }.stored(in: listeners)
///   }
/// }
/// ```
///
/// **Threads**: any, for every member.
public final class EventListenerScope: Sendable {
  private struct State {
    var handles: [any EventListenerHandling] = []
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

  /// Lets go of the listeners that have ended. One at a time, and out of the lock: to ask a listener may end
  /// its requester, and a handle may end with its scope's reference.
  private func sweep() {
    let ended = state.withLock { $0.handles }.filter { !$0.isActive }
    let gone = Set(ended.map { ObjectIdentifier($0) })
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
    for handle in take(ending: false) {
      handle.remove()
    }
  }

  /// Removes all listeners, and each later one as it is added.
  ///
  /// **Complexity**: O(listeners).
  public func end() {
    for handle in take(ending: true) {
      handle.remove()
    }
  }

  /// Removes all listeners, and each later one as it is added, and returns when no call of the ones it
  /// held is running (D6): what they touch is the caller's from then on.
  ///
  /// **Threads**: any. Inside a callback of one of them it would wait for itself, and traps. It blocks its
  /// thread while callbacks run: from a task or an actor prefer ``end()``.
  public func endAndWait() {
    let handles = take(ending: true)
    // All first, so that nobody is called any more while one is waited for.
    for handle in handles {
      handle.remove()
    }
    for handle in handles {
      handle.removeAndWait()
    }
  }

  /// Out of the lock: letting a listener go is user code.
  private func take(ending: Bool) -> [any EventListenerHandling] {
    state.withLock { state in
      state.hasEnded = state.hasEnded || ending
      defer { state.handles.removeAll() }
      return state.handles
    }
  }
}
