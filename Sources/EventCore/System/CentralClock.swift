// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The clock that a central was given, in nanoseconds on the scale of its deadlines. A central without one
/// follows the system's, and pays for none of this.
@usableFromInline
final class CentralClock: Sendable {
  private let read: @Sendable () -> UInt64
  private let set: @Sendable (UInt64, @escaping @Sendable () -> Void) -> @Sendable () -> Void
  /// Nil unless it is a manual clock.
  let manual: ManualClock?

  /// What a manual clock shows at first: there is room for deadlines in the past, and 0 means "no time".
  static let start: UInt64 = 1_000_000_000_000

  /// The clock that a central is given; nil for the system's, that of the cores and of `DispatchTime`.
  static func given(_ clock: some Clock<Duration>) -> CentralClock? {
    clock is SuspendingClock ? nil : CentralClock(clock, startingAt: monotonicNanoseconds())
  }

  /// - Parameter start: The nanoseconds that stand for the present time of a clock which is not manual.
  init(_ clock: some Clock<Duration>, startingAt start: UInt64) {
    manual = clock as? ManualClock
    if let manual {
      read = { manual.nanoseconds }
      set = { manual.alarm(at: $0, $1) }
      return
    }
    let origin = clock.now
    read = { clockTime(later(start, by: origin.duration(to: clock.now))) }
    set = { time, body in
      let deadline = origin.advanced(by: .wholeNanoseconds(time - min(time, start)))
      // Detached: it fires what many have scheduled, with the task-local values and the priority of none.
      let task = Task.detached {
        try? await clock.sleep(until: deadline, tolerance: nil)
        if !Task.isCancelled { body() }
      }
      return { task.cancel() }
    }
  }

  /// The time; never 0.
  var now: UInt64 { read() }

  /// Calls a closure once, at a time or a little before it: of a manual clock inside the `advance` that reaches
  /// it, of another one in a task. Returns what cancels that. Never calls it before it returns.
  func alarm(at time: UInt64, _ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
    set(time, body)
  }
}
