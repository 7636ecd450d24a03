// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// Gives each event to the next thread of the pool, and after the last to the first again.
///
/// The default. Fair if the handlers take alike; a thread that is held up goes on getting its
/// share. Give each pool a balancer of its own: two that share one share its turns.
public final class EventPoolRoundRobinBalancer: EventPoolBalancing {
  private let turn = Atomic<UInt32>(0)

  /// Makes one that begins with the first thread.
  public init() {}

  /// The threads in turn.
  ///
  /// **Threads**: any, several at once.
  ///
  /// **Complexity**: O(1).
  public func chooseThread(for choice: borrowing EventPoolChoice) -> Int {
    // Relaxed: only the number counts. It overflows to 0, which shifts the turns once in 2³²
    // events.
    let turn = turn.wrappingAdd(1, ordering: .relaxed).oldValue
    return Int(turn % UInt32(truncatingIfNeeded: choice.count))
  }
}
