// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The listeners of one `EventListener`, to find those whose requester is gone.
///
/// A requester that goes tells nobody. Its listener ends at the next event of its type, which finds
/// it gone; the sweep is for types of which no event comes. It looks at a few listeners at a time,
/// in turn, and has no timer: each registration looks at more than it adds, so that with
/// registrations alone the spent ones never outnumber the live ones for long, and the listener
/// thread looks on when it has nothing to do, and every some thousand events if it always has. It
/// never waits for the list: who registers has it locked, and the next moment is as good.
final class ListenerList: @unchecked Sendable {
  // `ListenerRegistration.index` is guarded by the same lock as the list. Lock order: nothing is
  // locked within it.
  private struct State {
    var registrations: [ListenerRegistration] = []
    /// Where the next sweep begins.
    var hand = 0
    var hasEnded = false

    /// Those that a sweep looks at next.
    mutating func next(_ limit: Int) -> [ListenerRegistration] {
      guard !registrations.isEmpty else { return [] }
      let count = min(limit, registrations.count)
      let first = hand < registrations.count ? hand : 0
      hand = first + count
      return (0..<count).map { registrations[(first + $0) % registrations.count] }
    }
  }
  private let state = Guarded(State())

  /// How many a registration looks at.
  static let perRegistration = 4
  /// How many the listener thread looks at: 1 to 4 µs each time.
  static let perMoment = 32
  /// Nanoseconds from one look of the listener thread to the next while it has nothing to do: of a
  /// stream that lets it run dry after each event, the looks would take a quarter of the time.
  static let pause: UInt64 = 1_000_000

  /// When the listener thread looked last while it had nothing to do. The thread's alone, of which
  /// there is one at a time.
  private let lastLook = Atomic<UInt64>(0)

  var count: Int { state.withLock { $0.registrations.count } }

  /// False after `end`.
  func add(_ registration: ListenerRegistration) -> Bool {
    state.withLock { state in
      guard !state.hasEnded else { return false }
      registration.index = state.registrations.count
      state.registrations.append(registration)
      return true
    }
  }

  /// True for the first call.
  func remove(_ registration: ListenerRegistration) -> Bool {
    // What may end with the array's reference is the caller's, too: nothing ends under the lock.
    state.withLock { state in
      guard let index = registration.index else { return false }
      registration.index = nil
      let last = state.registrations.removeLast()
      if last !== registration {
        state.registrations[index] = last
        last.index = index
      }
      return true
    }
  }

  /// Ends those of the next `limit` listeners that are spent. Returns how many. What they held is
  /// freed, here or where they were called: call it with no lock held.
  @discardableResult
  func sweep(limit: Int) -> Int {
    endSpent(of: state.withLock { $0.next(limit) })
  }

  private func endSpent(of chosen: [ListenerRegistration]) -> Int {
    // Outside of the lock: looking at a requester may turn out to hold the last reference to it.
    // One look for all listeners that an object has registered in succession: each takes a mutex that the
    // consumers take for every run of events.
    var requester: SharedReference?
    var isGone = false
    let spent = chosen.filter { registration in
      if registration.isEnded { return true }
      guard let next = registration.requester else { return false }
      if next !== requester { (requester, isGone) = (next, next.isGone) }
      return isGone
    }
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
    if moment == .whenDry {
      let now = monotonicNanoseconds()
      guard now &- lastLook.load(ordering: .relaxed) >= Self.pause else { return }
      lastLook.store(now, ordering: .relaxed)
    }
    guard let chosen = state.withLockIfAvailable({ $0.next(Self.perMoment) }) else { return }
    _ = endSpent(of: chosen)
  }
}
