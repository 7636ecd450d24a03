// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The listeners of one `EventListener`, to find those whose requester is gone.
///
/// A requester that goes tells nobody. Its listener ends at the next event of its type, which finds
/// it gone; the sweep is for types of which no event comes. It looks at a few listeners at a time,
/// in turn, and has no timer: each registration looks at more than it adds, so that with
/// registrations alone the spent ones never outnumber the live ones for long, and the listener
/// thread looks on before it sleeps, and every some thousand events if it never does.
final class ListenerList: @unchecked Sendable {
  // `ListenerRegistration.place` is guarded by the same lock as the list. Lock order: nothing is
  // locked within it.
  private struct State {
    var registrations: [ListenerRegistration] = []
    /// Where the next sweep begins.
    var hand = 0
    /// Sleeps of the listener thread since it swept.
    var sleeps = 0
    var hasEnded = false
  }
  private let state = Guarded(State())

  /// How many a registration looks at.
  static let perRegistration = 4
  /// How many the listener thread looks at, and at which of its sleeps: some 1 µs each time.
  static let perSleep = 32
  static let sleepsPerSweep = 16

  var count: Int { state.withLock { $0.registrations.count } }

  /// False after `end`.
  func add(_ registration: ListenerRegistration) -> Bool {
    state.withLock { state in
      guard !state.hasEnded else { return false }
      registration.place = state.registrations.count
      state.registrations.append(registration)
      return true
    }
  }

  /// True for the first call.
  func remove(_ registration: ListenerRegistration) -> Bool {
    // What may end with the array's reference is the caller's, too: nothing ends under the lock.
    state.withLock { state in
      guard let place = registration.place else { return false }
      registration.place = nil
      let last = state.registrations.removeLast()
      if last !== registration {
        state.registrations[place] = last
        last.place = place
      }
      return true
    }
  }

  /// Ends those of the next `limit` listeners that are spent. Returns how many. What they held is
  /// freed, here or where they were called: call it with no lock held.
  @discardableResult
  func sweep(limit: Int) -> Int {
    let chosen = state.withLock { state -> [ListenerRegistration] in
      guard !state.registrations.isEmpty else { return [] }
      let count = min(limit, state.registrations.count)
      let first = state.hand < state.registrations.count ? state.hand : 0
      state.hand = first + count
      return (0..<count).map { state.registrations[(first + $0) % state.registrations.count] }
    }
    // Outside of the lock: looking at a requester may turn out to hold the last reference to it.
    let spent = chosen.filter(\.isSpent)
    for registration in spent {
      registration.endSpent()
    }
    return spent.count
  }

  /// Removes all listeners, and refuses later ones.
  func end() {
    let all = state.withLock { state in
      state.hasEnded = true
      return state.registrations
    }
    for registration in all {
      registration.endSpent()
    }
  }

  /// On the listener thread.
  func sweep(_ moment: Upkeep) {
    switch moment {
    case .beforeSleep:
      if isSleepDue() { sweep(limit: Self.perSleep) }
    case .whileBusy:
      sweep(limit: Self.perSleep)
    }
  }

  private func isSleepDue() -> Bool {
    state.withLock { state in
      guard !state.registrations.isEmpty else { return false }
      state.sleeps += 1
      guard state.sleeps >= Self.sleepsPerSweep else { return false }
      state.sleeps = 0
      return true
    }
  }
}
