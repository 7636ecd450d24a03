// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

extension EventThread {
  /// The property wrapper by the name that it has inside an event thread of EventDrivenSwift.
  public typealias EventMethod<Owner: AnyObject, Event: Eventable> = EventCore.EventMethod<Owner, Event>

  /// Ends the handlers of all the thread's ``EventMethod`` properties: after the return no further call
  /// of them begins (D6). Callbacks that were added otherwise stay.
  ///
  /// **Threads**: any, also inside a handler. **Complexity**: O(properties), by reflection.
  public func unregisterWrappedListeners() {
    for method in eventMethods(of: self) {
      method.projectedValue?.remove()
    }
  }
}

extension EventMethod {
  /// Registers this property's closure: for an event thread as a callback of that thread, for any other
  /// object as a listener on the shared central. Nothing changes if it is registered already.
  ///
  /// An event thread registers its properties by itself when it is made; this registers one again after
  /// ``EventCore/EventThread/unregisterWrappedListeners()``.
  ///
  /// - Parameters:
  ///   - owner: The object that has the property. It is not retained.
  ///   - isolation: Leave it out. On an actor, the closure is called there.
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
