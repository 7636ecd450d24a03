// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import Synchronization

/// A clock that stands still until somebody moves it, for tests and for simulations, whose time is their own.
///
/// ```swift
/// let clock = ManualClock()
/// let world = EventCentral(clock: clock)
/// Reminder(text: "tea").scheduleQueue(after: .seconds(180), on: world)
/// clock.advance(by: .seconds(180))   // dispatches the reminder
/// ```
///
/// Several centrals can share one, and tasks can sleep by it.
///
/// **Threads**: any, for every member.
public final class ManualClock: Clock {
  /// A time on a manual clock.
  public struct Instant: InstantProtocol {
    /// On the scale of ``EventCentral/now``.
    let nanoseconds: UInt64

    /// The time later by a duration, or earlier by a negative one.
    public func advanced(by duration: Duration) -> Instant {
      duration < .zero
        ? Instant(nanoseconds: nanoseconds - min(nanoseconds, (.zero - duration).wholeNanoseconds))
        : Instant(nanoseconds: later(nanoseconds, by: duration))
    }

    /// How much later another time is.
    public func duration(to other: Instant) -> Duration {
      let (from, to) = (nanoseconds, other.nanoseconds)
      let distance = Duration.wholeNanoseconds(from < to ? to - from : from - to)
      return from < to ? distance : .zero - distance
    }

    /// Whether a time comes before another.
    public static func < (one: Instant, other: Instant) -> Bool { one.nanoseconds < other.nanoseconds }
  }

  private let time = Atomic<UInt64>(CentralClock.start)
  /// What is to be called at which time.
  private let alarms = Guarded(TimerHeap<Alarm>())

  private final class Alarm: HeapTimer, @unchecked Sendable {
    // Guarded by the mutex of `alarms`; the rest is constant.
    var position = -1
    let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }

  /// Makes a clock that shows 1,000 seconds, so that there are times in the past.
  public init() {}

  /// The time that it shows.
  public var now: Instant { Instant(nanoseconds: nanoseconds) }

  /// A nanosecond.
  public var minimumResolution: Duration { .nanoseconds(1) }

  /// The time, on the scale of the central's deadlines.
  package var nanoseconds: UInt64 { time.load(ordering: .acquiring) }

  /// Moves on in one jump: schedules that have become due are dispatched on the calling thread, before this
  /// returns, and tasks that sleep until then go on.
  ///
  /// A central that was made with ``EventCentral/Timers/pumps`` dispatches in its pumps instead, and a
  /// deterministic one in ``EventCentral/run(limit:)``.
  ///
  /// - Parameter duration: How far; zero does what is due now. A negative one traps.
  ///
  /// **Threads**: any. What several threads move it by at once adds up.
  ///
  /// If another thread is inside an `advance` or schedules at this moment, that thread dispatches what is due, or the
  /// next `advance` does.
  ///
  /// **Order**: by the times of the deadlines within each central; a jump does all that is due in one central before it
  /// goes on to the next. Repetitions that a jump leaves behind follow their ``EventRepeatPolicy``.
  public func advance(by duration: Duration) {
    require(
      duration >= .zero,
      """
      A ManualClock goes on and never back, and it was to go on by \(duration): pass zero or more, and make \
      another clock for another time.
      """)
    var (now, isDone) = (nanoseconds, false)
    while !isDone {
      // Releasing: pairs with `nanoseconds`, for whoever sees the new time. A store would undo what another thread adds.
      (isDone, now) = time.weakCompareExchange(
        expected: now, desired: clockTime(later(now, by: duration)), ordering: .acquiringAndReleasing)
    }
    ring()
  }

  /// The same, to a time. If another thread has moved it further meanwhile, it stays there.
  package func advance(to nanoseconds: UInt64) {
    let nanoseconds = clockTime(nanoseconds)
    var (now, isDone) = (self.nanoseconds, false)
    // Not by `Atomic.max`, which compares times from 2^63 on as negative ones (Swift 6.3.1).
    while !isDone, now < nanoseconds {
      // Releasing: as above.
      (isDone, now) = time.weakCompareExchange(expected: now, desired: nanoseconds, ordering: .acquiringAndReleasing)
    }
    ring()
  }

  private func ring() {
    // One by one, and what is set meanwhile, too. The time is read anew, since an alarm may move the clock.
    while let alarm = takeDueAlarm() { alarm.body() }
  }

  /// For tests: how many alarms are set.
  var sleepers: Int { alarms.withLock { $0.count } }

  /// The earliest time for which an alarm is set; `.max` if there is none.
  var nextAlarm: UInt64 { alarms.withLock { $0.firstDeadline ?? .max } }

  private func takeDueAlarm() -> Alarm? {
    alarms.withLock { alarms in
      guard let time = alarms.firstDeadline, time <= nanoseconds else { return nil }
      return alarms.remove(at: 0)
    }
  }

  /// Calls a closure in the `advance` that reaches a time; if it has passed, in the next one. Returns what
  /// cancels that.
  func alarm(at time: UInt64, _ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
    let alarm = Alarm(body)
    alarms.withLock { $0.insert(alarm, at: time) }
    return { [weak self, weak alarm] in
      guard let self, let alarm else { return }
      // What it captured ends outside of the lock.
      alarms.withLock { if alarm.position >= 0 { $0.remove(at: alarm.position) } }
    }
  }

  /// Suspends the task until the clock has been moved to a time. Returns at once if it has passed.
  ///
  /// - Parameters:
  ///   - deadline: Until when.
  ///   - tolerance: Ignored: it never sleeps longer.
  /// - Throws: `CancellationError` if the task is cancelled.
  public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
    try Task.checkCancellation()
    let latch = Latch()
    let cancel = alarm(at: deadline.nanoseconds) { latch.open() }
    defer { cancel() }
    // After the alarm is set, so that no `advance` comes between.
    if now >= deadline { return }
    // True when it was opened, and not by the end of the task.
    guard await latch.opened(until: nil) else { throw CancellationError() }
  }
}

/// A time that is later, at most the last one that a clock can express, which never comes.
package func later(_ nanoseconds: UInt64, by duration: Duration) -> UInt64 {
  let (time, isBeyond) = nanoseconds.addingReportingOverflow(duration.wholeNanoseconds)
  return isBeyond ? .max : time
}

extension DispatchTime {
  /// The time so much later than now. (The distance in a `DispatchTimeInterval` is an `Int`, which may have 32 bits.)
  static func later(by duration: Duration) -> DispatchTime {
    DispatchTime(uptimeNanoseconds: EventCore.later(now().uptimeNanoseconds, by: duration))
  }
}

/// What a clock shows at most, so that the time which never comes is never reached.
func clockTime(_ nanoseconds: UInt64) -> UInt64 { min(nanoseconds, .max - 1) }

extension Duration {
  /// Any number of nanoseconds, which need not be an `Int64`.
  static func wholeNanoseconds(_ nanoseconds: UInt64) -> Duration {
    .seconds(Int64(nanoseconds / 1_000_000_000)) + .nanoseconds(Int64(nanoseconds % 1_000_000_000))
  }
}
