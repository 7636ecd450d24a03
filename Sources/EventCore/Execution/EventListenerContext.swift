// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// Where a listener is to be called: the argument `executeOn:`.
///
/// Leave `executeOn:` out, and a callback is called where it is registered. It need not be `Sendable`
/// then, and registration traps where there is no such place. With `executeOn:` the callback has to be
/// `Sendable`, and registration never traps.
public enum ExecuteEventOn: Sendable {
  /// In the context in which the listener is registered, or, where no event can come back to that, in
  /// a task or on the listener thread:
  ///
  /// | Registered | Called with `.requesterThread` | Called without `executeOn:` |
  /// |---|---|---|
  /// | on the main thread, on the main queue or on the MainActor | on the main queue | the same |
  /// | on another actor | on that actor | the same |
  /// | inside a handler of an ``EventThread`` | on that thread, as one of its events | the same |
  /// | inside a handler of a listener | where that listener is called; for a listener in a task, in a new task | the same; in a task it traps |
  /// | inside a task that is on no actor | in a task of the listener's own | traps |
  /// | anywhere else | on the listener thread | traps |
  ///
  /// An actor counts only where the compiler knows of it. A function or an initialiser that is not
  /// isolated does not know its caller's actor: what it registers counts as registered inside a task,
  /// unless the function passes on a parameter `isolation: isolated (any Actor)? = #isolation`.
  case requesterThread
  /// On the thread of its central (or of its ``EventListener``), which all such listeners share:
  /// one that takes long delays the others.
  case listenerThread
  /// In a task of the listener's own, which lives as long as the listener and keeps the order of
  /// the events.
  case taskThread
  /// On a dispatch queue. One event at a time, in order, also if the queue is concurrent.
  case dispatchQueue(DispatchQueue)

  /// On the main queue.
  public static var main: ExecuteEventOn { .dispatchQueue(.main) }
}

/// Where a listener is called, as its handle tells.
public enum EventListenerContext: Sendable {
  /// An event thread, as one of its events.
  case eventThread
  /// The thread of the central, or of an ``EventListener``.
  case listenerThread
  /// The main queue. Somebody has to serve it: an application's run loop, `dispatchMain()`, or an
  /// `async` main function.
  case mainQueue
  /// A dispatch queue.
  case dispatchQueue(DispatchQueue)
  /// A task of the listener's own.
  case task
  /// The actor that registered the listener.
  case actor
}
