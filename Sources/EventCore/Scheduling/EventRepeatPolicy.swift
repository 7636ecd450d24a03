// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What a repeated schedule does about deadlines that have passed before it could dispatch: the
/// machine slept or was overloaded, or the first deadline lay in the past.
///
/// With either policy the deadlines stay where they are: first, first + interval, first + 2 ×
/// interval, and so on. A late dispatch shifts none of them.
public enum EventRepeatPolicy: Sendable, CaseIterable {
  /// One dispatch for all of them; the next is at the first deadline still to come. What is left
  /// out is counted (``EventScheduleHandle/skipped``).
  case skip
  /// One dispatch for each of them, one right after the other.
  case catchUp
}
