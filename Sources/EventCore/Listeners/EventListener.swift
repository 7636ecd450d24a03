// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// What events come to, so that listeners can be registered with it: an ``EventCentral``, an
/// ``EventListener`` of your own, an ``EventThread`` or an ``EventPool``.
///
/// It is what `on:` names in ``Eventable``'s `addListener`:
///
/// | Registered `on:` | A listener hears | `.listenerThread` is |
/// |---|---|---|
/// | a central | what is dispatched there | the central's listener thread |
/// | a listener | that of its central, and what is sent to the listener alone | its own thread |
/// | an event thread | that of its central, and what is sent to the thread alone | the event thread |
/// | a pool | that of its central, and what is sent to the pool alone | a thread beside the pool's |
///
/// A listener that a handler registers in its own place shares the mailbox of that handler, and hears
/// what is sent to its event thread or listener alone as well.
///
/// The library's types conform; a type of your own can conform by naming one of them.
public protocol EventListenable: AnyObject, Sendable {
  /// Where the listeners are kept.
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
/// BufferEvent.addListener(mixer, Mixer.onBuffer, executeOn: .listenerThread, on: audio)
/// ```
///
/// **Threads**: any, for every member. The thread starts with the first listener that runs there.
open class EventListener: EventListenable, @unchecked Sendable {
  // Constant. A subclass guards its own state.
  package let contexts: ExecutionContexts
  let list: ListenerList
  /// Where events go that are sent straight to these listeners; those of a central's are the
  /// central's.
  @usableFromInline let direct: any RouterCore
  @usableFromInline let target: ScheduleTarget

  /// Makes a listener for the events of a central.
  ///
  /// - Parameters:
  ///   - central: Where the events are dispatched.
  ///   - name: How debuggers show the listener thread.
  ///
  /// **Threads**: any. The listener thread starts with the first listener that runs there.
  public convenience init(on central: EventCentral = .shared, name: String = "EventListener") {
    let direct = central.core.parts.makeRouter()
    self.init(
      core: central.core, sources: [central.router, direct],
      target: ScheduleTarget(central.scheduler, direct), name: name)
  }

  /// A listener with a thread of its own.
  init(
    core: EventCentral.Core, sources: [any RouterCore], target: ScheduleTarget, name: String
  ) {
    let list = ListenerList()
    self.list = list
    direct = target.router
    self.target = target
    // Not retained: the list holds registrations, which hold the thread's consumer.
    contexts = ExecutionContexts(
      core: core, sources: sources,
      home: .ownThread(name: name) { [weak list] in list?.sweep($0) })
  }

  /// The listeners of an event thread, by its consumer.
  init(on central: EventCentral, direct: any RouterCore, of consumer: Consumer) {
    list = ListenerList()
    self.direct = direct
    target = ScheduleTarget(central.scheduler, direct)
    contexts = ExecutionContexts(
      core: central.core, sources: [central.router, direct], home: .eventThread(consumer))
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

  /// How many events wait for its listeners to handle them, in all places but on event threads.
  ///
  /// **Threads**: any. Exact while nothing moves, a momentary figure otherwise.
  public var eventCount: Int { contexts.waitingCount }

  /// Queues an event for its listeners alone.
  ///
  /// - Parameters:
  ///   - event: What to dispatch.
  ///   - priority: Which of the five queues it joins.
  /// - Returns: Whether a listener gets it.
  ///
  /// **Threads**, **Order**: as ``Eventable/queue(priority:on:)``. A central's own listener stands
  /// for the central: there it is for every receiver.
  @inlinable
  @discardableResult
  public func queueEvent<E: Eventable>(
    _ event: consuming E, priority: EventPriority = .normal
  ) -> Bool {
    dispatch(event, lane: Lane(.queue, priority), through: direct) != 0
  }

  /// Stacks an event for its listeners alone.
  ///
  /// All else is as for ``queueEvent(_:priority:)``, but for the order: that of ``Eventable/stack(priority:on:)``.
  @inlinable
  @discardableResult
  public func stackEvent<E: Eventable>(
    _ event: consuming E, priority: EventPriority = .normal
  ) -> Bool {
    dispatch(event, lane: Lane(.stack, priority), through: direct) != 0
  }

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
  final func add(
    _ requester: AnyObject?, _ executeOn: ExecuteEventOn?, _ actor: (any Actor)?, isOnce: Bool,
    _ type: EventTypeActions, _ make: (ListenerRegistration) -> EventHandler
  ) -> any EventListenerHandling {
    list.sweep(limit: ListenerList.perRegistration)
    let registration = ListenerRegistration(
      requester, isOnce: isOnce, contexts.context(for: executeOn, on: actor), list)
    registration.register(make(registration), type)
    return registration
  }
}

// An extension: what a class that others may inherit from declares itself is not specialised for them.
extension EventListener {
  /// Registers a listener of any form. `executeOn`: nil is the caller's own context, which has to
  /// be one; `actor`: where that and `.requesterThread` are, if the caller is on one.
  @inlinable
  func addListener<E: Eventable>(
    _ requester: AnyObject?, _ executeOn: ExecuteEventOn?, _ actor: (any Actor)?, isOnce: Bool,
    _ interest: HandlerInterest<E>, _ callback: HandlerCallback<E>
  ) -> any EventListenerHandling {
    add(requester, executeOn, actor, isOnce: isOnce, eventTypeActions(E.self)) {
      $0.handler(callback, interest)
    }
  }
}

/// The listeners that are registered `on:` an event thread or a pool: made with their first use, and ended
/// with their owner, whichever comes first.
struct OwnedListener: ~Copyable, Sendable {
  private let listener = LazyReference<EventListener>()
  private let hasEnded = Atomic<Bool>(false)

  deinit {
    // Somebody may hold it.
    listener.value?.end()
  }

  /// The listener; ended already if its owner has. Any thread.
  func value(or make: () -> EventListener) -> EventListener {
    let listener = listener.value(or: make)
    // Publish, then look; `end` does the same the other way round, with the same fence between the two.
    // So at least one of them finds the other.
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    if hasEnded.load(ordering: .relaxed) { listener.end() }
    return listener
  }

  /// Ends the listeners, now and later. Any thread.
  func end() {
    hasEnded.store(true, ordering: .relaxed)
    // As in `value`.
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    listener.value?.end()
  }
}
