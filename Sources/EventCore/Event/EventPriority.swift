// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// How urgent an event is. Within one dispatch method the higher priority is handled first (D1).
public enum EventPriority: Int, CaseIterable, Comparable, Sendable {
  /// Taken when nothing else waits.
  case lowest
  /// Taken when nothing of the three above waits.
  case low
  /// The default.
  case normal
  /// Taken before what is `.normal`.
  case high
  /// Taken before everything else.
  case highest

  /// The priorities in the order in which a consumer takes their events: `.highest` first.
  public static let inOrder: [EventPriority] = [.highest, .high, .normal, .low, .lowest]

  /// Whether `lhs` is less urgent than `rhs`.
  @inlinable
  public static func < (lhs: EventPriority, rhs: EventPriority) -> Bool {
    lhs.rawValue < rhs.rawValue
  }
}
