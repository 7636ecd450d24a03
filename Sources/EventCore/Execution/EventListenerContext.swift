// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// Where a listener asks to be called.
public enum ExecuteEventOn: Sendable {
  /// In the context in which the listener is registered:
  ///
  /// | Registered | Called |
  /// |---|---|
  /// | on the main thread, on the main queue or on the MainActor | on the main queue |
  /// | on another actor | on that actor |
  /// | inside a handler of an ``EventThread`` | on that thread, as one of its events |
  /// | inside a handler of a listener | where that listener is called |
  /// | inside a task | in a task of the listener's own |
  /// | anywhere else | on the listener thread |
  ///
  /// On an actor is what the compiler knows to be there. A function or an initialiser that is not
  /// isolated does not know its caller's actor: what it registers counts as registered inside a
  /// task, unless it is told by a parameter `isolation: isolated (any Actor)? = #isolation`.
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

/// Where a listener is called: what its ``ExecuteEventOn`` came to.
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
