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
  /// **Complexity**: O(1), amortised: listeners that ended otherwise are let go of from time to
  /// time.
  public func add(_ handle: any EventListenerHandling) {
    let isLate = state.withLock { state in
      guard !state.hasEnded else { return true }
      if state.handles.count >= state.limit {
        state.handles.removeAll { !$0.isActive }
        state.limit = max(16, 2 * state.handles.count)
      }
      state.handles.append(handle)
      return false
    }
    if isLate { handle.remove() }
  }

  /// Removes all listeners that it holds; it can take others.
  public func removeAll() {
    for handle in take(ending: false) {
      handle.remove()
    }
  }

  /// Removes all listeners, and each later one as it is added.
  public func end() {
    for handle in take(ending: true) {
      handle.remove()
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
