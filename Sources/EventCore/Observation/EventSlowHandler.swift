// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import Synchronization

/// A handler that has taken longer than a watch allows.
public struct EventSlowHandler: Sendable, Equatable, Codable {
  /// The type of the event, with its module.
  public let type: String
  /// The receiver's name, as in ``EventStatistics``.
  public let receiver: String
  /// How long all handlers of the receiver have taken for the event, so far or altogether.
  public let duration: Duration
  /// How many events wait at the receiver by now.
  public let waiting: Int
  /// Whether they have returned.
  public let hasReturned: Bool
}

extension EventCentral {
  /// Reports handlers that take long, until the object that it returns is released. One that does not return is
  /// reported once while it runs, and once more when it has returned.
  ///
  /// ```swift
  /// let watch = world.watch(slowerThan: .milliseconds(5)) { slow in
  ///   print("\(slow.type) took \(slow.duration) at \(slow.receiver), and \(slow.waiting) events wait")
  /// }
  /// ```
  ///
  /// What a task does is not watched: neither a handler nor an answerer that is `async`, nor the loop over a sequence.
  /// Nor is what the tree of an ``EventNode`` or a coordinator calls, at whatever place, or a handler that is called
  /// for a kept event when it registers (``Eventable/keepNewest(on:maximumAge:)``).
  ///
  /// - Parameters:
  ///   - duration: How long the handlers of a receiver may take for one event, on the central's clock.
  ///   - report: Called for each longer one; one call at a time.
  /// - Returns: Keep it for as long as you want to watch.
  ///
  /// **Order**: a receiver is watched from the first event on that it takes of those that are dispatched after this
  /// returns.
  ///
  /// **Threads**: any; reports come on a queue of the watch.
  ///
  /// **Complexity**: as ``observe(times:)`` with `.none`, and two looks at the central's clock for each event at each
  /// receiver, some 40 ns. For handlers that have not returned there is one timer, which looks at the receivers once in
  /// `duration`, but not more often than once in a millisecond: they are reported after one to two periods of it.
  public func watch(
    slowerThan duration: Duration, _ report: @escaping @Sendable (_ slow: EventSlowHandler) -> Void
  ) -> EventObservation {
    require(
      duration > .zero,
      "A watch allows handlers more than no time, and this one \(duration): pass .milliseconds(5), or what suits them.")
    let watchdog = Watchdog(basis, duration.wholeNanoseconds, report)
    let wish = Instruments.Wish(limit: duration.wholeNanoseconds) { watchdog.note($0, $1, took: $2) }
    let observation = EventObservation(self, wish) { watchdog.end() }
    watchdog.begin()
    return observation
  }
}

/// Looks from time to time for handlers that do not return.
///
/// What changes and the reports belong to `queue`, but for `isOver`, which is atomic; with a clock of the central's
/// own, the clock rings, and `queue` looks.
private final class Watchdog: @unchecked Sendable {
  private let queue = DispatchQueue(label: "EventCore.watch", qos: .utility)
  private let instruments: Instruments
  private let clock: CentralClock?
  private let limit: UInt64
  private let report: @Sendable (EventSlowHandler) -> Void
  private let period: Duration
  /// Of each receiver that was reported: when the call began.
  private var reported: [Int: UInt64] = [:]
  /// Relaxed: it orders nothing. A report that finds it false has begun, as far as `end` is concerned.
  private let isOver = Atomic<Bool>(false)
  private var cancel: (@Sendable () -> Void)?

  init(_ basis: CentralBasis, _ limit: UInt64, _ report: @escaping @Sendable (EventSlowHandler) -> Void) {
    instruments = basis.instruments
    clock = basis.clock
    self.limit = limit
    self.report = report
    period = .nanoseconds(Int64(clamping: max(limit, 1_000_000)))
  }

  func begin() { queue.async { self.schedule() } }

  func end() {
    // At once, and not behind the reports that wait.
    isOver.store(true, ordering: .relaxed)
    queue.async { self.cancel?() }
  }

  private func schedule() {
    guard !isOver.load(ordering: .relaxed) else { return }
    if let clock {
      cancel = clock.alarm(at: later(clock.now, by: period)) { [weak self] in
        guard let self else { return }
        queue.async { self.look() }
      }
    } else {
      queue.asyncAfter(deadline: .later(by: period)) { [weak self] in self?.look() }
    }
  }

  /// Reports handlers that have not returned.
  private func look() {
    guard !isOver.load(ordering: .relaxed) else { return }
    let now = instruments.now
    var running: [Int: UInt64] = [:]
    for receiver in instruments.receivers {
      guard let call = receiver.probe.call, now >= call.began, now - call.began >= limit else { continue }
      running[receiver.probe.number] = call.began
      guard reported[receiver.probe.number] != call.began else { continue }
      send(receiver.probe, call.key, now - call.began, receiver.waiting, hasReturned: false)
    }
    reported = running
    schedule()
  }

  /// Reports a handler that has returned. Its thread.
  func note(_ receiver: any Instrumented, _ key: UInt, took time: UInt64) {
    let (probe, waiting) = (receiver.probe, receiver.waiting)
    queue.async { self.send(probe, key, time, waiting, hasReturned: true) }
  }

  private func send(_ probe: ConsumerProbe, _ key: UInt, _ time: UInt64, _ waiting: Int, hasReturned: Bool) {
    guard !isOver.load(ordering: .relaxed) else { return }
    report(
      EventSlowHandler(
        type: eventTypeName(key), receiver: probe.label, duration: .nanoseconds(Int64(clamping: time)), waiting: waiting,
        hasReturned: hasReturned))
  }
}
