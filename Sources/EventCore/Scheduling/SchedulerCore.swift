// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The seam between the module and its two cores: timers in the order of their deadlines, equal
/// ones in the order in which they were added, never early.
///
/// A core knows nothing of events: it calls `EventScheduleHandle.fire`, which dispatches through
/// the front door. Implementations: the lock-free scheduler (C) and the locking scheduler (Swift).
protocol SchedulerCore: AnyObject, Sendable {
  /// Has `timer.fire` called at a time of the scheduler's clock, on its thread, one timer at a
  /// time; at once if the time has passed. If it returns a later deadline the timer is set again.
  /// The core retains the timer until then. Any thread.
  ///
  /// - Returns: False if the scheduler is closed.
  func add(_ timer: EventScheduleHandle, at deadline: UInt64) -> Bool

  /// Lets a timer go that need not fire any more: at once, or after the `fire` that runs. If it
  /// comes too late for a `fire`, that one is called. Any thread; once for each timer that was
  /// added.
  func withdraw(_ timer: EventScheduleHandle)

  /// Takes no more timers and calls `drop` for those that wait; the thread ends. Any thread, also
  /// the scheduler's own.
  func close()

  /// Fires what is due at a time, on the calling thread. Only for a scheduler with a manual clock.
  func runDue(at now: UInt64)
}
