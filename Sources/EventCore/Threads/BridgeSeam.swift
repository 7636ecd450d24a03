// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

// What a bridge to other machines needs of a central: to send what is dispatched here, to dispatch what arrives without
// sending it again, and to pass on what the central carries with its events, such as the context of a trace. For
// packages that write `@_spi(Bridge) import EventCore`; others do not see it.

/// The registration of a callback that sends events to other machines (``EventThread/addOutwardCallback(_:)``).
@_spi(Bridge)
public final class OutwardRegistration: Sendable {
  private let handle: EventCallbackHandle
  private let subscription: Subscription?
  private let central: EventCentral
  private let key: UInt

  fileprivate init(_ central: EventCentral, _ key: UInt, _ register: () -> EventCallbackHandle) {
    (self.central, self.key) = (central, key)
    var handle: EventCallbackHandle!
    central.outward.add(key) {
      handle = register()
      return handle.subscription
    }
    self.handle = handle
    subscription = handle.subscription
  }

  /// Ends it: no further call of the callback begins (D6). Once, before the thread is released.
  public func remove() {
    handle.remove()
    // Afterwards: until then the subscription would get what arrives.
    if let subscription { central.outward.remove(subscription, key) }
  }
}

extension EventThread {
  /// Registers a callback for the events of a type that are dispatched on this machine, with what another machine has
  /// to know of the dispatch. One for each type and thread.
  ///
  /// **Threads**, **Order**: as for ``addEventCallback(_:forEventType:interestedIn:maximumAge:customFilter:)``.
  @_spi(Bridge)
  public func addOutwardCallback<E: Eventable>(
    _ callback: @escaping @Sendable (E, EventPriority, EventDispatchMethod, DispatchTime) -> Void
  ) -> OutwardRegistration {
    // A thread's handles are of this class.
    OutwardRegistration(central, eventKey(E.self)) { addLaneCallback(callback) as! EventCallbackHandle }
  }
}

extension EventCentral {
  /// Dispatches an event that came from another machine: to every receiver of its type but those that send events to
  /// other machines.
  ///
  /// - Parameter isKept: Whether it may become the newest that ``Eventable/keepNewest(on:maximumAge:)`` keeps, whose
  ///   receiver counts as any: not for an event that somebody waits for until its last copy is gone.
  /// - Returns: What became of it at each of the others.
  ///
  /// **Threads**, **Order**: as ``Eventable/queueWithOutcome(priority:on:)``. **Complexity**: as there, and a mutex;
  /// and O(callbacks that send events of the type).
  @_spi(Bridge)
  public func dispatchInward<E: Eventable>(
    _ event: consuming E, by method: EventDispatchMethod, priority: EventPriority, isKept: Bool = true
  ) -> EventDispatchOutcome {
    dispatchArrived(event, lane: Lane(method, priority), isKept: isKept)
  }

  @usableFromInline
  @discardableResult
  func dispatchArrived<E: Eventable>(
    _ event: consuming E, lane: Lane, isKept: Bool = true
  ) -> EventDispatchOutcome {
    dispatch(event, lane: lane, through: router) {
      let newest = isKept ? nil : basis.sticky.event(eventKey(E.self))?.subscription
      return outward.all(of: eventKey(E.self)) + (newest.map { [$0] } ?? [])
    }
  }

  /// Returns what the central carries of the calling thread or task, as texts with names, for the headers of a message:
  /// inside the callback that sends an event, what came with that. Empty if there is nothing, or it is for this machine
  /// alone.
  @_spi(Bridge)
  public var carriedFields: [String: String] {
    guard let carrier = basis.carrier, let value = carrier.capture() else { return [:] }
    return carrier.inject(value)
  }

  /// Runs a closure in which events are dispatched with what the headers of a message say, or with nothing if they say
  /// nothing.
  ///
  /// - Parameter fields: The headers. A central that carries nothing does not ask for them.
  @_spi(Bridge)
  public func withCarriedFields(_ fields: @autoclosure () -> [String: String], _ body: () -> Void) {
    guard let carrier = basis.carrier else { return body() }
    carrier.restore(carrier.extract(fields()), nil, body)
  }
}
