// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// One of the ten lanes of a mailbox: dispatch method × priority, numbered in the order in which a
/// consumer empties them (D1). The numbers are those of `enum evc_lane`.
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
    // The index is at most 9, so that the raw value is one of the five.
    EventPriority(rawValue: 4 - Int(index) % 5).unsafelyUnwrapped
  }

  @inlinable
  var method: EventDispatchMethod { index < Lane.firstQueue ? .stack : .queue }
}
