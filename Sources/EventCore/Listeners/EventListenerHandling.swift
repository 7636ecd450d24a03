// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A registered listener, or a callback of an event thread: tells where it runs, and ends it.
///
/// Letting go of the handle changes nothing: the listener stays until it is removed, its requester
/// or its central is gone, or (with `once`) it has been called.
public protocol EventListenerHandling: EventRegistration, Sendable {
  /// Where it is called.
  ///
  /// **Threads**: any. It never changes.
  var executesOn: EventListenerContext { get }

  /// How many events wait there to be handled, of all listeners that are called there.
  ///
  /// On a queue that nobody serves this grows with every event: what waits is freed when the last
  /// of the listeners there is removed, or the central ends.
  ///
  /// **Threads**: any. Exact while nothing moves, a momentary figure otherwise.
  var waitingEventCount: Int { get }

  /// How many events its interest has turned away so far (``EventListenerInterest``).
  ///
  /// **Threads**: any. A momentary figure while events come.
  var skippedCount: UInt64 { get }

  /// Ends the listener and returns when no call of it is running (D6), without blocking the thread of
  /// the task.
  ///
  /// - Returns: False if it had ended already; a call that still runs is waited for all the same.
  ///
  /// **Threads**: any task or actor. The task's cancellation changes nothing: the promise holds when
  /// it returns.
  @discardableResult
  func removed() async -> Bool
}

extension EventListenerHandling {
  /// Puts the listener into a scope, which removes it when the scope ends.
  ///
  /// - Parameter scope: What holds the handle from now on.
  /// - Returns: The same handle.
  @discardableResult
  public func stored(in scope: EventListenerScope) -> Self {
    scope.add(self)
    return self
  }
}

extension EventCallbackHandle: EventListenerHandling {
  /// The event thread that the callback belongs to, or the main queue for that of a
  /// ``UIEventThread``.
  public var executesOn: EventListenerContext { consumer.pump == nil ? .eventThread : .mainQueue }

  /// How many events wait for the thread. As ``EventThread/eventCount``.
  public var waitingEventCount: Int { consumer.mailbox.depths().reduce(0, +) }
}
