// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Gives each event to the thread of the pool with the fewest events, including the one it is handling.
///
/// If several have equally few, the first gets the event, so that the last threads of a pool sleep while
/// there is little to do. An event costs two loads for each thread, from lines that these threads write.
public struct EventPoolLowestLoadBalancer: EventPoolBalancing {
  /// Makes a balancer, which has no state.
  public init() {}

  /// Returns the first of the threads with the fewest events. **Threads**: any, several at once.
  /// **Complexity**: O(threads).
  public func chooseThread(for choice: borrowing EventPoolChoice) -> Int { choice.leastLoaded() }
}

extension EventPoolBalancing where Self == EventPoolLowestLoadBalancer {
  /// Gives each event to the thread with the fewest events.
  public static var lowestLoad: EventPoolLowestLoadBalancer { EventPoolLowestLoadBalancer() }
}
