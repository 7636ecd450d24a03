// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// A place for callbacks that are also told by which method an event was dispatched: for the module
/// EventCoreRecording.
package protocol LaneCallbackPlace {
  /// Registers a callback for every event of a type.
  func addLaneCallback<E: Eventable>(
    _ callback: @escaping @Sendable (E, EventPriority, EventDispatchMethod, DispatchTime) -> Void
  ) -> any EventListenerHandling
}

extension EventThread: LaneCallbackPlace {
  package func addLaneCallback<E: Eventable>(
    _ callback: @escaping @Sendable (E, EventPriority, EventDispatchMethod, DispatchTime) -> Void
  ) -> any EventListenerHandling {
    add(HandlerCallback(lane: callback), HandlerInterest(.all, maximumAge: 0, customFilter: nil))
  }
}

extension EventPump: LaneCallbackPlace {
  package func addLaneCallback<E: Eventable>(
    _ callback: @escaping @Sendable (E, EventPriority, EventDispatchMethod, DispatchTime) -> Void
  ) -> any EventListenerHandling {
    add(HandlerCallback(lane: callback), HandlerInterest(.all, maximumAge: 0, customFilter: nil))
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
