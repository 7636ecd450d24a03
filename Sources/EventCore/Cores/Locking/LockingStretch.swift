// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// How many more events a run may begin: those of a stretch, until the next look at the clock, and those behind it. The
/// rule is that of the C core, whose `mailbox_pump.c` gives the reasons: a stretch has at most 32 events, as many as are
/// expected to take a microsecond at the pace of the one before, and at most twice as many as that.
struct LockingStretch {
  private static let most = 32
  private static let span: UInt64 = 1_000

  private let deadline: UInt64
  private var left: Int
  private var behind: Int
  private var length = 1
  private var began: UInt64 = 0

  init(limit: Int, until deadline: UInt64) {
    self.deadline = deadline
    // Since `began` is 0, the first stretch has one event.
    (left, behind) = deadline == .max ? (limit, 0) : (0, limit)
  }

  /// Before an event. False: the limit or the deadline has come.
  @inline(__always)
  mutating func mayBegin() -> Bool { left > 0 || beginNext() }

  /// After an event.
  @inline(__always)
  mutating func didHandle() { left -= 1 }

  @inline(never)
  private mutating func beginNext() -> Bool {
    guard behind > 0 else { return false }
    let now = monotonicNanoseconds()
    guard now < deadline else { return false }
    let (span, took) = (min(deadline - now, Self.span), now - began + 1)
    let expected = span < 2 * took ? Int(span * UInt64(length) / took) : 2 * length
    left = min(max(expected, 1), Self.most, behind)
    length = left
    behind -= left
    began = now
    return true
  }
}
