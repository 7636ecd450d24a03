// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// One of the ten lanes of a mailbox: a dispatch method and a priority. Lanes are numbered in the order in
/// which a consumer takes from them (D1), as in `enum evc_lane`.
@usableFromInline
struct Lane {
  @usableFromInline let index: UInt8

  @usableFromInline static let count = 10
  /// The first lane that is a queue.
  @usableFromInline static let firstQueue: UInt8 = 5

  @inlinable
  init(_ method: EventDispatchMethod, _ priority: EventPriority) {
    index = UInt8(truncatingIfNeeded: 4 - priority.rawValue) &+ (method == .queue ? 5 : 0)
  }

  @inlinable
  init(index: UInt8) {
    self.index = index
  }

  @inlinable
  var priority: EventPriority {
    // The index is at most 9, so the raw value is one of the five.
    EventPriority(rawValue: 4 - Int(index) % 5).unsafelyUnwrapped
  }

  @inlinable
  var method: EventDispatchMethod { index < Lane.firstQueue ? .stack : .queue }
}

/// Whether an event is stacked or queued.
public enum EventDispatchMethod: Int, CaseIterable, Sendable {
  /// Last in, first out, and before all queued events.
  case stack
  /// First in, first out.
  case queue
}

/// How urgent an event is. Within one dispatch method the higher priority is handled first (D1).
public enum EventPriority: Int, CaseIterable, Comparable, Sendable {
  /// The least urgent.
  case lowest
  /// Less urgent than the default.
  case low
  /// The default.
  case normal
  /// More urgent than the default.
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
