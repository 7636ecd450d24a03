// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The events that a pump delivers between two looks at the clock, as in the C core (`mailbox_pump.c`, which
/// says why): at most 32, as many as are expected to take a microsecond or what is left until the deadline,
/// and at most twice as many as the time before, from one on.
struct LockingStretch {
  /// How many events of this stretch are left. The loop counts it down, and calls `next()` at 0.
  var left: Int
  private var length: Int
  /// How many more events the pump may deliver, those of this stretch included.
  private var limit: Int
  private var begin: UInt64 = 0
  private let deadline: UInt64

  private static let events = 32
  private static let nanoseconds: UInt64 = 1_000

  /// Begins the first stretch; nil if the deadline has passed. `deadline`: `.max` for none.
  init?(limit: Int, until deadline: UInt64) {
    (self.limit, self.deadline) = (limit, deadline)
    length = limit
    if deadline != .max {
      begin = monotonicNanoseconds()
      guard begin < deadline else { return nil }
      length = min(1, limit)
    }
    left = length
  }

  /// Begins the next stretch. False if the limit or the deadline is reached.
  mutating func next() -> Bool {
    limit -= length
    guard limit > 0 else { return false }
    let now = monotonicNanoseconds()
    guard now < deadline else { return false }
    // The clock's ticks may be coarse: one nanosecond more, against a division by zero.
    let events = min(deadline - now, Self.nanoseconds) * UInt64(length) / (now - begin + 1)
    length = min(max(1, min(Int(events), 2 * length, Self.events)), limit)
    begin = now
    left = length
    return true
  }
}
