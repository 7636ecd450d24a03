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
  public static let shared = EventCentral(
    CentralBasis(
      core: .default,
      carrier: ofShared.withLock {
        $0.isMade = true
        return $0.carrier
      }, source: Consumer.currentProbe), seed: nil)
  private static let ofShared = Guarded<(carrier: EventCarrier?, isMade: Bool)>((nil, false))

  /// The implementation that the central uses.
  public let core: Core
  @usableFromInline let router: any RouterCore
  /// Keeps the listeners of this central. It ends with the central, or by its own ``EventListener/end()``.
  public let listener: EventListener
  let scheduler: Scheduler
  let basis: CentralBasis
  /// What sends events to other machines (`BridgeSeam.swift`).
  let outward = Outward()
  /// Runs what would be concurrent, if the central is deterministic.
  let serial: SerialLoop?

  /// Who dispatches the scheduled events of a central at their time.
  public enum Timers: Sendable {
    /// A thread of the central, made with the first schedule. If the central was given a clock: the thread that
    /// moves a ``ManualClock``, and for other clocks a task, which sleeps by the clock.
    case thread
    /// The central's pumps, inside ``EventPump/run(until:limit:)-(ContinuousClock.Instant?,_)``. The scheduler makes no
    /// thread.
    case pumps
  }

  /// Makes a central that shares nothing with others.
  ///
  /// - Parameters:
  ///   - core: The implementation; both give the same guarantees.
  ///   - clock: What schedules, ages, deadlines and the time of a dispatch follow. The default is the system's
  ///     clock, that of `DispatchTime`. With another one, such as a ``ManualClock`` or a simulation's own, all times
  ///     are those of ``now``; it need not tick steadily, but never goes back. Dispatches read it, so that reading it
  ///     must neither dispatch nor wait.
  ///   - timers: Who dispatches scheduled events.
  public convenience init<C: Clock<Duration>>(
    core: Core = .default, clock: C = SuspendingClock(), timers: Timers = .thread
  ) {
    self.init(
      CentralBasis(
        core: core, clock: CentralClock.given(clock), timersInPumps: timers == .pumps, source: Consumer.currentProbe),
      seed: nil)
  }

  /// For EventCoreTracing: makes a central that carries something with its events.
  package convenience init<C: Clock<Duration>>(
    core: Core, clock: C, timers: Timers, carrier: EventCarrier
  ) {
    self.init(
      CentralBasis(
        core: core, clock: CentralClock.given(clock), timersInPumps: timers == .pumps, carrier: carrier,
        source: Consumer.currentProbe), seed: nil)
  }

  /// For EventCoreTracing: has ``shared``, which is made at its first use, carry something. False if it was made already.
  package static func carryOnShared(_ carrier: EventCarrier) -> Bool {
    ofShared.withLock { shared in
      if !shared.isMade { shared.carrier = carrier }
      return !shared.isMade
    }
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
    // A user may still hold the listener.
    end()
    serial?.end()
    basis.sticky.end()
  }

  /// Queues an event for every receiver of its type. The same as ``Eventable/queue(priority:on:)``, which new code
  /// writes.
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

  /// Ends the schedules and the listeners of this central, the latter after they have handled the events that wait:
  /// ``EventListener/drain(until:)`` of its ``listener``. Event threads, pools and other listeners have drains of their own,
  /// and are not ended. After the end of ``shared`` nobody can listen there.
  ///
  /// From the beginning no schedule is dispatched at its time; the events are freed soon after the drain. Limits of
  /// requests and of other waits go on until its end, so that an answer that is made meanwhile reaches its requester.
  ///
  /// - Parameter deadline: When to give up, on the central's clock. A task that is cancelled gives up at once; in a
  ///   deterministic central it first runs what is left.
  /// - Returns: True if its listeners have handled everything in time.
  ///
  /// **Threads**: any task or actor; in a deterministic central none that runs on one of its threads.
  ///
  /// **Complexity**: as ``EventListener/end()``, also where that takes longer than the deadline.
  @discardableResult
  public nonisolated(nonsending) func drain(until deadline: DispatchTime = .distantFuture) async -> Bool {
    scheduler.closeForSchedules()
    let isDrained = await listener.drain(until: deadline)
    // What still waits with a limit has lost its clock.
    scheduler.close()
    return isDrained
  }

  /// Ends the schedules and the listeners at once.
  package func end() {
    scheduler.close()
    listener.end()
  }

  /// What the scheduler of this central has done so far. **Threads**: any.
  public var scheduleStatistics: EventScheduleStatistics { scheduler.counts.statistics }
}

extension EventCentral: EventReceiver {
  /// Those of its ``listener``: threads and pools are receivers of their own.
  public var receiverStatistics: EventThreadStatistics { listener.statistics }
  public var mailboxStatistics: EventMailboxStatistics { listener.mailboxStatistics }
}

extension EventCentral: ActiveByItself {}
