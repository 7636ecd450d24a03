// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Gives each event to the thread of the pool that has the least to do: the fewest events waiting,
/// the one that it handles now included.
///
/// Of several with as little the first gets it, so that the last threads of a pool sleep while
/// there is little to do. Costs two loads for each thread of the pool and event, from lines that
/// these threads write.
public struct EventPoolLowestLoadBalancer: EventPoolBalancing {
  /// Makes one; it keeps no state.
  public init() {}

  /// The thread with the fewest waiting events; of several the first.
  ///
  /// **Threads**: any, several at once.
  ///
  /// **Complexity**: O(threads).
  public func chooseThread(for choice: borrowing EventPoolChoice) -> Int { choice.leastLoaded() }
}

extension EventPoolBalancing where Self == EventPoolLowestLoadBalancer {
  /// Gives each event to the thread that has the least to do.
  public static var lowestLoad: EventPoolLowestLoadBalancer { EventPoolLowestLoadBalancer() }
}
