// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

extension EventThread {
  /// The property wrapper, by its name in the event threads of EventDrivenSwift.
  public typealias EventMethod<Owner: AnyObject, Event: Eventable> = EventCore.EventMethod<Owner, Event>

  /// Removes the handlers of all ``EventMethod`` properties of the thread: after the return no call of them
  /// begins (D6). Other callbacks stay.
  ///
  /// **Threads**: any, also inside a handler. **Complexity**: O(properties).
  public func unregisterWrappedListeners() {
    for method in methods {
      method.projectedValue?.remove()
    }
  }
}

extension EventMethod {
  /// Registers this property's closure, unless it is registered: for an event thread as a callback of that
  /// thread, for any other object as a listener on the shared central.
  ///
  /// An event thread registers its properties when it is made; this registers one again after
  /// ``EventCore/EventThread/unregisterWrappedListeners()``.
  ///
  /// - Parameters:
  ///   - owner: The object that has the property. It is not retained.
  ///   - isolation: Leave it out. On an actor, the closure is called on that actor.
  ///
  /// **Threads**: as for `EventListening.registerListeners(isolation:)`; any for an event thread.
  public func prepare(owner: AnyObject, isolation: isolated (any Actor)? = #isolation) {
    if let thread = owner as? EventThread {
      register(thread: thread)
    } else {
      register(owner: owner, on: EventCentral.shared.listener, isolation)
    }
  }
}
