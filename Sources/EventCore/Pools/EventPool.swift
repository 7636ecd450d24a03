// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// Several event threads of one kind as one receiver: each event goes to exactly one of them. (A
/// callback that wants the latest event only is a receiver of its own beside others.)
///
/// ```swift
/// let pool = EventPool<TemperatureProcessor>(capacity: 5)
/// TemperatureEvent(temperatureInCelsius: 23.25).queue()  // one of the five handles it
/// ```
///
/// The balancer chooses the thread: by default they take turns. The event keeps the priority, method and
/// time with which it was dispatched. ``capacity`` sets the number of threads, or a scaler does.
///
/// The pool owns its threads: they are made with it, end with its last reference (D9), and get what
/// is dispatched to their types only through it. What is sent straight to one of them
/// (``EventThread/queueEvent(_:priority:)``) reaches that one alone. A callback that is added to
/// one of them later takes part from then on, and one that is removed does not: the balancer
/// chooses among the threads that have a callback for the type.
///
/// With an ``EventPoolSharedBalancer`` nobody chooses, and so **all threads of the pool handle the
/// same types**. Add a later callback to every thread of such a pool, and in the closure that makes
/// them.
///
/// <doc:ThreadsAndPools> says when to choose which balancer and scaler.
public final class EventPool<Thread: EventThread>: EventListenable, Sendable {
  let core: PoolCore
  @usableFromInline let direct: any RouterCore
  private let ownListener = OwnedListener()

  /// Makes a pool whose threads are made by a closure, which can give each of them something of its
  /// own.
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
  ///   - scaler: Changes the number of threads: `.dynamic(2...8)` by load. Left out, nothing does but ``capacity``.
  ///   - central: Where the events are dispatched. The threads get theirs through the pool, and
  ///     need not name it.
  ///   - name: How debuggers show the threads, with the index behind it; nil takes the name of the
  ///     class.
  ///   - make: Makes a new thread and returns it. Called here for each thread, and again whenever
  ///     the pool grows, on whichever thread has it grow; one call at a time. The index is the
  ///     lowest that no thread of the pool has.
  ///
  /// **Threads**: any. Makes `capacity` threads before it returns.
  public init(
    capacity: Int = 1, balancer: any EventPoolBalancing = EventPoolRoundRobinBalancer(),
    scaler: any EventPoolScaling = FixedScaler(), on central: EventCentral = .shared,
    name: String? = nil, make: @escaping @Sendable (_ index: Int) -> Thread
  ) {
    require(
      !(Thread.self is UIEventThread.Type),
      """
      The threads of an EventPool work side by side, and \(Thread.self) is a UIEventThread, whose \
      callbacks all run on the main thread. Make one of it, or a pool of another class.
      """)
    core = PoolCore(
      capacity: capacity, balancer: balancer, scaler: scaler, central: central,
      name: name ?? "\(Thread.self)", accepts: { $0 is Thread.Type }, make: make)
    direct = core.direct
  }

  /// Makes a pool whose threads are made by their initialiser without parameters. All else is as for
  /// ``init(capacity:balancer:scaler:on:name:make:)``.
  public convenience init(
    capacity: Int = 1, balancer: any EventPoolBalancing = EventPoolRoundRobinBalancer(),
    scaler: any EventPoolScaling = FixedScaler(), on central: EventCentral = .shared,
    name: String? = nil
  ) {
    self.init(
      capacity: capacity, balancer: balancer, scaler: scaler, on: central, name: name
    ) { _ in Thread() }
  }

  deinit {
    core.release()
  }

  /// Where the events are dispatched.
  public var central: EventCentral { core.central }

  /// The listeners that are registered `on:` this pool. They hear every event that the pool gets,
  /// from its central or by itself, beside the thread that handles it; they share no work with the
  /// threads, and end with the pool's last reference, by ``cancel()`` or with a drain.
  ///
  /// **Threads**: any. Made with its first use; its listener thread starts with the first listener
  /// that runs there.
  public var listener: EventListener {
    ownListener.value(or: {
      EventListener(
        core: central.core, sources: [central.router, direct],
        target: ScheduleTarget(central.scheduler, direct), name: "EventPool listener")
    })
  }

  // MARK: Dispatching

  /// Queues an event for this pool alone: one of its threads handles it.
  ///
  /// - Parameters:
  ///   - event: What to dispatch.
  ///   - priority: Which of the five queues it joins.
  /// - Returns: False if nobody gets it: the pool has ended, or has no callback for the type.
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
  /// All else is as for ``queueEvent(_:priority:)``, but for the order: that of ``Eventable/stack(priority:on:)``.
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
  /// Setting it makes or retires threads before it returns, unless another thread is just doing so,
  /// which then does this as well. A thread that is retired gets no new events, handles what waits
  /// for it and ends by itself: nothing is lost, nothing is handled twice, and nobody waits for it. A
  /// scaler may change the figure again. A thread that was cancelled by itself is replaced then,
  /// not before.
  ///
  /// **Threads**: any, also inside a handler of the pool.
  public var capacity: Int {
    get { core.capacity }
    set { core.capacity = newValue }
  }

  /// Asks the scaler now how many threads there are to be, whatever its interval.
  ///
  /// **Threads**: any, also inside a handler of the pool.
  public func rescale() { core.rescale() }

  /// Shows the threads that take events now, by index; those that are being retired are not among
  /// them.
  ///
  /// - Parameter body: Gets the threads.
  /// - Returns: What the closure returns.
  ///
  /// **Threads**: any.
  ///
  /// **Complexity**: O(threads).
  @discardableResult
  public func withThreads<Result>(_ body: ([Thread]) throws -> Result) rethrows -> Result {
    // Made by the pool's own closure, which returns nothing else.
    try body(core.slots.active.map { unsafeDowncast($0.thread, to: Thread.self) })
  }

  // MARK: Ending

  /// Ends the pool with all its threads: handlers that run finish, what waits is freed and counted
  /// (D10).
  ///
  /// **Threads**: any, also inside a handler of the pool. Returns at once.
  ///
  /// **Complexity**: O(threads).
  public func cancel() {
    core.close(whenEmpty: false)
    ownListener.end()
  }

  /// Ends the pool after its threads have handled what waits, as `EventThread.drain(until:)`.
  ///
  /// - Parameter deadline: When to give up.
  /// - Returns: True if everything that was dispatched before was handled in time: false also if
  ///   one of its threads was cancelled before while events waited for it.
  ///
  /// **Threads**: any but those of the pool, where it would wait for itself and traps.
  @available(*, noasync, message: "It blocks its thread: write await drain(until:).")
  @discardableResult
  public func drain(until deadline: DispatchTime = .distantFuture) -> Bool {
    refuseOnOwnThread("drain(until:)", instead: "cancel()")
    let slots = core.close(whenEmpty: true)
    for slot in slots where !slot.thread.consumer.ended.wait(until: deadline.limit) {
      cancel()
      return false
    }
    return finish(slots)
  }

  /// Ends the pool after its threads have handled what waits, without blocking the thread of the task.
  ///
  /// - Parameter deadline: When to give up, as for the form that blocks. A task that is cancelled
  ///   gives up at once.
  /// - Returns: As the form that blocks.
  ///
  /// **Threads**: any task or actor.
  @discardableResult
  public func drain(until deadline: DispatchTime = .distantFuture) async -> Bool {
    let slots = core.close(whenEmpty: true)
    for slot in slots {
      guard await slot.thread.consumer.ended.opened(until: deadline.limit) else {
        cancel()
        return false
      }
    }
    return finish(slots)
  }

  /// After its end: ends what is registered `on:` it, and tells whether it handled what was dispatched
  /// before.
  private func finish(_ slots: [PoolCore.Slot]) -> Bool {
    ownListener.end()
    // Nobody is left to handle it.
    core.shared?.core.dropAll()
    // Threads that were not given up have left nothing: see `EventThread.hasHandledAll`.
    let isLeftToNobody = slots.isEmpty || slots.contains { $0.thread.isGivenUp }
    return !core.hasLost && slots.allSatisfy { $0.thread.hasHandledAll }
      && (!isLeftToNobody || core.shared?.core.counts().dropped ?? 0 == 0)
  }

  /// Waits until all threads of the pool have ended. Does not end them.
  ///
  /// **Threads**: any but those of the pool, where it would wait for itself and traps.
  @available(*, noasync, message: "It blocks its thread: write await join().")
  public func join() {
    refuseOnOwnThread("join()", instead: "cancel()")
    let slots = core.slots
    for slot in slots.active + slots.retiring {
      slot.thread.consumer.ended.wait()
    }
  }

  /// Waits until all threads of the pool have ended, without blocking the thread of the task. Does not
  /// end them.
  ///
  /// **Threads**: any task or actor.
  public func join() async {
    let slots = core.slots
    for slot in slots.active + slots.retiring {
      await slot.thread.consumer.ended.opened()
    }
  }

  private func refuseOnOwnThread(_ name: StaticString, instead: StaticString) {
    let slots = core.slots
    require(
      !(slots.active + slots.retiring).contains { $0.thread.consumer.isCurrent },
      """
      \(name) waits for the end of a pool's threads, and was called on one of them, where it would \
      wait for itself: call \(instead).
      """)
  }
}

extension EventPool: ActiveByItself {}
