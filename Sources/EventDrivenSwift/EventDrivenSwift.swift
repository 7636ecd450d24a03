// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

// A program that comes from EventDrivenSwift imports this module and nothing else: all of EventCore,
// and what is written here for such programs alone.
@_exported public import EventCore

// The names that EventDrivenSwift has for closures, and for what ends one.

/// A closure that gets an event, its priority and the time of its dispatch.
///
/// It is not `@Sendable`: listeners without `executeOn:` take it as it is, while in Swift 6 mode the
/// callbacks of an `EventThread` and listeners with `executeOn:` have to be `@Sendable`.
public typealias TypedEventCallback<Event> = (
  _ event: Event, _ priority: EventPriority, _ dispatchTime: DispatchTime
) -> Void

/// A closure that judges an event: true if a listener wants it.
public typealias TypedEventFilterCallback<Event: Eventable> = (
  _ event: Event, _ priority: EventPriority, _ dispatchTime: DispatchTime
) -> Bool

/// A closure that gets the object whose property it is, and the event. See `EventMethod`.
public typealias EventMethodTypedEventCallback<Owner: AnyObject, Event> = (
  _ owner: Owner, _ event: Event, _ priority: EventPriority, _ dispatchTime: DispatchTime
) -> Void

/// A closure that gets an event of any type, for code of one's own: every registration here names
/// the exact type (D11).
public typealias EventCallback = (
  _ event: any Eventable, _ priority: EventPriority, _ dispatchTime: DispatchTime
) -> Void

/// A closure that judges an event of any type, for code of one's own.
public typealias EventFilterCallback = (
  _ event: any Eventable, _ priority: EventPriority, _ dispatchTime: DispatchTime
) -> Bool

extension EventThread {
  /// What ends a callback, by its name in EventDrivenSwift.
  public typealias EventCallbackHandler = any EventListenerHandling
}

extension Eventable {
  /// The name of the type, with the module and the types around it, for texts. Types are told apart
  /// by themselves (D11), never by this.
  ///
  /// **Threads**: any. **Complexity**: a string is made for each call.
  public static func getEventTypeName() -> String { String(reflecting: self) }

  /// The name of this event's type. As the static form.
  public func getEventTypeName() -> String { String(reflecting: Self.self) }
}
