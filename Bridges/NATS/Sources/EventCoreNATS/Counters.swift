// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Synchronization

extension NATSBridge {
  /// What became of the events of a bridge.
  ///
  /// Of what was dispatched here: `outbox.accepted` is the sum of `sent`, `unencodable`, `tooLarge`, `unsent`,
  /// `outbox.dropped` and `outbox.waiting`, while nothing is under way. Of what came: `received` is the sum of
  /// `dispatched`, `unheard`, `own`, `foreign`, `malformed`, `tooLong` and `undecodable`.
  public struct Counts: Sendable, Equatable {
    /// Handed to the client, which was connected then; with ``NATSBridge/publish(_:stream:)`` stored by the server.
    public var sent = 0
    /// Their coding threw an error.
    public var unencodable = 0
    /// Longer than the server or the stream takes, or below a path that is.
    public var tooLarge = 0
    /// Waited in the outbox when the bridge ended, or their type was not published any more, or their node not mounted,
    /// or until it was too late for a parent coordinator to answer; or their node had left the mounted one while they
    /// climbed.
    public var unsent = 0
    /// What came to the outbox, and what its overflow policy did. Events of a batch that is not full wait as well.
    public var outbox: EventMailboxStatistics

    /// Events that came, and messages that are none. A batch that is ``own``, ``foreign`` or ``malformed`` counts once.
    public var received = 0
    /// Events that at least one receiver accepted, or that were raised at a node, whoever has a handler there; and
    /// requests that were asked here, whether or not anybody answers them.
    public var dispatched = 0
    /// Events that no receiver accepted: there is none, or all were full; and requests that were turned away.
    public var unheard = 0
    /// Came from a bridge of the same central, where they were dispatched already, or raised, maybe in another tree.
    public var own = 0
    /// Their message names another type.
    public var foreign = 0
    /// Their header has another form; or they ask for an answer at a subject that is none for answers; or they came to
    /// the deliver subject of a durable subscription, and are no delivery of its stream.
    public var malformed = 0
    /// Longer than ``NATSBridge/Options/longestMessage``.
    public var tooLong = 0
    /// Their coding threw an error: other bytes than those of such an event.
    public var undecodable = 0
    /// Dropped by the client, since more messages waited than ``NATSBridge/Options/inbox``, or since they still waited
    /// when their subscription ended, by its removal, the end of the bridge, or a drain that was late. They are not in
    /// `received`. A message that comes, or is taken to be dispatched, in the moment of the end may be missing here, or
    /// be in both; and what waited when the server turned the client away is not counted.
    public var overrun = 0
    /// Durable events that were given back to the server, to be delivered again.
    public var givenBack = 0
  }
}

/// The same while they are counted. Relaxed: each counts by itself and publishes nothing.
final class Counters: Sendable {
  let sent = Atomic<Int>(0), unencodable = Atomic<Int>(0), tooLarge = Atomic<Int>(0), unsent = Atomic<Int>(0)
  let received = Atomic<Int>(0), dispatched = Atomic<Int>(0), unheard = Atomic<Int>(0), own = Atomic<Int>(0)
  let foreign = Atomic<Int>(0), malformed = Atomic<Int>(0), tooLong = Atomic<Int>(0), undecodable = Atomic<Int>(0)
  /// Of subscriptions that have ended.
  let overrun = Atomic<Int>(0)
  let givenBack = Atomic<Int>(0)

  func counts(_ outbox: EventMailboxStatistics, overrun: Int) -> NATSBridge.Counts {
    func read(_ counter: borrowing Atomic<Int>) -> Int { counter.load(ordering: .relaxed) }
    var counts = NATSBridge.Counts(outbox: outbox)
    counts.sent = read(sent)
    counts.unencodable = read(unencodable)
    counts.tooLarge = read(tooLarge)
    counts.unsent = read(unsent)
    counts.received = read(received)
    counts.dispatched = read(dispatched)
    counts.unheard = read(unheard)
    counts.own = read(own)
    counts.foreign = read(foreign)
    counts.malformed = read(malformed)
    counts.tooLong = read(tooLong)
    counts.undecodable = read(undecodable)
    counts.overrun = overrun
    counts.givenBack = read(givenBack)
    return counts
  }
}

extension Atomic where Value == Int {
  borrowing func increment() { add(1) }
  borrowing func add(_ count: Int) { wrappingAdd(count, ordering: .relaxed) }
}
