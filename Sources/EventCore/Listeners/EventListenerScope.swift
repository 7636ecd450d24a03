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
    /// Active listeners, and ended ones whose last call may be running: `endAndWait` waits for these, too.
    var handles: [any EventListenerHandling] = []
    /// How many handles there may be before the next sweep.
    var limit = EventListenerScope.smallestLimit
    /// A thread is sweeping.
    var isSweeping = false
    /// That thread has to sweep once more.
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

  /// Adds a listener. A scope that has ended removes it at once.
  ///
  /// - Parameter handle: What to remove when the scope ends. It is retained until then.
  ///
  /// **Complexity**: O(1), amortised: listeners that have ended are released from time to time.
  public func add(_ handle: any EventListenerHandling) {
    let (isLate, isFull) = state.withLock { state in
      guard !state.hasEnded else { return (true, false) }
      state.handles.append(handle)
      return (false, state.handles.count > state.limit)
    }
    if isLate { handle.remove() }
    if isFull { sweep() }
  }

  /// Releases the listeners that have ended and are not running. One thread at a time, and outside of the
  /// lock, since asking a listener may free its requester, and releasing a handle may free it.
  private func sweep() {
    let isFirst = state.withLock { state in
      state.isSweepDue = true
      defer { state.isSweeping = true }
      return !state.isSweeping
    }
    guard isFirst else { return }
    while let handles = nextSweep() {
      let ended = handles.filter { !$0.isActive }
      let consumers = ended.lazy.compactMap { ($0 as? any CallRegistration)?.consumerToFence }
      // One fence serves all consumers of a core, and the locking core needs none.
      consumers.first { $0.calls.hasBarrier }?.fence()
      forget(ended.filter { ($0 as? any CallRegistration)?.isCallRunning != true })
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
    // The caller still has the handles, so none is freed under the lock.
    state.withLock { state in
      state.handles.removeAll { gone.contains(ObjectIdentifier($0)) }
      state.limit = max(Self.smallestLimit, 2 * state.handles.count)
    }
  }

  /// Removes all listeners. Others can be added afterwards.
  ///
  /// **Complexity**: O(listeners × receivers of their types), whose lists are copied.
  public func removeAll() {
    _ = removeAll(ending: false)
    sweep()
  }

  /// Removes all listeners, and later ones when they are added.
  ///
  /// **Complexity**: O(listeners × receivers of their types), whose lists are copied.
  public func end() {
    _ = removeAll(ending: true)
    sweep()
  }

  /// As ``end()``, and returns when no call of these listeners is running (D6).
  ///
  /// **Threads**: it blocks the calling thread while callbacks run; in a task write `await ended()`. Inside
  /// a callback of one of the listeners it traps.
  @available(*, noasync, message: "It blocks its thread: write await ended().")
  public func endAndWait() {
    let handles = removeAll(ending: true)
    for handle in handles {
      handle.removeAndWait()
    }
    forget(handles)
  }

  /// As ``end()``, and returns when no call of these listeners is running (D6), without blocking the thread
  /// of the task.
  public func ended() async {
    let handles = removeAll(ending: true)
    for handle in handles {
      await handle.removed()
    }
    forget(handles)
  }

  /// Removes all listeners before the caller waits for one. Returns them.
  private func removeAll(ending: Bool) -> [any EventListenerHandling] {
    let handles = state.withLock { state in
      state.hasEnded = state.hasEnded || ending
      return state.handles
    }
    // Outside of the lock, since removing a listener may run user code.
    for handle in handles {
      handle.remove()
    }
    return handles
  }
}

extension EventListenerScope: ActiveByItself {}

/// A registration whose last call may still be running after its end.
protocol CallRegistration {
  /// Whether a call is running. After the registration's end, and then the fence of its consumer.
  var isCallRunning: Bool { get }
  /// Whose fence that is; nil if none is needed.
  var consumerToFence: Consumer? { get }
}

/// A registration whose handler a consumer calls.
protocol ConsumerRegistration: CallRegistration {
  var call: (consumer: Consumer, handler: HandlerState) { get }
}

extension ConsumerRegistration {
  var isCallRunning: Bool {
    let (consumer, handler) = call
    return consumer.calls.isRunning(handler)
  }
  var consumerToFence: Consumer? { call.consumer }
}

extension ListenerRegistration: ConsumerRegistration {}
extension EventCallbackHandle: ConsumerRegistration {}
