// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// What listeners can be registered `on:`, which decides what they get, and what `.listenerThread` means:
///
/// | Registered `on:` | A listener gets | `.listenerThread` is |
/// |---|---|---|
/// | an ``EventCentral`` | what is dispatched there | the central's listener thread |
/// | an ``EventThread`` | what is dispatched on its central, or to the thread alone | the event thread |
/// | an ``EventPumpPlace`` | what is dispatched on its central, or to the pump alone | the pump |
/// | an ``EventPool`` | what is dispatched on its central, or to the pool alone | a separate thread |
/// | an ``EventListener`` | what is dispatched on its central, or to the listener alone | its own thread |
///
/// A listener that a handler registers in the handler's own place, and one with `executeOn: .pump(pump)`, shares the
/// mailbox of that place if it is `on:` the central of that event thread, pump or listener, and then also gets what is
/// sent to that alone. `on:` another source it has a mailbox of its own there.
///
/// A type of your own can conform by returning the listener of one of these types.
public protocol EventListenable: AnyObject, Sendable {
  /// Keeps the listeners.
  var listener: EventListener { get }
}

/// Keeps a group of listeners, and has a listener thread for them.
///
/// Every central has one (``EventCentral/listener``), which `addListener` uses by default. Make another to
/// give a group of listeners a separate thread, and to end them together: they end when it is released, or
/// by ``end()``.
///
/// ```swift
/// let audio = EventListener(name: "audio")
/// BufferEvent.addListener(mixer, Mixer.onBuffer, executeOn: .listenerThread, on: audio)
/// ```
///
/// **Threads**: any, for every member. The listener thread starts with the first listener that runs there.
open class EventListener: EventListenable, @unchecked Sendable {
  // Constant. A subclass guards its own state.
  package let contexts: ExecutionContexts
  let list: ListenerList
  /// The router for events that are sent to these listeners alone; of a central's listener the central's.
  @usableFromInline let direct: any RouterCore
  @usableFromInline let target: ScheduleTarget
  /// Whether nobody else gets what is sent to these listeners alone, as callbacks of an event thread do.
  private let isAlone: Bool

  /// Makes a listener for the events of a central.
  ///
  /// - Parameters:
  ///   - central: Where the events are dispatched.
  ///   - mailbox: How many events may wait in each place where its listeners run: the listener thread, a queue, an
  ///     actor, a task, an event thread, a pump. Each has a mailbox for these listeners alone.
  ///   - name: How debuggers show the listener thread.
  public init(
    on central: EventCentral = .shared, mailbox: EventMailboxCapacity = .unbounded,
    name: String = "EventListener"
  ) {
    mailbox.check(for: "EventListener")
    isAlone = true
    list = ListenerList()
    direct = central.basis.makeRouter()
    target = ScheduleTarget(central.scheduler, direct)
    contexts = ExecutionContexts(
      central.basis, central.serial, sources: [central.router, direct], capacity: mailbox,
      home: Self.ownThread(name, list))
  }

  /// A listener that has a listener thread.
  init(
    _ basis: CentralBasis, _ serial: SerialLoop?, sources: [any RouterCore], target: ScheduleTarget, name: String
  ) {
    isAlone = false
    list = ListenerList()
    direct = target.router
    self.target = target
    contexts = ExecutionContexts(basis, serial, sources: sources, home: Self.ownThread(name, list))
  }

  /// A listener thread, which sweeps the list now and then.
  private static func ownThread(_ name: String, _ list: ListenerList) -> ExecutionContexts.Home {
    // Weak, since the list retains registrations, which retain the thread's consumer.
    .ownThread(name: name) { [weak list] in list?.sweep($0) }
  }

  /// The listeners of an event thread or a pump.
  init(on central: EventCentral, direct: any RouterCore, of consumer: Consumer) {
    isAlone = false
    list = ListenerList()
    self.direct = direct
    target = ScheduleTarget(central.scheduler, direct)
    contexts = ExecutionContexts(
      central.basis, central.serial, sources: [central.router, direct], home: .eventThread(consumer))
  }

  deinit {
    endWithOwner()
  }

  /// Itself.
  public var listener: EventListener { self }

  /// The time on the clock of its central, as ``EventCentral/now``.
  package var now: DispatchTime { DispatchTime(uptimeNanoseconds: contexts.basis.now) }

  /// How many listeners are registered. Those whose requester or place is gone count until a ``sweep()`` at the latest.
  public var listenerCount: Int { list.count }

  /// How many events its listeners have handled and skipped, on its listener thread, on queues, on actors and in tasks.
  /// On an event thread or a pump, those that are registered `on:` it or `on:` its central share its mailbox, and are
  /// counted there (``EventThread/statistics``). All others, such as those of an `EventListener` that you make, and those
  /// `on:` a thread of a pool, have a mailbox of their own there, and are counted here; the thread counts a job for each.
  ///
  /// An event counts once for each place, however many listeners it has there. What waits when a place ends
  /// is counted in ``EventThreadStatistics/cancelled``: a place ends with its last listener, the listener
  /// thread by ``end()``.
  ///
  /// **Threads**: any. A momentary figure while events are dispatched or handled; what is being dispatched
  /// at the moment when a place ends may be missing.
  public var statistics: EventThreadStatistics { contexts.statistics }

  /// What came to the mailboxes of its listeners, and what became of it there, in all places together that its
  /// listeners have now or have had. What event threads and pumps count themselves is missing, as in ``statistics``.
  ///
  /// **Threads**: any.
  public var mailboxStatistics: EventMailboxStatistics { contexts.mailboxStatistics }

  /// How many events wait for its listeners, except in the mailboxes of event threads and pumps (``statistics``).
  ///
  /// **Threads**: any. A momentary figure while events are dispatched or handled.
  public var eventCount: Int { contexts.waitingCount }

  /// Queues an event for its listeners alone; a central's listener queues it for every receiver there.
  ///
  /// - Parameters:
  ///   - event: What to dispatch.
  ///   - priority: Which of the five queues it joins.
  /// - Returns: Whether a listener accepted it.
  ///
  /// **Threads**, **Order**: as ``Eventable/queue(priority:on:)``.
  @inlinable
  @discardableResult
  public func queueEvent<E: Eventable>(
    _ event: consuming E, priority: EventPriority = .normal
  ) -> Bool {
    dispatch(event, lane: Lane(.queue, priority), through: direct) != 0
  }

  /// Stacks an event for its listeners alone. As ``queueEvent(_:priority:)``, but in the order of
  /// ``Eventable/stack(priority:on:)``.
  @inlinable
  @discardableResult
  public func stackEvent<E: Eventable>(
    _ event: consuming E, priority: EventPriority = .normal
  ) -> Bool {
    dispatch(event, lane: Lane(.stack, priority), through: direct) != 0
  }

  /// Ends all its listeners, and later ones at once. A running handler finishes; what waits is freed, and an event that
  /// a place has taken at that moment, and not begun to handle, may be skipped.
  ///
  /// **Threads**: any, also inside a handler.
  ///
  /// **Complexity**: O(listeners × receivers of their types), whose lists are copied.
  public func end() {
    if isAlone { target.end() }
    // The contexts first: what waits there is cancelled, and not skipped. The list is for those on event threads.
    contexts.close()
    list.end()
  }

  /// Ends them together with what they are registered `on:`.
  final func endWithOwner() {
    target.end()
    end()
  }

  /// Ends its listeners after they have handled the events that wait: those on its listener thread, on queues, on
  /// actors and in tasks. They get no events that are dispatched from now on, not even those of their own handlers.
  /// Listeners that share the mailbox of an event thread or a pump (``statistics``) end as by ``end()``: drain that
  /// before.
  ///
  /// - Parameter deadline: When to give up, on the central's clock: what still waits then is freed and counted, as by
  ///   ``end()``. A task that is cancelled gives up at once; in a deterministic central it first runs what is left.
  /// - Returns: True if everything that was dispatched before was handled in time, and no handler runs any more; false
  ///   also if ``end()`` or another drain came while events waited. What a listener or a sequence that ends meanwhile has
  ///   left does not count: whoever ended it does not want it. A loop over a sequence that does not go on, and what waits
  ///   for a queue that nobody serves, keep a drain waiting; in a deterministic central not for long.
  ///
  /// **Threads**: any task or actor; in a deterministic central none that runs on one of its threads. A listener that
  /// awaits the drain of its own place delays it until the deadline, also after it has removed itself.
  ///
  /// **Complexity**: as ``end()``, also where that takes longer than the deadline.
  @discardableResult
  public nonisolated(nonsending) func drain(until deadline: DispatchTime = .distantFuture) async -> Bool {
    let isDrained = await contexts.opened(contexts.closeWhenEmpty(), until: deadline.limit)
    end()
    // Beside an end() of another thread's a handler may have begun: none begins any more. And somebody else may have
    // ended them before, or another drain have given up.
    let isOver = await contexts.opened(contexts.closeWhenEmpty(), until: deadline.limit)
    return isDrained && isOver && !contexts.hasLost
  }

  /// Frees the listeners whose requester or actor is gone. That also happens by itself, but a little at a time.
  ///
  /// - Returns: How many there were.
  ///
  /// **Threads**: any, also inside a handler. What they retained may be freed on the calling thread.
  ///
  /// **Complexity**: O(listeners).
  @discardableResult
  public func sweep() -> Int {
    list.sweep(limit: .max)
  }

  /// Registers a listener. `make` makes the handler, which uses the registration before each call.
  @usableFromInline
  final func add(
    _ requester: AnyObject?, _ executeOn: ExecuteEventOn?, _ actor: (any Actor)?, isOnce: Bool,
    _ type: EventTypeActions, _ make: (ListenerRegistration) -> EventHandler
  ) -> any EventListenerHandling {
    add(in: contexts.context(for: executeOn, on: actor), requester, isOnce: isOnce, type, make)
  }
}

extension EventListener {
  /// Registers a listener in a context, of which the caller was a user, and the listener is from here on.
  final func add(
    in context: ExecutionContext, _ requester: AnyObject?, isOnce: Bool = false, _ type: EventTypeActions,
    isGreeted: Bool = true, _ make: (ListenerRegistration) -> EventHandler
  ) -> ListenerRegistration {
    list.sweep(limit: ListenerList.perRegistration)
    let registration = ListenerRegistration(requester, isOnce: isOnce, context, list)
    registration.register(make(registration), type, isGreeted: isGreeted)
    return registration
  }
}

// In an extension, since the compiler does not specialise generic members of an open class itself.
extension EventListener {
  /// Registers a listener of any form. `executeOn`, `actor`: as `ExecutionContexts.context(for:on:)`.
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

extension EventListener: EventReceiver, ActiveByItself {
  /// The name of its listener thread.
  public var receiverName: String { contexts.name }

  /// As ``statistics``.
  public var receiverStatistics: EventThreadStatistics { statistics }
}
