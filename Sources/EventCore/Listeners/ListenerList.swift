// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The listeners of one `EventListener`, in order to find those whose requester, or actor, is gone.
///
/// Swift does not announce the end of an object. The next event of its type ends a listener whose
/// requester or actor is gone; the sweep is for types without events. A sweep checks a few listeners, in turn, and
/// needs no timer: each registration checks more listeners than it adds, and the listener thread sweeps
/// while it is idle, and after some thousand events if it never is (`Upkeep`). The listener thread skips a
/// sweep if the list is locked.
final class ListenerList: @unchecked Sendable {
  // The lock also guards `ListenerRegistration.index`. Lock order: nothing is locked under it.
  private struct State {
    var registrations: [ListenerRegistration] = []
    /// Where the next sweep begins.
    var hand = 0
    var hasEnded = false

    /// The listeners that a sweep checks next.
    mutating func next(_ limit: Int) -> [ListenerRegistration] {
      guard !registrations.isEmpty else { return [] }
      let count = min(limit, registrations.count)
      let first = hand < registrations.count ? hand : 0
      hand = first + count
      return (0..<count).map { registrations[(first + $0) % registrations.count] }
    }
  }
  private let state = Guarded(State())

  /// How many listeners a registration checks.
  static let perRegistration = 4
  /// How many listeners the listener thread checks in one sweep, which takes 1 to 4 µs.
  static let perMoment = 32
  /// Nanoseconds between two sweeps of an idle listener thread. Without this limit, sweeps would take a
  /// quarter of the time of a stream of events that lets the thread run dry after each of them.
  static let pause: UInt64 = 1_000_000

  /// The time of the last sweep of the idle listener thread. Only that thread uses it; relaxed.
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
    // The caller has a reference as well, so nothing is freed under the lock.
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

  /// Ends those of the next `limit` listeners that are spent, and returns how many there were. It may free
  /// what they retained: call it with no lock held.
  @discardableResult
  func sweep(limit: Int) -> Int {
    endSpent(of: state.withLock { $0.next(limit) })
  }

  private func endSpent(of chosen: [ListenerRegistration]) -> Int {
    // Outside of the lock, since a check may release the last reference to a requester or an actor. One check of the
    // requester for all listeners that an object has registered in succession: each takes a mutex that the consumers
    // take for every run of events.
    var requester: SharedReference?
    var isGone = false
    let spent = chosen.filter { registration in
      if registration.isEnded || !registration.context.consumer.canRun { return true }
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

  /// Sweeps, on the listener thread.
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
