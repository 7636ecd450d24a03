// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The listeners that are registered `on:` an event thread or a pool: made with their first use, and ended
/// with their owner, whichever comes first.
struct OwnedListener: ~Copyable, Sendable {
  private let listener = LazyReference<EventListener>()
  private let hasEnded = Atomic<Bool>(false)

  deinit {
    // Somebody may hold it.
    listener.value?.end()
  }

  /// The listener; ended already if its owner has. Any thread.
  func value(or make: () -> EventListener) -> EventListener {
    let listener = listener.value(or: make)
    // Publish, then look; `end` does the same the other way round, with the same fence between the two.
    // So at least one of them finds the other.
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    if hasEnded.load(ordering: .relaxed) { listener.end() }
    return listener
  }

  /// Ends the listeners, now and later. Any thread.
  func end() {
    hasEnded.store(true, ordering: .relaxed)
    // As in `value`.
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    listener.value?.end()
  }
}
