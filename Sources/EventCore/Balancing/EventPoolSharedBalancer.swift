// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Makes the events of a pool wait in one mailbox, from which whichever thread is idle takes the next one.
///
/// D1 holds across all threads of the pool, and no event waits behind a long handler. A pool has at most
/// 128 threads with this balancer.
///
/// All threads have to handle the same types. A thread that takes an event for which it has no callback
/// skips the event and counts it (``EventPoolStatistics/skipped``), even if another thread has one. Handing
/// the event on would break the order of the lanes, and bind the event to one thread, which may be stuck.
/// If the threads of a pool are not alike, use another balancer.
///
/// A callback with ``EventListenerInterest/latestOnly`` gets the newest event that waits in the pool: the
/// first such callback of every thread for a type shares one waiting event, the second another, and so on. Those with
/// ``EventListenerInterest/latestPerKey`` are counted apart. One that takes the place of a callback that was removed may
/// miss an event, if another thread was dispatching one before: the two share the place.
///
/// A callback that is added to a thread later gets what is dispatched from then on (D4). The callbacks that
/// a new thread is made with get what waits as well.
public struct EventPoolSharedBalancer: EventPoolBalancing {
  /// Makes a balancer, which has no state.
  public init() {}

  /// Returns the thread with the fewest events. A pool does not call this; another balancer may, such as a
  /// keyed one for types without a key. **Threads**: any, several at once. **Complexity**: O(threads).
  public func chooseThread(for choice: borrowing EventPoolChoice) -> Int { choice.leastLoaded() }
}

extension EventPoolSharedBalancer: EventPoolBalancerNeeds {
  var sharesOneMailbox: Bool { true }
}

extension EventPoolBalancing where Self == EventPoolSharedBalancer {
  /// Makes all events wait in one mailbox, from which whichever thread is idle takes the next one.
  public static var shared: EventPoolSharedBalancer { EventPoolSharedBalancer() }
}
