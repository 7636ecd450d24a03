// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// How many more events a run may begin: those of a stretch, until the next look at the clock, and those behind it. The
/// rule is that of the C core, whose `stretch.h` says and explains it.
struct LockingStretch {
  private static let most: UInt64 = 128
  private static let near: UInt64 = 32
  private static let span: UInt64 = 2_000
  private static let slow: UInt64 = 8_192

  private let deadline: UInt64
  private(set) var left: Int
  private var behind: Int
  private var length = 1
  private var began: UInt64 = 0
  /// Since when the subscriptions that have `met` this are known; 0 without a deadline.
  private var known: UInt64 = 0

  init(limit: Int, until deadline: UInt64) {
    self.deadline = deadline
    // Since `began` is 0, the first stretch has one event.
    (left, behind) = deadline == .max ? (limit, 0) : (0, limit)
  }

  /// Before an event. False: the limit or the deadline has come.
  @inline(__always)
  mutating func mayBegin() -> Bool { left > 0 || beginNext() }

  /// Before an event of a subscription.
  @inline(__always)
  mutating func meet(_ subscription: LockingSubscription) {
    guard subscription.met != known else { return }
    subscription.met = known
    guard known != 0 else { return }
    behind += left - 1
    (left, length) = (1, 1)
  }

  /// After an event.
  @inline(__always)
  mutating func didHandle() { left -= 1 }

  @inline(never)
  private mutating func beginNext() -> Bool {
    guard behind > 0 else { return false }
    let now = monotonicNanoseconds()
    guard now < deadline else { return false }
    let rest = deadline - now
    let (span, took) = (min(rest, Self.span), now - began + 1)
    let expected = span < 2 * took ? span * UInt64(length) / took : 2 * UInt64(length)
    if took > Self.slow { known = now }
    let most = max(min(rest / Self.slow, Self.most), Self.near)
    left = min(max(Int(min(expected, most)), 1), behind)
    length = left
    behind -= left
    began = now
    return true
  }
}
