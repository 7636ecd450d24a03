// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// Gives the events to the threads of the pool in turn. This is the default.
///
/// It suits handlers that all take about the same time: a thread that is held up still gets its share. Give
/// each pool its own balancer: pools that share one take their turns from one counter.
public final class EventPoolRoundRobinBalancer: EventPoolBalancing, @unchecked Sendable {
  // Unchecked: the pointer is constant, and what it points to is atomic.

  /// Counts the turns. It has a cache line to itself.
  private let turns: UnsafeMutablePointer<Atomic<UInt32>>

  /// Makes a balancer that begins with the first thread.
  public init() {
    let line = UnsafeMutableRawPointer.allocate(byteCount: 64, alignment: 64)
    turns = line.initializeMemory(as: Atomic<UInt32>.self, to: Atomic(0))
  }

  deinit {
    turns.deinitialize(count: 1)
    turns.deallocate()
  }

  /// Returns the next thread, and after the last one the first. **Threads**: any, several at once.
  /// **Complexity**: O(1).
  public func chooseThread(for choice: borrowing EventPoolChoice) -> Int {
    // Relaxed, as in balancer_post.c: nothing is published with the count. It overflows to 0, which shifts
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
  /// Gives the events to the threads in turn. Each use makes a new balancer.
  public static var roundRobin: EventPoolRoundRobinBalancer { EventPoolRoundRobinBalancer() }
}
