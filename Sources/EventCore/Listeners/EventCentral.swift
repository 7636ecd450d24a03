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

  /// Makes a central that shares nothing with others.
  ///
  /// - Parameter core: The implementation; both give the same guarantees.
  public convenience init(core: Core = .default) {
    self.init(core: core, clock: nil)
  }

  /// Makes a central for tests, whose schedules follow a manual clock; nil is the monotonic clock.
  package init(core: Core, clock: ManualClock?) {
    self.core = core
    router = core.parts.makeRouter()
    scheduler = Scheduler(core, clock: clock)
    let target = ScheduleTarget(scheduler, router)
    listener = EventListener(core: core, sources: [router], target: target, name: "EventListener")
  }

  deinit {
    scheduler.close()
    // A user may still hold the listener.
    listener.end()
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
