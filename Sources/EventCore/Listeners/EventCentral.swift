// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Where events meet their receivers: a dispatch puts an event straight into the mailbox of every receiver
/// of its type.
///
/// Everything uses ``shared`` unless `on:` names another central. Make your own for tests, or for a program
/// that runs several simulations at once: events of one central never reach another.
///
/// **Threads**: any, for every member.
public final class EventCentral: EventListenable, Sendable {
  /// The central that is used if none is named.
  public static let shared = EventCentral()

  /// The implementation that the central uses.
  public let core: Core
  @usableFromInline let router: any RouterCore
  /// Keeps the listeners of this central. It ends with the central, or by its own ``EventListener/end()``.
  public let listener: EventListener
  let scheduler: Scheduler
  let basis: CentralBasis
  /// Runs what would be concurrent, if the central is deterministic.
  let serial: SerialLoop?

  /// Who dispatches the scheduled events of a central at their time.
  public enum Timers: Sendable {
    /// A thread of the central, made with the first schedule. If the central was given a clock: the thread that
    /// moves a ``ManualClock``, and for other clocks a task, which sleeps by the clock.
    case thread
    /// The central's pumps, inside ``EventPump/run(until:limit:)-(ContinuousClock.Instant?,_)``. A central whose receivers are
    /// pumps then has no thread at all.
    case pumps
  }

  /// Makes a central that shares nothing with others.
  ///
  /// - Parameters:
  ///   - core: The implementation; both give the same guarantees.
  ///   - clock: What schedules, ages, deadlines and the time of a dispatch follow. The default is the system's
  ///     clock, that of `DispatchTime`. With another one, such as a ``ManualClock`` or a simulation's own, all times
  ///     are those of ``now``; it need not tick steadily, but never goes back.
  ///   - timers: Who dispatches scheduled events.
  public convenience init<C: Clock<Duration>>(
    core: Core = .default, clock: C = SuspendingClock(), timers: Timers = .thread
  ) {
    self.init(
      CentralBasis(core: core, clock: CentralClock.given(clock), timersInPumps: timers == .pumps,
        source: Consumer.currentProbe), seed: nil)
  }

  /// - Parameter seed: That of a deterministic central.
  init(_ basis: CentralBasis, seed: UInt64?) {
    self.basis = basis
    core = basis.core
    router = basis.makeRouter()
    let scheduler = Scheduler(basis)
    self.scheduler = scheduler
    serial = seed.map { SerialLoop(seed: $0, timers: scheduler) }
    let target = ScheduleTarget(scheduler, router)
    listener = EventListener(basis, serial, sources: [router], target: target, name: "EventListener")
  }

  /// The time on the central's clock, for its schedules and deadlines: that of `DispatchTime.now()`, unless the
  /// central was given a clock. A ``ManualClock`` begins at 1,000 seconds. Other clocks begin at the `DispatchTime` at
  /// which the central was made, and go on from there by themselves.
  public var now: DispatchTime { DispatchTime(uptimeNanoseconds: basis.now) }

  deinit {
    scheduler.close()
    // A user may still hold the listener.
    listener.end()
    serial?.end()
  }

  /// Queues an event for every receiver of its type.
  ///
  /// - Parameters:
  ///   - event: What to dispatch.
  ///   - priority: Which of the five queues it joins.
  /// - Returns: How many receivers accepted it.
  ///
  /// **Threads**, **Order**, **Complexity**: as ``Eventable/queue(priority:on:)``.
  @inlinable
  @discardableResult
  public func queueEvent<E: Eventable>(
    _ event: consuming E, priority: EventPriority = .normal
  ) -> Int {
    dispatch(event, lane: Lane(.queue, priority), through: router)
  }

  /// Stacks an event for every receiver of its type. As ``queueEvent(_:priority:)``, but in the order of
  /// ``Eventable/stack(priority:on:)``.
  @inlinable
  @discardableResult
  public func stackEvent<E: Eventable>(
    _ event: consuming E, priority: EventPriority = .normal
  ) -> Int {
    dispatch(event, lane: Lane(.stack, priority), through: router)
  }

  /// What the scheduler of this central has done so far. **Threads**: any.
  public var scheduleStatistics: EventScheduleStatistics { scheduler.counts.statistics }
}
