// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// How urgent an event is. Within one dispatch method the higher priority is handled first (D1).
public enum EventPriority: Int, CaseIterable, Comparable, Sendable {
  case lowest
  case low
  case normal
  case high
  case highest

  /// The priorities in the order in which a consumer takes their events: `.highest` first.
  public static let inOrder: [EventPriority] = [.highest, .high, .normal, .low, .lowest]

  /// Whether `lhs` is less urgent than `rhs`.
  @inlinable
  public static func < (lhs: EventPriority, rhs: EventPriority) -> Bool {
    lhs.rawValue < rhs.rawValue
  }
}
