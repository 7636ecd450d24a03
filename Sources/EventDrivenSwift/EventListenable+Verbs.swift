// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore

// What EventDrivenSwift has as methods of a central, a listener, an event thread and a pool, and
// EventCore says of the event: `SomeEvent.addListener(…, on: thread)`, `event.scheduleQueue(at:on:)`.

extension EventListenable {
  /// Has a closure or a method called for every event of a type that comes here, where it is
  /// registered.
  ///
  /// All else is as for that form of `SomeEvent.addListener`.
  @inlinable
  @discardableResult
  public func addListener<E: Eventable>(
    _ requester: AnyObject?,
    _ callback: @escaping TypedEventCallback<E>,
    forEventType type: E.Type = E.self,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: TypedEventFilterCallback<E>? = nil,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    E.addListener(
      requester, callback, interestedIn: interest, maximumAge: maximumAge,
      customFilter: customFilter, on: self, isolation: isolation)
  }

  /// Has a closure or a method called for every event of a type that comes here, in a place that it
  /// names.
  ///
  /// All else is as for that form of `SomeEvent.addListener`.
  @inlinable
  @discardableResult
  public func addListener<E: Eventable>(
    _ requester: AnyObject?,
    _ callback:
      @escaping @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime)
      -> Void,
    forEventType type: E.Type = E.self,
    executeOn: ExecuteEventOn,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool
    )? = nil,
    isolation: isolated (any Actor)? = #isolation
  ) -> any EventListenerHandling {
    E.addListener(
      requester, callback, executeOn: executeOn, interestedIn: interest, maximumAge: maximumAge,
      customFilter: customFilter, on: self, isolation: isolation)
  }

  /// Queues an event here at a time, as `event.scheduleQueue(at:priority:on:)`.
  @inlinable
  @discardableResult
  public func scheduleQueue<E: Eventable>(
    _ event: consuming E, at deadline: DispatchTime, priority: EventPriority = .normal
  ) -> EventScheduleHandle {
    event.scheduleQueue(at: deadline, priority: priority, on: self)
  }

  /// Stacks an event here at a time, as `event.scheduleStack(at:priority:on:)`.
  @inlinable
  @discardableResult
  public func scheduleStack<E: Eventable>(
    _ event: consuming E, at deadline: DispatchTime, priority: EventPriority = .normal
  ) -> EventScheduleHandle {
    event.scheduleStack(at: deadline, priority: priority, on: self)
  }
}
