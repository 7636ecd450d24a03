// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// How many events may wait in a mailbox.
///
/// ```swift
/// let pump = EventPump(mailbox: .bounded(10_000, whenFull: .dropOldest))
/// ```
///
/// Each receiver that has a mailbox takes one: ``EventThread``, ``EventListener``, ``EventPump`` and
/// ``EventPool``. Bounds belong to receivers: one that is full holds up or loses nothing of the others.
public enum EventMailboxCapacity: Sendable, Equatable {
  /// Any number, up to the memory of the process.
  case unbounded
  /// So many events at most, at least 1. Those that are handled do not wait any more, and those of a `.latestOnly` or
  /// `.latestPerKey` callback do not count, since one of these waits at most, or one of each key.
  case bounded(Int, whenFull: EventOverflowPolicy)

  /// - Parameter what: The kind of receiver, for the message.
  func check(for what: String) {
    guard case .bounded(let capacity, let policy) = self else { return }
    require(
      capacity >= 1,
      """
      The mailbox of an \(what) holds at least one event, and this one was to hold \(capacity): pass 1 or \
      more, or .unbounded.
      """)
    guard case .block(let limit) = policy else { return }
    require(
      limit >= .zero,
      """
      The policy .block(upTo:) of an \(what) waits for a time, and this one is \(limit): pass .zero or more.
      """)
  }

  /// That of a deterministic central, whose one thread would wait for itself.
  var withoutWaiting: EventMailboxCapacity {
    guard case .bounded(let capacity, .block) = self else { return self }
    return .bounded(capacity, whenFull: .refuse)
  }

  /// The number; nil for any. At most 2^61, or 2^29 where a word has 32 bits: no memory holds as many, and the C core
  /// counts no further than 2^62.
  var limit: Int? {
    if case .bounded(let capacity, _) = self { min(capacity, Int.max >> 2) } else { nil }
  }

  /// What to do when it is reached.
  var policy: EventOverflowPolicy {
    if case .bounded(_, let policy) = self { policy } else { .refuse }
  }
}

/// What becomes of an event that finds the mailbox of a receiver full. Each case counts it in the receiver's
/// ``EventMailboxStatistics``.
public enum EventOverflowPolicy: Sendable, Equatable {
  /// The receiver does not accept it: what the dispatch returns is lower by it.
  case refuse
  /// The receiver accepts it and drops it at once.
  case dropNewest
  /// The receiver drops an event that waits in its favour: the oldest of the least urgent lane. It displaces none
  /// that is more urgent than itself; if only such events wait, it is dropped itself. Of a stack the newest event
  /// is dropped, below which nothing can be reached without a lock.
  ///
  /// What takes no place comes before the others of its lane in such a mailbox: `.latestOnly` and `.latestPerKey`
  /// events, jobs of actors and tasks, and what trees, and listeners of other centrals, hand over to the receiver. On the
  /// lock-free core an event that is dispatched while the receiver looks for its next one may come after one of a less
  /// urgent lane that was dispatched later still (D1).
  case dropOldest
  /// The dispatch waits for a place, up to a time, and is then refused. The end of the thread, pump, pool or listener
  /// whose mailbox it is ends the wait; the removal of one callback does not. Of several events in one call each batch
  /// shares the time, and if one of them is refused, so are those behind it; in a balanced pool the lock-free core gives
  /// the time to each thread's share of them.
  ///
  /// The time is the system's, whatever clock the central has.
  ///
  /// This is the one policy under which a dispatch waits (D5), and while it does, it reaches no further receiver; a
  /// scheduled event that waits holds up the schedules of its central. A dispatch by the receiver itself, in a
  /// callback or of a scheduled event in its run, is refused at once, since nobody else would make room; so is any
  /// dispatch in a deterministic central. An `async` callback, and the body of a loop over a sequence, are not known as
  /// the receiver: a dispatch to their own full mailbox waits up to the limit, on a thread of the cooperative pool.
  /// Choose another policy there, and for what is dispatched to another mailbox that the same thread, queue or actor
  /// empties: that dispatch waits up to the limit, too. The first of several waiting threads is woken after up to 16
  /// places have become free, and not in the order of their arrival.
  case block(upTo: Duration)
}
