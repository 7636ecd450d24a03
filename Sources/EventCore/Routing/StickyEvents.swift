// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The types of which a central keeps the newest event.
final class StickyEvents: Sendable {
  private let events = Guarded<[UInt: any StickyEvent]>([:])
  /// Whether there is one, or is being made. Relaxed: `events` orders it.
  private let isUsed = Atomic<Bool>(false)

  /// That of a type; nil if none is kept.
  func event(_ key: UInt) -> (any StickyEvent)? {
    guard isUsed.load(ordering: .relaxed) else { return nil }
    return events.withLock { $0[key] }
  }

  /// That of a type, which is made if it is new. Lock order: `events`, then what a registration of its receiver locks.
  func event(_ key: UInt, or make: () -> any StickyEvent) -> any StickyEvent {
    events.withLock { events in
      if let known = events[key] { return known }
      // Made with the lock held, and after this: a dispatch that finds the receiver also finds it here, and skips it.
      isUsed.store(true, ordering: .relaxed)
      let made = make()
      events[key] = made
      return made
    }
  }

  /// Ends all, since the central ends. What they keep is freed.
  func end() {
    let all = events.withLock { events in
      defer { events.removeAll() }
      return events
    }
    for event in all.values { event.end() }
  }
}

/// The newest event of a type, for those who come later (`TypedStickyEvent`).
protocol StickyEvent: AnyObject, Sendable {
  /// The receiver that keeps it; nil if the central has ended.
  var subscription: Subscription? { get }
  func end()
}
