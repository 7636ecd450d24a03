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

  /// Has the place call a closure each time that nothing waits for it any more, until the closure returns false. Only a
  /// pump does; elsewhere a callback can see that nothing waits of its own.
  func whenDry(_ work: @escaping @Sendable () -> Bool)

  /// Returns what callbacks of the place have not got. Any thread.
  var missed: @Sendable () -> MissedEvents { get }
}

/// What callbacks of a place have not got, of any type.
package struct MissedEvents: Sendable {
  package let waiting: Int
  /// Refused, dropped, or freed with the place.
  package let lost: UInt64
  /// Whether the place has ended, so that it gets no event that is dispatched.
  package let isOver: Bool
  /// Whether the caller is inside a callback of the place, which may be followed by others for the same event.
  package let isInside: Bool
}

extension EventThread: LaneCallbackPlace {
  package func addLaneCallback<E: Eventable>(
    _ callback: @escaping @Sendable (E, EventPriority, EventDispatchMethod, DispatchTime) -> Void
  ) -> any EventListenerHandling {
    consumer.addLaneCallback(callback)
  }

  package var missed: @Sendable () -> MissedEvents { { [consumer] in consumer.missed } }
}

extension LaneCallbackPlace {
  package func whenDry(_ work: @escaping @Sendable () -> Bool) {}
}

extension EventPump: LaneCallbackPlace {
  package func whenDry(_ work: @escaping @Sendable () -> Bool) { driver.whenDry(work) }

  package func addLaneCallback<E: Eventable>(
    _ callback: @escaping @Sendable (E, EventPriority, EventDispatchMethod, DispatchTime) -> Void
  ) -> any EventListenerHandling {
    consumer.addLaneCallback(callback)
  }

  package var missed: @Sendable () -> MissedEvents { { [consumer] in consumer.missed } }
}

extension Consumer {
  fileprivate var missed: MissedEvents {
    let reading = reading
    return MissedEvents(
      waiting: reading.mailbox.waiting,
      lost: reading.mailbox.refused + reading.mailbox.dropped + reading.counts.cancelled, isOver: !isOpen,
      isInside: isCurrent)
  }

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
