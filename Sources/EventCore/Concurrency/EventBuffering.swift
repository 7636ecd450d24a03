// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Which events wait for a sequence while its task does something else. Those that do not are lost, and counted
/// (``EventSequence/lag``). The bounds do not count events of an interest that replaces them: with `.latestOnly` at most
/// one waits, with `.latestPerKey` one for each key, however many keys there are.
public enum EventBuffering: Sendable, Equatable {
  /// All of them, or as many as a bounded ``EventListener`` as the source allows. Memory grows while the task falls
  /// behind.
  case unbounded
  /// The first that come, up to so many, at least 1. While they wait, the sequence refuses others, as
  /// ``EventOverflowPolicy/refuse`` does.
  case oldest(Int)
  /// The last that came, up to so many, at least 1. One that comes displaces another, as
  /// ``EventOverflowPolicy/dropOldest`` does: the oldest of the least urgent.
  case newest(Int)
  /// The newest one. It replaces the event that waits, and constant memory does. The price of an event is the lowest.
  case latest

  /// The bound of the sequence's mailbox; nil for that of the source.
  var capacity: EventMailboxCapacity? {
    switch self {
    case .unbounded, .latest: nil
    case .oldest(let count): .bounded(count, whenFull: .refuse)
    case .newest(let count): .bounded(count, whenFull: .dropOldest)
    }
  }
}
