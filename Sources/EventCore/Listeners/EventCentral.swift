// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Where events meet their receivers: dispatched by type here, each event goes straight into the
/// mailbox of every receiver of its type.
///
/// Everything uses ``shared`` unless `on:` names another. Make others for tests, or for a program that
/// runs several games or simulations at once: events of one central never reach another.
///
/// **Threads**: any, for every member.
public final class EventCentral: EventListenable, Sendable {
  /// The central that is used when none is named.
  public static let shared = EventCentral()

  /// The implementation that it uses.
  public let core: Core
  @usableFromInline let router: any RouterCore
  /// The listeners of this central, and the thread for those that run on the listener thread. It
  /// ends with the central, or by its own ``EventListener/end()``.
  public let listener: EventListener
  let scheduler: Scheduler

  /// Makes a central that shares nothing with others.
  ///
  /// - Parameter core: Which implementation; both give the same guarantees.
  ///
  /// **Threads**: any.
  public convenience init(core: Core = .default) {
    self.init(core: core, clock: nil)
  }

  /// Makes a central whose schedules follow a manual clock, for tests; nil is the monotonic clock.
  package init(core: Core, clock: ManualClock?) {
    self.core = core
    router = core.parts.makeRouter()
    scheduler = Scheduler(core, clock: clock)
    let target = ScheduleTarget(scheduler, router)
    listener = EventListener(core: core, sources: [router], target: target, name: "EventListener")
  }

  deinit {
    scheduler.close()
    // Somebody may hold the listener.
    listener.end()
  }

  /// Queues an event for every receiver of its type.
  ///
  /// - Parameters:
  ///   - event: What to dispatch.
  ///   - priority: Which of the five queues it joins.
  /// - Returns: How many receivers get it.
  ///
  /// **Threads**, **Order**, **Complexity**: as ``Eventable/queue(priority:on:)``.
  @inlinable
  @discardableResult
  public func queueEvent<E: Eventable>(
    _ event: consuming E, priority: EventPriority = .normal
  ) -> Int {
    dispatch(event, lane: Lane(.queue, priority), through: router)
  }

  /// Stacks an event for every receiver of its type.
  ///
  /// All else is as for ``queueEvent(_:priority:)``, but for the order: that of ``Eventable/stack(priority:on:)``.
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
