// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What became of an event at its receivers: how many of them did what with it. They add up to the receivers.
///
/// ```swift
/// let outcome = Score(points: 3).queueWithOutcome()
/// if outcome.refused > 0 { throttle() }
/// ```
public struct EventDispatchOutcome: Sendable, Equatable {
  /// At so many it waits to be handled.
  public var accepted = 0
  /// So many were full, and refused it.
  public var refused = 0
  /// So many accepted it, and dropped it at once by their overflow policy.
  public var dropped = 0
  /// So many of those that accepted it dropped an earlier event in its favour. These do not add to the sum.
  public var displaced = 0
  /// So many have ended since the dispatch began.
  public var ended = 0

  /// Makes an outcome without receivers.
  public init() {}

  mutating func add(_ other: Self) {
    accepted += other.accepted
    refused += other.refused
    dropped += other.dropped
    displaced += other.displaced
    ended += other.ended
  }
}

/// What one receiver did with an event (``Eventable/queueToEach(priority:on:)``).
public struct EventReceiverOutcome: Sendable, Equatable {
  /// What became of an event at a receiver.
  public enum Fate: Sendable {
    /// It waits to be handled. A handler whose interest is to skip it does so when its turn comes.
    case accepted
    /// The receiver was full, and refused it.
    case refused
    /// The receiver accepted it, and dropped it at once by its overflow policy.
    case dropped
    /// The receiver has ended since the dispatch began.
    case ended
  }

  /// The receiver's name, as in ``EventStatistics``; that of a pool for all of its threads; empty for a receiver in C,
  /// and perhaps for one that has ended.
  public let receiver: String
  /// What became of the event.
  public let fate: Fate
  /// Whether an earlier event was dropped in its favour.
  public let hasDisplaced: Bool

  /// - Parameter outcome: That of one event at one receiver.
  init(_ receiver: String, _ outcome: EventDispatchOutcome) {
    self.receiver = receiver
    fate =
      outcome.accepted > 0 ? .accepted : outcome.refused > 0 ? .refused : outcome.dropped > 0 ? .dropped : .ended
    hasDisplaced = outcome.displaced > 0
  }
}
