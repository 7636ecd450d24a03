// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import Synchronization

/// A thread that handles events: the events for which it has callbacks wait in its mailbox, and the
/// callbacks run on the thread, one at a time.
///
/// ```swift
/// final class TemperatureProcessor: EventThread, @unchecked Sendable {
///   override func registerEventListeners() {
///     addEventCallback(TemperatureProcessor.onTemperature)
///   }
///
///   func onTemperature(_ event: TemperatureEvent) {
///     print(event.temperatureInCelsius)
///   }
/// }
/// ```
///
/// The thread starts in the initialiser and ends with its last reference (D9) or with ``cancel()``. A
/// callback that retains the thread, such as a bound method (`addEventCallback(onTemperature, …)`), keeps it
/// alive until ``cancel()``; a method without its object, as above, does not.
open class EventThread: EventListenable, @unchecked Sendable {
  // All stored properties are constant; what changes belongs to the consumer. A subclass guards its own
  // state: its callbacks run on one thread, its other methods on any.

  /// Where the events of this thread are dispatched.
  public let central: EventCentral
  let consumer: Consumer
  @usableFromInline let direct: any RouterCore
  /// For the module EventDrivenSwift: the observers of the thread, made with the first of them.
  package let attachment = LazyReference<AnyObject>()
  let ownListener = OwnedListener()
  /// Whether the thread was ended without handling the events that wait, and whether it was drained. Written releasing,
  /// before the mailbox is closed, and read acquiring.
  private let givenUp = Atomic<Bool>(false)
  private let drained = Atomic<Bool>(false)
  /// The object's ``EventMethod`` properties. The initialiser alone writes it, before anybody else has the object.
  package private(set) final var methods: [any AnyEventMethod] = []

  /// Starts the thread on the shared central and calls ``registerEventListeners()``.
  ///
  /// This initialiser is required, so that `EventPool<SomeThread>(capacity: 5)` can make its threads. A
  /// subclass with initialisers of its own implements it, or declares that it needs parameters:
  ///
  /// ```swift
  /// @available(*, unavailable, message: "needs a database")
  /// required init() { preconditionFailure("needs a database") }
  /// ```
  ///
  /// The threads of a pool are then made by a closure
  /// (``EventPool/init(capacity:balancer:scaler:mailbox:on:name:make:)``).
  ///
  /// **Threads**: any.
  public required init() {
    let membership = PoolConstruction.takeMembership(for: Self.self, on: .shared)
    central = membership?.central ?? .shared
    direct = membership?.direct ?? central.basis.makeRouter()
    consumer = Self.makeConsumer(central, direct, membership, .park, .unbounded, name: nil)
    begin(membership, name: nil)
  }

  /// Starts the thread and calls ``registerEventListeners()``.
  ///
  /// - Parameters:
  ///   - central: Where its events are dispatched. A thread of a pool names the pool's central or none.
  ///   - mailbox: How many events may wait, and what becomes of more. A pool bounds the mailbox of its threads itself.
  ///   - waitStrategy: What the thread does while no event waits.
  ///   - name: How debuggers show the thread; nil takes the name of the class.
  ///
  /// **Threads**: any. The callbacks may be called before this returns.
  public init(
    on central: EventCentral = .shared, mailbox: EventMailboxCapacity = .unbounded,
    waitStrategy: EventWaitStrategy = .park, name: String? = nil
  ) {
    mailbox.check(for: "EventThread")
    let membership = PoolConstruction.takeMembership(for: Self.self, on: central)
    require(
      membership == nil || mailbox == .unbounded,
      """
      The threads of an EventPool get their events from the pool, and \(Self.self) asked for a bounded mailbox of \
      its own: pass the bound to the EventPool, and none to its threads.
      """)
    self.central = membership?.central ?? central
    direct = membership?.direct ?? self.central.basis.makeRouter()
    consumer = Self.makeConsumer(self.central, direct, membership, waitStrategy, mailbox, name: name)
    begin(membership, name: name)
  }

  private static func makeConsumer(
    _ central: EventCentral, _ direct: any RouterCore, _ membership: PoolMembership?,
    _ strategy: EventWaitStrategy, _ capacity: EventMailboxCapacity, name: String?, pump: ConsumerPump? = nil
  ) -> Consumer {
    let serial = central.serial
    return Consumer(
      central.basis, routes: membership?.routes ?? RouterGroup([central.router, direct]), direct: direct,
      strategy: strategy, capacity: membership?.mailbox ?? capacity,
      pump: pump ?? serial?.makePump(workerOf: membership?.shared, whenEnded: membership?.didEnd),
      hooks: ConsumerHooks(
        member: membership?.member, shared: membership?.shared,
        trace: serial?.name(name ?? membership?.name ?? "\(Self.self)"),
        name: name ?? membership?.name ?? "\(Self.self)"))
  }

  private func begin(_ membership: PoolMembership?, name: String?) {
    consumer.setOwner(self)
    consumer.taskExecutor = UnownedTaskExecutor(ordinary: self)
    consumer.asThread { registerHandlers() }
    // The loop of a deterministic central runs it.
    guard central.serial == nil else { return }
    startThread(named: name ?? membership?.name ?? "\(Self.self)") { [consumer] in
      consumer.run()
      membership?.didEnd()
    }
  }

  /// For `UIEventThread`, which has no thread: `pump` drives its consumer.
  init(on central: EventCentral, mailbox: EventMailboxCapacity = .unbounded, pump: ConsumerPump) {
    mailbox.check(for: "UIEventThread")
    self.central = central
    direct = central.basis.makeRouter()
    consumer = Self.makeConsumer(central, direct, nil, .park, mailbox, name: nil, pump: pump)
    consumer.setOwner(self)
    consumer.taskExecutor = UnownedTaskExecutor(ordinary: self)
    registerHandlers()
  }

  private func registerHandlers() {
    // The properties first, as EventDrivenSwift has it: callbacks of one type are called in this order.
    methods = eventMethods(of: self)
    for method in methods {
      method.register(thread: self)
    }
    registerEventListeners()
  }

  deinit {
    // Ends the thread, which retains the consumer, but not this object.
    consumer.close(whenEmpty: false)
  }

  /// Override this to register callbacks with `addEventCallback`. The initialiser calls it once, before the
  /// thread handles its first event.
  ///
  /// **Threads**: called on the thread that runs the initialiser. It may call ``cancel()``; waiting for the
  /// end of the thread traps, since the thread has not begun. (A drain ends a ``UIEventThread``, which has none.)
  open func registerEventListeners() {}

  // MARK: Ending

  /// Ends the thread: the callback that is running finishes; events that wait are freed and counted (D10).
  ///
  /// **Threads**: any, also inside a callback. Returns at once; an idle thread wakes up at once.
  public func cancel() {
    givenUp.store(true, ordering: .releasing)
    consumer.close(whenEmpty: false)
    ownListener.end()
  }

  /// Has the thread, and the listeners that are registered `on:` it, accept nothing more.
  ///
  /// - Returns: As `OwnedListener.closeWhenEmpty`.
  @discardableResult
  func beginDrain() -> nonisolated(nonsending) (_ deadline: UInt64?) async -> Bool {
    drained.store(true, ordering: .releasing)
    consumer.close(whenEmpty: true)
    return ownListener.closeWhenEmpty()
  }

  /// Ends the listeners that are registered `on:` the thread, and returns the result of a drain. The thread
  /// has ended.
  func finish() -> Bool {
    ownListener.end()
    return hasHandledAll && !ownListener.hasLost
  }

  /// Whether the thread, which has ended, handled everything that was dispatched before its end.
  ///
  /// Events that were freed although the thread was not given up were being dispatched while it ended: a
  /// drain promises nothing about them.
  var hasHandledAll: Bool {
    !isGivenUp || consumer.lostCount == 0 && consumer.guests.value?.hasLost != true
  }

  var isGivenUp: Bool { givenUp.load(ordering: .acquiring) }

  /// Whether it was cancelled or drained by itself, and so leaves what waits in a mailbox that it shares to others.
  var leavesShared: Bool { isGivenUp || drained.load(ordering: .acquiring) }

  /// Ends the thread after it has handled the events that wait. It gets no events that are dispatched from
  /// now on, not even those of its own callbacks. What waits in the mailbox that the threads of a pool share, it
  /// leaves to the others. Listeners `on:` the thread that run elsewhere, on queues, on actors and in tasks, end with
  /// it: only the form for tasks waits for them, since a thread that blocks may be where they run.
  ///
  /// - Parameter deadline: When to give up, on the central's clock (``EventCentral/now``): the events that still wait then are freed and counted, as by
  ///   ``cancel()``.
  /// - Returns: True if everything that was dispatched before was handled in time; false if something waited for listeners
  ///   elsewhere, which is freed. What another thread dispatches meanwhile may be handled, refused, or freed and counted.
  ///
  /// **Threads**: any but the thread itself, where it would wait for itself, and traps; likewise in
  /// ``registerEventListeners()``, and in the `deinit` of what is freed with a listener of another central that was
  /// called on the thread: the thread waits for both.
  @available(*, noasync, message: "It blocks its thread: write await drain(until:) in an async function.")
  @discardableResult
  public func drain(until deadline: DispatchTime = .distantFuture) -> Bool {
    refuseOnOwnThread("drain(until:)", instead: "cancel()")
    beginDrain()
    if central.wait(for: consumer.ended, until: deadline.limit) {
      return finish()
    }
    cancel()
    return false
  }

  /// Ends the thread, and the listeners that are registered `on:` it, after they have handled the events that wait:
  /// as the form that blocks, but without blocking the thread of the task, and also in other places, as
  /// ``EventListener/drain(until:)`` says.
  ///
  /// - Parameter deadline: When to give up. A task that is cancelled gives up at once; in a deterministic central
  ///   it first runs what is left.
  /// - Returns: True if everything that was dispatched before was handled in time, and no handler runs any more. What
  ///   a listener or a sequence that ends meanwhile has left does not count.
  ///
  /// **Threads**: any task or actor; in a deterministic central none that runs on one of its threads. A
  /// listener `on:` the thread that awaits its drain delays it until the deadline.
  @discardableResult
  public nonisolated(nonsending) func drain(until deadline: DispatchTime = .distantFuture) async -> Bool {
    let listenersDrained = beginDrain()
    if await central.waited(for: consumer.ended, until: deadline.limit), await listenersDrained(deadline.limit) {
      return finish()
    }
    cancel()
    return false
  }

  /// Waits until the thread has ended, without blocking the thread of the task, also if the task is cancelled. It does
  /// not end the thread.
  ///
  /// **Threads**: any task or actor, in a deterministic central as for `drain(until:)`.
  public nonisolated(nonsending) func join() async {
    await central.joined(consumer.ended)
  }

  /// Waits until the thread has ended. It does not end the thread.
  ///
  /// **Threads**: any but the thread itself, as for `drain(until:)`.
  @available(*, noasync, message: "It blocks its thread: write await join() in an async function.")
  public func join() {
    refuseOnOwnThread("join()", instead: "cancel()")
    _ = central.wait(for: consumer.ended, until: nil)
  }

  private func refuseOnOwnThread(_ name: StaticString, instead: StaticString) {
    require(
      !consumer.waitsForCaller,
      """
      \(name) waits for the end of its event thread, and was called on that thread, as one of its listeners was \
      freed, or in its registerEventListeners() before it began, where it would wait for itself: call \(instead).
      """)
  }

  // MARK: Listening

  /// The listeners that are registered `on:` this thread. They get the events that are dispatched on its central and
  /// those that are sent to it alone: the same as its callbacks, but for a thread of a pool, whose callbacks get their
  /// share of the pool's events. They end with the thread's last reference, with ``cancel()``, with a drain, or as its
  /// pool retires it.
  ///
  /// **Threads**: any. It is made at its first use.
  public var listener: EventListener {
    ownListener.value(or: { EventListener(on: central, direct: direct, of: consumer) })
  }
}

extension EventThread: ActiveByItself {}
