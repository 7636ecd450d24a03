// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Something that listeners can be registered with: an ``EventCentral``, or an ``EventListener`` of
/// one's own.
///
/// The ways to register are in the extension, the same as on an event type.
public protocol EventListenable: AnyObject, Sendable {
  /// Where the listeners are kept: the central's own listener, or the listener itself.
  var listener: EventListener { get }
}

/// Keeps listeners, with a listener thread of its own.
///
/// Every central has one, ``EventCentral/listener``, which is what ``Eventable``'s `addListener`
/// uses. Make another to give a group of listeners a thread that others do not delay, and to end
/// them together: they end when it is released, or by ``end()``.
///
/// ```swift
/// let audio = EventListener(name: "audio")
/// audio.addListener(mixer, Mixer.onBuffer, executeOn: .listenerThread)
/// ```
///
/// **Threads**: any, for every member. The thread starts with the first listener that runs there.
open class EventListener: EventListenable, @unchecked Sendable {
  // Constant. A subclass guards its own state.
  let contexts: ExecutionContexts
  let list: ListenerList

  /// Makes a listener for the events of a central.
  ///
  /// - Parameters:
  ///   - central: Where the events are dispatched.
  ///   - name: How debuggers show the listener thread.
  ///
  /// **Threads**: any. The listener thread starts with the first listener that runs there.
  public convenience init(on central: EventCentral = .shared, name: String = "EventListener") {
    self.init(core: central.core, router: central.router, name: name)
  }

  init(core: EventCentral.Core, router: any RouterCore, name: String) {
    let list = ListenerList()
    self.list = list
    // Not retained: the list holds registrations, which hold the thread's consumer.
    contexts = ExecutionContexts(core: core, router: router, threadName: name) { [weak list] in
      list?.sweep($0)
    }
  }

  deinit {
    end()
  }

  /// Itself.
  public var listener: EventListener { self }

  /// How many listeners are registered. Those whose requester is gone count until the next event of
  /// their type, or ``sweep()``.
  public var listenerCount: Int { list.count }

  /// What was done with the events that came to its listeners: those on its listener thread, on
  /// queues, actors and in tasks, together. A listener on an event thread is counted there
  /// (``EventThread/statistics``).
  ///
  /// An event is counted once for each place, however many listeners it has there. What waited when
  /// a place ended is in ``EventThreadStatistics/cancelled``: a place ends with its last listener,
  /// the listener thread by ``end()``.
  ///
  /// **Threads**: any. Exact while nothing moves, a momentary figure otherwise; what another thread
  /// is dispatching at the very moment at which a place ends may be missing.
  public var statistics: EventThreadStatistics { contexts.statistics }

  /// Ends all its listeners, now and later: a handler that runs finishes, what waits is freed.
  ///
  /// **Threads**: any, also inside a handler.
  ///
  /// **Complexity**: O(listeners).
  public func end() {
    // First those on event threads, which go on; then the contexts, which take the others along.
    list.end()
    contexts.close()
  }

  /// Frees what listeners hold whose requester is gone. It happens by itself, a little at a time;
  /// call this when memory is short.
  ///
  /// - Returns: How many there were.
  ///
  /// **Threads**: any, also inside a handler. What listeners held may be freed on the calling
  /// thread.
  ///
  /// **Complexity**: O(listeners).
  @discardableResult
  public func sweep() -> Int {
    list.sweep(limit: .max)
  }

  /// Registers a listener. `make` is given the registration, and makes the handler that asks it.
  @usableFromInline
  func add(
    _ requester: AnyObject?, _ executeOn: ExecuteEventOn, _ actor: (any Actor)?, isOnce: Bool,
    _ type: EventTypeActions, _ make: (ListenerRegistration) -> EventHandler
  ) -> any EventListenerHandling {
    list.sweep(limit: ListenerList.perRegistration)
    let registration = ListenerRegistration(
      requester, isOnce: isOnce, contexts.context(for: executeOn, on: actor), list)
    registration.register(make(registration), type)
    return registration
  }
}
