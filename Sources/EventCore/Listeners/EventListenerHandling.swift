// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The handle of a listener, or of a callback of an event thread.
///
/// The listener stays, even if the handle is released, until it is removed, its requester or its central is gone, the
/// event thread, pump or listener thread on which it is called has ended, or, with `once`, it has been called.
public protocol EventListenerHandling: EventRegistration, Sendable {
  /// Where the listener is called. It never changes.
  var executesOn: EventListenerContext { get }

  /// How many events wait in the place where the listener is called, for all listeners of that place.
  ///
  /// If the place is a queue that is never served, this grows with every event. What waits is freed when
  /// the last listener of the place is removed, or the central ends.
  ///
  /// **Threads**: any. A momentary figure while events are dispatched or handled.
  var waitingEventCount: Int { get }

  /// How many events the interest has skipped so far (``EventListenerInterest``). An event in whose filter the listener
  /// ends counts as well, whatever the filter returns: the listener does not get it.
  ///
  /// **Threads**: any. A momentary figure while events are handled.
  var skippedCount: UInt64 { get }

  /// Ends the listener and returns when no call of it is running (D6), without blocking the task's thread.
  ///
  /// - Returns: False if it had ended already; it waits for a running call in either case.
  ///
  /// **Threads**: any task or actor. It also waits in a task that is cancelled.
  @discardableResult
  func removed() async -> Bool
}

extension EventListenerHandling {
  /// Adds the listener to a scope, which removes it when the scope ends.
  ///
  /// - Parameter scope: It retains the handle.
  /// - Returns: The same handle.
  @discardableResult
  public func stored(in scope: EventListenerScope) -> Self {
    scope.add(self)
    return self
  }
}

extension EventCallbackHandle: EventListenerHandling {
  /// The callback's event thread or pump, or the main queue for a ``UIEventThread``.
  public var executesOn: EventListenerContext { consumer.place }

  /// How many events wait for the thread. As ``EventThread/eventCount``.
  public var waitingEventCount: Int { consumer.mailbox.waiting }
}
