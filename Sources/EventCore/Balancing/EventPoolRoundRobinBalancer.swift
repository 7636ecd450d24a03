// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// Gives each event to the next thread of the pool, and after the last to the first again.
///
/// The default. It is fair if all handlers take about the same time: a thread that is held up still
/// gets its share. Give each pool a balancer of its own: two that share one share its turns.
public final class EventPoolRoundRobinBalancer: EventPoolBalancing, @unchecked Sendable {
  // Unchecked: the pointer is constant, and what it points to is atomic.

  /// The turns so far, on a cache line of their own.
  private let turns: UnsafeMutablePointer<Atomic<UInt32>>

  /// Makes one that begins with the first thread.
  public init() {
    let line = UnsafeMutableRawPointer.allocate(byteCount: 64, alignment: 64)
    turns = line.initializeMemory(as: Atomic<UInt32>.self, to: Atomic(0))
  }

  deinit {
    turns.deinitialize(count: 1)
    turns.deallocate()
  }

  /// The threads in turn.
  ///
  /// **Threads**: any, several at once.
  ///
  /// **Complexity**: O(1).
  public func chooseThread(for choice: borrowing EventPoolChoice) -> Int {
    // Relaxed: only the number counts, here and in balancer_post.c. It overflows to 0, which shifts
    // the turns once in 2³² events.
    let turn = turns.pointee.wrappingAdd(1, ordering: .relaxed).oldValue
    return Int(turn % UInt32(truncatingIfNeeded: choice.count))
  }
}

extension EventPoolRoundRobinBalancer: EventPoolBalancerNeeds {
  var turn: UnsafeMutablePointer<Atomic<UInt32>>? { turns }
  func forFurtherRoute() -> any EventPoolBalancing { EventPoolRoundRobinBalancer() }
}

extension EventPoolBalancing where Self == EventPoolRoundRobinBalancer {
  /// Gives each event to the next thread; a new one with each use.
  public static var roundRobin: EventPoolRoundRobinBalancer { EventPoolRoundRobinBalancer() }
}
