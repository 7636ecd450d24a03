// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// How a pool ends the listeners `on:` its threads.
extension PoolCore {
  /// Has the listeners `on:` the threads accept nothing more. After `close`.
  ///
  /// - Returns: As `OwnedListener.closeWhenEmpty`, for all of them.
  func closeListeners() -> nonisolated(nonsending) (_ deadline: UInt64?) async -> Bool {
    let drains = allThreads.map { $0.ownListener.closeWhenEmpty() }
    return { deadline in
      for isDrained in drains {
        guard await isDrained(deadline) else { return false }
      }
      return true
    }
  }

  /// Ends the listeners `on:` the threads, which have ended. False if that frees anything.
  func endListeners() -> Bool {
    let threads = allThreads
    for thread in threads { thread.ownListener.end() }
    defer { listeners.letGo() }
    return threads.allSatisfy { !$0.ownListener.hasLost }
  }
}
