// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

// A program that was written for EventDrivenSwift imports this module alone: it exports EventCore, and adds
// the names that only such programs use.
@_exported public import EventCore

/// A closure that gets an event, its priority and the time of its dispatch.
///
/// It is not `@Sendable`, so listeners without `executeOn:` can take it. In Swift 6 mode the callbacks of an
/// `EventThread` and listeners with `executeOn:` have to be `@Sendable`.
public typealias TypedEventCallback<Event> = (
  _ event: Event, _ priority: EventPriority, _ dispatchTime: DispatchTime
) -> Void

/// A filter of events: it returns true for an event that a listener wants.
public typealias TypedEventFilterCallback<Event: Eventable> = (
  _ event: Event, _ priority: EventPriority, _ dispatchTime: DispatchTime
) -> Bool

/// A closure that gets the object that has it as a property, and the event. See `EventMethod`.
public typealias EventMethodTypedEventCallback<Owner: AnyObject, Event> = (
  _ owner: Owner, _ event: Event, _ priority: EventPriority, _ dispatchTime: DispatchTime
) -> Void

/// A closure that gets an event of any type, for a program's own code: every registration here is for one
/// type (D11).
public typealias EventCallback = (
  _ event: any Eventable, _ priority: EventPriority, _ dispatchTime: DispatchTime
) -> Void

/// A filter of events of any type, for a program's own code.
public typealias EventFilterCallback = (
  _ event: any Eventable, _ priority: EventPriority, _ dispatchTime: DispatchTime
) -> Bool

extension EventThread {
  /// The handle of a callback, by its name in EventDrivenSwift.
  public typealias EventCallbackHandler = any EventListenerHandling

  /// A closure that gets the event thread that has it as a property, and the event. See `EventMethod`.
  public typealias EventMethodTypedEventCallback<Owner: EventThread, Event> = (
    _ owner: Owner, _ event: Event, _ priority: EventPriority, _ dispatchTime: DispatchTime
  ) -> Void
}

extension Eventable {
  /// The name of the type, with its module and enclosing types, for display. Events are never identified by
  /// it (D11).
  ///
  /// **Threads**: any. **Complexity**: each call makes a string.
  public static func getEventTypeName() -> String { String(reflecting: self) }

  /// The name of this event's type, as the static form.
  public func getEventTypeName() -> String { String(reflecting: Self.self) }
}
