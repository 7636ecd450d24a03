// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// Several event threads of one class that share their work: each event goes to exactly one of them.
/// (A `.latestOnly` callback is balanced apart from the thread's other callbacks for the same type.)
///
/// ```swift
/// let pool = EventPool<TemperatureProcessor>(capacity: 5)
/// TemperatureEvent(temperatureInCelsius: 23.25).queue()  // one of the five handles it
/// ```
///
/// The balancer chooses the thread; by default the threads take turns. The event keeps the priority,
/// method and time with which it was dispatched. ``capacity`` or a scaler sets the number of threads.
///
/// The pool owns its threads: it makes them, ends them with its last reference (D9), and is their only
/// source of dispatched events. An event that is sent straight to one thread
/// (``EventThread/queueEvent(_:priority:)``) reaches that thread alone. The balancer chooses among the
/// threads that have a callback for the event's type at that moment, so callbacks may be added and
/// removed later.
///
/// With an ``EventPoolSharedBalancer`` nobody chooses a thread, and so **all threads of the pool have to
/// handle the same types**. Add a later callback to every thread of such a pool, and also in the closure
/// that makes the threads.
///
/// <doc:ThreadsAndPools> says when to choose which balancer and scaler.
public final class EventPool<Thread: EventThread>: EventListenable, Sendable {
  let core: PoolCore
  @usableFromInline let direct: any RouterCore
  /// The name that it was given, or its type.
  public let receiverName: String
  let ownListener = OwnedListener()

  /// Makes a pool whose threads are made by a closure, which can give each thread different arguments.
  ///
  /// ```swift
  /// let pool = EventPool(capacity: 4) { index in
  ///   StorageThread(connection: connections[index])
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - capacity: How many threads; at least 1.
  ///   - balancer: Chooses the thread that gets an event: `.roundRobin`, `.lowestLoad`, `.byKey`,
  ///     `.shared`, or one of your own.
  ///   - scaler: Changes the number of threads: `.dynamic(2...8)` does so by load. Without a scaler only
  ///     ``capacity`` changes it.
  ///   - mailbox: How many events may wait for each thread; with the balancer `.shared`, for all threads together.
  ///   - central: Where the events are dispatched. The threads need not name it.
  ///   - name: How debuggers show the threads, followed by the index; nil takes the name of the class.
  ///   - make: Makes a new thread and returns it. It is called here for each thread, and again whenever
  ///     the pool grows, on the thread that makes it grow, one call at a time. The index is the lowest
  ///     that no thread of the pool has. Drains and joins of the pool wait for a call that has begun.
  ///
  /// **Threads**: any. Makes `capacity` threads before it returns.
  public init(
    capacity: Int = 1, balancer: any EventPoolBalancing = EventPoolRoundRobinBalancer(),
    scaler: any EventPoolScaling = FixedScaler(), mailbox: EventMailboxCapacity = .unbounded,
    on central: EventCentral = .shared, name: String? = nil, make: @escaping @Sendable (_ index: Int) -> Thread
  ) {
    PoolConstruction.refuseMainThread(Thread.self)
    receiverName = name ?? "\(Self.self)"
    core = PoolCore(
      capacity: capacity, balancer: balancer, scaler: scaler, mailbox: mailbox, central: central,
      name: name ?? "\(Thread.self)", receiverName: receiverName, accepts: { $0 is Thread.Type }, make: make)
    direct = core.direct
  }

  /// Makes a pool that makes its threads by their initialiser without parameters. All else is as for
  /// ``init(capacity:balancer:scaler:mailbox:on:name:make:)``.
  public convenience init(
    capacity: Int = 1, balancer: any EventPoolBalancing = EventPoolRoundRobinBalancer(),
    scaler: any EventPoolScaling = FixedScaler(), mailbox: EventMailboxCapacity = .unbounded,
    on central: EventCentral = .shared, name: String? = nil
  ) {
    self.init(
      capacity: capacity, balancer: balancer, scaler: scaler, mailbox: mailbox, on: central, name: name
    ) { _ in Thread() }
  }

  deinit {
    core.release()
  }

  /// Where the events are dispatched.
  public var central: EventCentral { core.central }

  /// The listeners that are registered `on:` this pool. They get every event that is dispatched on its
  /// central or sent to the pool alone, in addition to the thread that handles it. They end with the
  /// pool's last reference, with ``cancel()`` or with a drain.
  ///
  /// **Threads**: any. It is made at its first use; its listener thread starts with the first listener
  /// that runs there.
  public var listener: EventListener {
    ownListener.value(or: {
      EventListener(
        central.basis, central.serial, sources: [central.router, direct],
        target: ScheduleTarget(central.scheduler, direct), name: "EventPool listener")
    })
  }

  // MARK: Dispatching

  /// Queues an event for this pool alone: one of its threads handles it.
  ///
  /// - Parameters:
  ///   - event: What to dispatch.
  ///   - priority: Which of the five queues it joins.
  /// - Returns: False if nobody gets it: the pool has ended, has no callback for the type, or is full and refuses it.
  ///
  /// **Threads**, **Order**, **Complexity**: as ``Eventable/queue(priority:on:)``.
  @inlinable
  @discardableResult
  public func queueEvent<E: Eventable>(
    _ event: consuming E, priority: EventPriority = .normal
  ) -> Bool {
    dispatch(event, lane: Lane(.queue, priority), through: direct) != 0
  }

  /// Stacks an event for this pool alone: one of its threads handles it.
  ///
  /// The order is that of ``Eventable/stack(priority:on:)``; all else is as for
  /// ``queueEvent(_:priority:)``.
  @inlinable
  @discardableResult
  public func stackEvent<E: Eventable>(
    _ event: consuming E, priority: EventPriority = .normal
  ) -> Bool {
    dispatch(event, lane: Lane(.stack, priority), through: direct) != 0
  }

  // MARK: Threads

  /// How many threads the pool is to have; at least 1.
  ///
  /// The setter makes or retires threads before it returns, unless another call is already doing so and
  /// takes this change over. A retired thread gets no new events, handles those that wait for it, and
  /// ends: no event is lost or handled twice, and nobody waits for the thread. Likewise the listeners `on:` it. The
  /// pool keeps a thread that has ended, retired or cancelled, while those that run elsewhere have not, and releases it
  /// at the next such change or its own end. A scaler may change the number again. A thread that somebody has
  /// cancelled is replaced at the next such change.
  ///
  /// **Threads**: any, also inside a handler of the pool.
  public var capacity: Int {
    get { core.capacity }
    set { core.capacity = newValue }
  }

  /// Asks the scaler at once how many threads the pool is to have, without waiting for its interval.
  ///
  /// **Threads**: any, also inside a handler of the pool.
  public func rescale() { core.rescale() }

  /// Calls a closure with the threads of the pool, in the order of their indices, without those that are being
  /// retired. One that somebody has cancelled, and that takes no events, is among them until it has ended or the
  /// capacity is set.
  ///
  /// - Parameter body: Gets the threads.
  /// - Returns: The result of the closure.
  ///
  /// **Threads**: any.
  ///
  /// **Complexity**: O(threads).
  @discardableResult
  public func withThreads<Result>(_ body: ([Thread]) throws -> Result) rethrows -> Result {
    // The pool's closure, which made them, returns this type.
    try body(core.slots.active.map { unsafeDowncast($0.thread, to: Thread.self) })
  }

  // MARK: Ending

  /// Ends the pool with all its threads: handlers that are running finish; events that wait are freed
  /// and counted (D10).
  ///
  /// **Threads**: any, also inside a handler of the pool. Returns at once.
  ///
  /// **Complexity**: O(threads).
  public func cancel() {
    core.close(whenEmpty: false)
    ownListener.end()
  }

  /// Ends the pool after its threads have handled the events that wait, as `EventThread.drain(until:)`. Listeners `on:`
  /// the pool run elsewhere, as those `on:` one of its threads may.
  ///
  /// - Parameter deadline: When to give up.
  /// - Returns: True if everything that was dispatched before was handled in time. False also if a
  ///   thread of the pool was cancelled earlier while events waited for it, or for listeners `on:` it.
  ///
  /// **Threads**: any but those of the pool; there it would wait for itself, and traps.
  @available(*, noasync, message: "It blocks its thread: write await drain(until:) in an async function.")
  @discardableResult
  public func drain(until deadline: DispatchTime = .distantFuture) -> Bool {
    refuseOnOwnThread("drain(until:)", instead: "cancel()")
    core.close(whenEmpty: true)
    _ = ownListener.closeWhenEmpty()
    _ = core.closeListeners()
    guard central.wait(for: core.ended, until: deadline.limit) else {
      cancel()
      return false
    }
    return finish()
  }

  /// Ends the pool, and the listeners that are registered `on:` it or one of its threads, after they have handled the
  /// events that wait: as the form that blocks, but without blocking the thread of the task, and also for these
  /// listeners, as ``EventListener/drain(until:)`` says.
  ///
  /// - Parameter deadline: When to give up. A task that is cancelled gives up at once; in a deterministic central
  ///   it first runs what is left.
  /// - Returns: As the form that blocks. What a listener or a sequence that ends meanwhile has left does not count.
  ///
  /// **Threads**: any task or actor; in a deterministic central none that runs on one of its threads. A
  /// listener `on:` the pool, or one of its threads, that awaits its drain delays it until the deadline.
  @discardableResult
  public nonisolated(nonsending) func drain(until deadline: DispatchTime = .distantFuture) async -> Bool {
    core.close(whenEmpty: true)
    let (listenersDrained, othersDrained) = (ownListener.closeWhenEmpty(), core.closeListeners())
    guard await central.waited(for: core.ended, until: deadline.limit), await listenersDrained(deadline.limit),
      await othersDrained(deadline.limit),
      // Also those of a thread that was being made.
      await core.closeListeners()(deadline.limit)
    else {
      cancel()
      return false
    }
    return finish()
  }

  /// Ends the listeners that are registered `on:` the pool and its threads, and returns the result of a drain. The
  /// threads have ended.
  private func finish() -> Bool {
    ownListener.end()
    let hasListenedToAll = core.endListeners()
    return !core.hasLost && !ownListener.hasLost && hasListenedToAll
  }

  /// Waits until the pool has ended with all its threads, those included that are being made. It does not end them: a
  /// pool whose threads somebody has cancelled one by one has not ended, since it can make others.
  ///
  /// **Threads**: any but those of the pool; there it would wait for itself, and traps.
  @available(*, noasync, message: "It blocks its thread: write await join() in an async function.")
  public func join() {
    refuseOnOwnThread("join()", instead: "cancel()")
    _ = central.wait(for: core.ended, until: nil)
  }

  /// Waits as the form that blocks, but without blocking the thread of the task, also if the task is cancelled.
  ///
  /// **Threads**: any task or actor, in a deterministic central as for `drain(until:)`.
  public nonisolated(nonsending) func join() async {
    await central.joined(core.ended)
  }

  private func refuseOnOwnThread(_ name: StaticString, instead: StaticString) {
    let slots = core.slots
    require(
      !core.waitsForCaller && !(slots.active + slots.retiring).contains { $0.thread.consumer.waitsForCaller },
      """
      \(name) waits for the end of a pool's threads, and was called on one of them, in the closure that makes them, or \
      as one of their listeners, or an event that the pool's end left, was freed, where it would wait for itself: call \
      \(instead).
      """)
  }
}

extension EventPool: ActiveByItself {}
