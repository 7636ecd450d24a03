// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Those threads of a pool that have ended, and on which listeners are registered that run elsewhere, until these have
/// ended, too: they end with their thread's last reference, and are to handle what waits for them (D10).
final class PoolListeners: Sendable {
  private struct State {
    var threads: [EventThread] = []
    /// What the others have done whose listeners have ended.
    var past = EventThreadStatistics.none
    /// Whether they have freed anything.
    var hasLost = false
  }
  /// Lock order: the state of the pool, then this one, under which no thread is released.
  private let state = Guarded(State())

  /// Keeps a thread that has ended, if it may have such listeners. It runs no code of the user's.
  func add(_ thread: EventThread) {
    // Somebody else may hold it.
    thread.ownListener.endSchedules()
    guard thread.ownListener.madeAlready != nil else { return }
    state.withLock { $0.threads.append(thread) }
  }

  var threads: [EventThread] { state.withLock { $0.threads } }
  var hasLost: Bool { state.withLock { $0.hasLost } }
  /// The threads, and what the listeners on others have done, as of one moment.
  var threadsAndPast: (threads: [EventThread], past: EventThreadStatistics) {
    state.withLock { ($0.threads, $0.past) }
  }

  /// Releases the threads whose listeners have ended. Any thread, without locks: what they release is the user's.
  func letGo() {
    let settled = threads.filter { $0.ownListener.madeAlready?.contexts.areSettled == true }
    // Outside of the lock, since it releases what has waited.
    let counts = settled.map { WorkElsewhere($0.ownListener).statistics }
    state.withLock { state in
      for (thread, counts) in zip(settled, counts) {
        // Another call may have released it.
        guard let index = state.threads.firstIndex(where: { $0 === thread }) else { continue }
        state.threads.remove(at: index)
        state.past = state.past + counts
        state.hasLost = state.hasLost || thread.ownListener.hasLost
      }
    }
    withExtendedLifetime(settled) {}
  }

  /// Ends the listeners, and frees what waits for them.
  func end() {
    for thread in threads { thread.ownListener.end() }
  }

  /// As `letGo`, for all of them.
  func releaseAll() {
    let threads = state.withLock { state in
      defer { state.threads.removeAll() }
      return state.threads
    }
    withExtendedLifetime(threads) {}
  }
}
