// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What handles events and counts them: an event thread, a worker, a pool, a listener, or the listeners of a central.
/// It is what EventCoreServiceLifecycle ends, and what EventCoreLogging and EventCoreMetrics look at. A type of your
/// own can conform by passing everything on to one of these.
///
/// The listeners `on:` an event thread or a pool that run elsewhere, on queues, on actors and in tasks, are a receiver
/// of their own: its ``EventListenable/listener``. Name it, too, where they are to be looked at. What
/// EventCoreServiceLifecycle reports of the end of a thread or a pool has them already.
///
/// **Threads**: any, for every member.
public protocol EventReceiver: Sendable {
  /// What reports call it: the name that it was given, or its type.
  var receiverName: String { get }
  /// What its handlers have done so far.
  var receiverStatistics: EventThreadStatistics { get }
  /// What came to its mailboxes, and what became of it there.
  var mailboxStatistics: EventMailboxStatistics { get }
  /// How many events wait for it, or wait to be freed after its end.
  var waitingEventCount: Int { get }
  /// How long the handler has been running that has been so for longest, to a few milliseconds; nil if none runs, or if
  /// nobody looks, as outside of pools.
  var handlerRunningFor: Duration? { get }
}

extension EventReceiver {
  public var receiverName: String { "\(type(of: self))" }
  public var waitingEventCount: Int { mailboxStatistics.waiting }
  public var handlerRunningFor: Duration? { nil }
}

extension [any EventReceiver] {
  /// The names under which a log or metrics of these receivers tell them apart: of several with one name the second is
  /// `Name-2`, and so on. A number whose name a receiver has, or has got, is left out.
  package var distinctNames: [String] {
    let names = map(\.receiverName)
    // Those of later receivers as well, which keep them.
    var given = Set(names)
    var numbers: [String: Int] = [:]
    return names.map { name in
      guard var number = numbers[name] else {
        numbers[name] = 1
        return name
      }
      repeat { number += 1 } while !given.insert("\(name)-\(number)").inserted
      numbers[name] = number
      return "\(name)-\(number)"
    }
  }
}
