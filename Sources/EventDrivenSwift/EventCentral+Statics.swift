// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore

extension EventCentral {
  /// The shared central, as EventDrivenSwift abbreviates it: `EventCentral[]`.
  ///
  /// **Threads**: any. **Ownership**: it lasts as long as the program.
  public static subscript() -> EventCentral { shared }

  /// Registers a closure or a method that is called, in the context of this call, for every event of a type
  /// that is dispatched on the shared central. New code calls `SomeEvent.addListener`, which has more forms;
  /// all else is as for that.
  @inlinable
  @discardableResult
  public static func addListener<E: Eventable>(
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
      customFilter: customFilter, isolation: isolation)
  }

  /// Registers a closure or a method that is called in a named place. All else is as for that form of
  /// `SomeEvent.addListener`.
  @inlinable
  @discardableResult
  public static func addListener<E: Eventable>(
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
      customFilter: customFilter, isolation: isolation)
  }

  /// Registers a closure or a method of the MainActor, which is called on the main queue. All else is as for
  /// that form of `SomeEvent.addListener`.
  @inlinable
  @discardableResult
  public static func addListener<E: Eventable>(
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
      customFilter: customFilter)
  }

  /// Queues an event on the shared central, and returns how many receivers get it. New code calls
  /// `event.queue()`. **Threads**: any.
  @inlinable
  @discardableResult
  public static func queueEvent<E: Eventable>(
    _ event: consuming E, priority: EventPriority = .normal
  ) -> Int {
    shared.queueEvent(event, priority: priority)
  }

  /// Stacks an event on the shared central, and returns how many receivers get it. New code calls
  /// `event.stack()`. **Threads**: any.
  @inlinable
  @discardableResult
  public static func stackEvent<E: Eventable>(
    _ event: consuming E, priority: EventPriority = .normal
  ) -> Int {
    shared.stackEvent(event, priority: priority)
  }

  /// Queues an event on the shared central at a time. New code calls `event.scheduleQueue(at:)`. **Threads**:
  /// any. **Ownership**: the schedule keeps the event; the handle may be ignored.
  @inlinable
  @discardableResult
  public static func scheduleQueue<E: Eventable>(
    _ event: consuming E, at deadline: DispatchTime, priority: EventPriority = .normal
  ) -> EventScheduleHandle {
    event.scheduleQueue(at: deadline, priority: priority)
  }

  /// Stacks an event on the shared central at a time. New code calls `event.scheduleStack(at:)`. **Threads**:
  /// any. **Ownership**: the schedule keeps the event; the handle may be ignored.
  @inlinable
  @discardableResult
  public static func scheduleStack<E: Eventable>(
    _ event: consuming E, at deadline: DispatchTime, priority: EventPriority = .normal
  ) -> EventScheduleHandle {
    event.scheduleStack(at: deadline, priority: priority)
  }
}

extension EventCentral {
  /// Not available: no event waits in a central.
  @available(
    *, unavailable,
    message: "Nothing waits in a central. Ask a thread for eventCount, or a handle for waitingEventCount.")
  public static var eventCount: Int { 0 }

  /// Not available: a thread is registered with its callbacks.
  @available(
    *, unavailable,
    message: "A thread gets the events for which it has a callback: addEventCallback(_:forEventType:).")
  public static func addReceiver(_ receiver: AnyObject, forEventType: any Eventable.Type) {}

  /// Not available: a thread is unregistered when its callbacks are removed.
  @available(
    *, unavailable,
    message: "Remove its callbacks by their handles, or end the thread: remove(), cancel().")
  public static func removeReceiver(_ receiver: AnyObject, forEventType: any Eventable.Type) {}

  /// Not available: a thread is unregistered when it ends.
  @available(
    *, unavailable,
    message: "Remove its callbacks by their handles, or end the thread: remove(), cancel().")
  public static func removeReceiver(_ receiver: AnyObject) {}
}
