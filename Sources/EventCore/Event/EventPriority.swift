// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// How urgent an event is. Within one dispatch method the higher priority is handled first (D1).
public enum EventPriority: Int, CaseIterable, Comparable, Sendable {
  /// What nobody hurries for.
  case lowest
  /// Less urgent than what is not marked.
  case low
  /// The default.
  case normal
  /// More urgent than what is not marked.
  case high
  /// Before all others of its dispatch method.
  case highest

  /// The priorities in the order in which a consumer takes their events: `.highest` first.
  public static let inOrder: [EventPriority] = [.highest, .high, .normal, .low, .lowest]

  /// Whether `lhs` is less urgent than `rhs`.
  @inlinable
  public static func < (lhs: EventPriority, rhs: EventPriority) -> Bool {
    lhs.rawValue < rhs.rawValue
  }
}
