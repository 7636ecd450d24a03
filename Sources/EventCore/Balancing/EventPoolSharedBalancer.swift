// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Says that a pool is not balanced at all: its events wait in one mailbox, and whichever thread is
/// idle takes the next.
///
/// Strict D1 over all threads of the pool, and nothing waits behind a handler that takes long. A
/// callback with ``EventListenerInterest/latestOnly`` gets the newest of what waits in the pool:
/// the first such callback of each thread for a type shares one waiting event with those of the other
/// threads, the second another, and so on.
///
/// All threads of such a pool handle the same types: a thread that takes an event it has no
/// callback for skips it, and counts it (``EventPoolStatistics/skipped``), whatever callbacks the others
/// have. Handing it on would
/// lose the order that the lanes keep, and bind the event to one thread, which may be the one that
/// is stuck. For threads that are not alike take another balancer: those choose among the threads
/// that have a callback.
///
/// A callback that is added to a thread of such a pool gets what is dispatched from then on (D4). What
/// a new thread has when its pool gets it from its maker is as old as the pool: it gets what waits.
///
/// Passed to an ``EventPool`` it changes where events wait, so that nobody is asked to choose;
/// anywhere else it chooses the least loaded thread. Such a pool has at most 128 threads.
public struct EventPoolSharedBalancer: EventPoolBalancing {
  /// Makes one; it keeps no state.
  public init() {}

  /// Asked only inside another balancer: the thread with the fewest waiting events.
  ///
  /// **Threads**: any, several at once.
  ///
  /// **Complexity**: O(threads).
  public func chooseThread(for choice: borrowing EventPoolChoice) -> Int { choice.leastLoaded() }
}

extension EventPoolSharedBalancer: EventPoolBalancerNeeds {
  var sharesOneMailbox: Bool { true }
}

extension EventPoolBalancing where Self == EventPoolSharedBalancer {
  /// Has all events wait in one mailbox, from which whichever thread is idle takes the next.
  public static var shared: EventPoolSharedBalancer { EventPoolSharedBalancer() }
}
