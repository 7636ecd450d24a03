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
}
