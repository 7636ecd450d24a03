// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The `EventListener` of an event thread or a pool. It is made at its first use, and ends with its owner.
struct OwnedListener: ~Copyable, Sendable {
  private let listener = LazyReference<EventListener>()
  private let isClosing = Atomic<Bool>(false)
  private let hasEnded = Atomic<Bool>(false)

  deinit {
    // A user may still hold it.
    listener.value?.endWithOwner()
  }

  /// The listener; ended already if its owner has, and closed if that drains. Any thread.
  func value(or make: () -> EventListener) -> EventListener {
    let listener = listener.value(or: make)
    // This publishes the listener, then reads the flags; `end` and `closeWhenEmpty` write one, then read the listener.
    // With a fence in between on both sides, at least one sees what the other has written.
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    if isClosing.load(ordering: .relaxed) { _ = listener.contexts.closeWhenEmpty() }
    if hasEnded.load(ordering: .relaxed) { listener.endWithOwner() }
    return listener
  }

  /// Ends the listener, also one that is made later. Any thread.
  func end() {
    hasEnded.store(true, ordering: .relaxed)
    // As in `value`.
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    listener.value?.endWithOwner()
  }

  /// Has what is scheduled on the listener dropped, while it handles what waits for it; one that is made later has ended.
  /// Any thread. It runs no code of the user's.
  func endSchedules() {
    if listener.value == nil {
      hasEnded.store(true, ordering: .relaxed)
      // As in `value`.
      atomicMemoryFence(ordering: .sequentiallyConsistent)
    }
    listener.value?.target.end()
  }

  /// The listener, if it was made. Any thread.
  var madeAlready: EventListener? { listener.value }

  /// Whether an `end` has freed events.
  var hasLost: Bool { listener.value?.contexts.hasLost ?? false }

  /// Has the listener accept nothing more, also one that is made later.
  ///
  /// - Returns: Waits, at most until a time, for what waits outside of the owner's threads. False if that came first, or
  ///   the task was cancelled.
  func closeWhenEmpty() -> nonisolated(nonsending) (_ deadline: UInt64?) async -> Bool {
    isClosing.store(true, ordering: .relaxed)
    // As in `value`.
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    guard let contexts = listener.value?.contexts else { return { _ in true } }
    let latches = contexts.closeWhenEmpty()
    return { await contexts.opened(latches, until: $0) }
  }
}
