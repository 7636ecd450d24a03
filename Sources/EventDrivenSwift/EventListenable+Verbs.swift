// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore

// EventDrivenSwift has these as methods of a central, a listener, an event thread and a pool. In EventCore
// they are methods of the event: `SomeEvent.addListener(…, on: thread)`, `event.scheduleQueue(at:on:)`.

extension EventListenable {
  /// Registers a closure or a method that is called, in the context of this call, for every event of a type
  /// that comes here. All else is as for that form of `SomeEvent.addListener`.
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

  /// Registers a closure or a method that is called in a named place for every event of a type that comes
  /// here. All else is as for that form of `SomeEvent.addListener`.
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

  /// Registers a closure or a method of the MainActor, which is called on the main queue, for every event of a
  /// type that comes here. All else is as for that form of `SomeEvent.addListener`.
  @inlinable
  @discardableResult
  public func addListener<E: Eventable>(
    _ requester: AnyObject?,
    _ callback:
      @escaping @MainActor @Sendable (
        _ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime
      ) -> Void,
    forEventType type: E.Type = E.self,
    interestedIn interest: EventListenerInterest = .all,
    maximumAge: UInt64 = 0,
    customFilter: (
      @MainActor @Sendable (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) ->
        Bool
    )? = nil
  ) -> any EventListenerHandling {
    E.addListener(
      requester, callback, interestedIn: interest, maximumAge: maximumAge,
      customFilter: customFilter, on: self)
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
