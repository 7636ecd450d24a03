// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// A place for callbacks that are also told by which method an event was dispatched: for the module
/// EventCoreRecording.
package protocol LaneCallbackPlace {
  /// Registers a callback for every event of a type that is dispatched from now on, and not for one that the central
  /// keeps (``Eventable/keepNewest(on:maximumAge:)``).
  func addLaneCallback<E: Eventable>(
    _ callback: @escaping @Sendable (E, EventPriority, EventDispatchMethod, DispatchTime) -> Void
  ) -> any EventListenerHandling
}

extension EventThread: LaneCallbackPlace {
  package func addLaneCallback<E: Eventable>(
    _ callback: @escaping @Sendable (E, EventPriority, EventDispatchMethod, DispatchTime) -> Void
  ) -> any EventListenerHandling {
    consumer.addLaneCallback(callback)
  }
}

extension EventPump: LaneCallbackPlace {
  package func addLaneCallback<E: Eventable>(
    _ callback: @escaping @Sendable (E, EventPriority, EventDispatchMethod, DispatchTime) -> Void
  ) -> any EventListenerHandling {
    consumer.addLaneCallback(callback)
  }
}

extension Consumer {
  fileprivate func addLaneCallback<E: Eventable>(
    _ callback: @escaping @Sendable (E, EventPriority, EventDispatchMethod, DispatchTime) -> Void
  ) -> any EventListenerHandling {
    let handler = TypedHandler<E>(
      HandlerCallback(lane: callback), HandlerInterest(.all, maximumAge: 0, customFilter: nil))
    return EventCallbackHandle(handler.state, self, registry.subscribe(handler, eventTypeActions(E.self)))
  }
}

extension HandlerCallback {
  /// A closure that takes the event, its priority, its method and its time.
  fileprivate init(lane callback: @escaping (E, EventPriority, EventDispatchMethod, DispatchTime) -> Void) {
    self.init(isTimed: true) { event, lane, time, _ in
      let lane = Lane(index: lane)
      callback(event, lane.priority, lane.method, DispatchTime(uptimeNanoseconds: time))
      return true
    }
  }
}
