// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// Where a listener is to be called: the argument `executeOn:`.
///
/// Without `executeOn:` a callback is called where it is registered. It need not be `Sendable` then, and
/// registration traps if events cannot be delivered to that place. With `executeOn:` the callback has to be
/// `Sendable`, and registration never traps for the place, but for an actor other than the main one in a deterministic
/// central.
public enum ExecuteEventOn: Sendable {
  /// In the place in which the listener is registered, or, if events cannot be delivered to it, in a task
  /// or on the listener thread; <doc:WhereHandlersRun> has the table.
  ///
  /// A function that is not isolated does not know its caller's actor: what it registers counts as
  /// registered inside a task, unless it has a parameter `isolation: isolated (any Actor)? = #isolation`
  /// and passes it on.
  case requesterThread
  /// On the listener thread of the central, or of the ``EventListener``. All such listeners share it, so a
  /// long handler delays the others.
  case listenerThread
  /// In a task that belongs to this listener, lives as long as it, and handles the events in order. It keeps the
  /// priority and the task-local values of the code that registers it.
  case taskThread
  /// On a dispatch queue, one event at a time and in order, even if the queue is concurrent. Listeners with the same
  /// object share that order, and the bound of their mailbox: keep the queue in a constant, since on Linux each use of
  /// `.global()` makes another one.
  case dispatchQueue(DispatchQueue)
  /// Inside the runs of an ``EventPump``, with its other callbacks. From the pump itself
  /// ``pump(_:)-(EventPump)`` makes this.
  case pump(EventPumpPlace)

  /// On the main queue.
  public static var main: ExecuteEventOn { .dispatchQueue(.main) }
}

/// Where a listener is called (``EventListenerHandling/executesOn``).
public enum EventListenerContext: Sendable {
  /// An event thread, as one of its events.
  case eventThread
  /// An ``EventPump``, inside ``EventPump/run(until:limit:)-(ContinuousClock.Instant?,_)``.
  case pump
  /// The thread of the central, or of an ``EventListener``.
  case listenerThread
  /// The main queue. Somebody has to serve it: an application's run loop, `dispatchMain()`, or an
  /// `async` main function.
  case mainQueue
  /// A dispatch queue.
  case dispatchQueue(DispatchQueue)
  /// A task that belongs to this listener.
  case task
  /// The actor that registered the listener.
  case actor
}
