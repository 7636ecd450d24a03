// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventCentral {
  /// Makes a central whose program is the same in each run: no receiver gets a thread, and everything that would be
  /// concurrent runs inside ``run(limit:)``, one event after another.
  ///
  /// ```swift
  /// let world = EventCentral(deterministic: 7)
  /// let referee = Referee(on: world)
  /// Hit(player: "Ann", points: 10).queue(on: world)
  /// world.run()
  /// print(referee.total(of: "Ann"))   // 10
  /// ```
  ///
  /// Where the order is free, the seed decides: which of the event threads, queues or threads of a pool that have an event
  /// takes the next one. Every order that the seeds give could occur in another central, too; the guarantees D1 to D12
  /// hold. The same seed gives the same ``trace(_:)``, in each run and on both cores, as long as one thread dispatches
  /// and runs, and the handlers themselves do the same. (`Set` and `Dictionary` follow the hash values of the process,
  /// which are the same each time if the environment has `SWIFT_DETERMINISTIC_HASHING=1`.) What still waits as a receiver
  /// ends is freed in an order of the core's own: the cores differ if the `deinit` of such an event dispatches.
  ///
  /// What runs where:
  /// - Event threads, pools, listener threads, and `executeOn:` a task or a dispatch queue: inside the run, on the thread
  ///   that calls it.
  /// - The main queue and the MainActor: likewise, so the main thread has to call it; elsewhere it traps.
  /// - Other actors run on executors of their own: a registration on one traps.
  /// - An ``EventPump`` is run by its own loop, on the same thread, before or after the run.
  /// - `drain(until:)` and `join()` run the central until their thread or pool has ended; in a task they do so on the
  ///   actor of their caller, such as the MainActor, also if the task is cancelled, and wait for their turn while
  ///   another thread runs it, as two drains at once do; nothing else that runs the central may be called beside them.
  ///   A `join()` that finds nothing left to run traps, although a later time or another task would end the thread.
  ///   Inside a handler that a run calls, and in a job of an actor that runs on one of the central's threads, nothing
  ///   else can run: both trap unless it has ended already.
  /// - The tasks of `async` listeners, and loops over sequences: by themselves, in no order with the rest, and in no
  ///   trace. A drain waits for them, but while nothing is taken no longer than five seconds of the system's; without a
  ///   deadline also as long as calls of `async` listeners run.
  /// - Scheduled events: inside the run, and inside those of pumps, as by ``Timers/pumps``.
  /// - A mailbox that is full refuses at once where its policy is `.block(upTo:)`, since nothing runs during a wait.
  ///
  /// - Parameters:
  ///   - seed: Any number.
  ///   - core: The implementation.
  ///   - clock: Each central gets a ``ManualClock`` of its own unless you pass one, and its time begins at 1,000 seconds.
  ///     With a clock that ticks by itself the times of a trace differ from run to run. Deterministic centrals can share
  ///     one: what moves it for one of them passes the deadlines of the others in one jump.
  public convenience init<C: Clock<Duration>>(
    deterministic seed: UInt64, core: Core = .default, clock: C = ManualClock()
  ) {
    let clock = CentralClock(clock, startingAt: CentralClock.start)
    self.init(
      CentralBasis(core: core, clock: clock, timersInPumps: true, source: Consumer.currentProbe), seed: seed)
  }

  /// Handles the events of a deterministic central, on the calling thread, until none is left, or the limit is reached.
  /// What handlers dispatch is handled, too, and scheduled events that are due.
  ///
  /// - Parameter limit: How many events to handle at most.
  /// - Returns: How many were handled; those that all interests skipped are among them.
  ///
  /// **Threads**: one at a time. Inside a handler that it runs itself it traps; inside one that a pump's own loop runs
  /// it handles what is not the pump's. It also traps on a central that is not deterministic, whose threads run by
  /// themselves.
  @discardableResult
  public func run(limit: Int = .max) -> Int {
    require(
      limit >= 0,
      """
      The limit of EventCentral.run(limit:) is the number of events to handle at most, and this one is \
      \(limit): pass 0 or more, or leave it out to handle all.
      """)
    return deterministic("run(limit:)").run(limit: limit)
  }

  /// Notes what runs in a deterministic central during a closure.
  ///
  /// - Parameter body: Dispatches and calls ``run(limit:)``, or runs pumps.
  /// - Returns: Which receiver took which event, in order.
  ///
  /// **Complexity**: some 100 bytes an event, for as long as the trace is kept.
  public func trace(_ body: () throws -> Void) rethrows -> EventTrace {
    let log = deterministic("trace(_:)").log
    log.begin()
    do {
      try body()
    } catch {
      _ = log.end()
      throw error
    }
    return log.end()
  }

  private func deterministic(_ call: StaticString) -> SerialLoop {
    guard let serial else {
      refuse(
        """
        EventCentral.\(call) is for deterministic centrals, whose events are handled inside of it, and this central has \
        threads: make it by EventCentral(deterministic: seed).
        """, file: #fileID, line: #line)
    }
    return serial
  }

  /// Waits for the end of a consumer or a pool, or until a time on the central's clock. True if it has ended.
  func wait(for end: Latch, until deadline: UInt64?) -> Bool {
    guard let serial else { return end.wait(until: deadline, by: basis.clock) }
    if !end.isOpen {
      _ = serial.run { end.isOpen || basis.now >= deadline ?? .max }
    }
    return hasEnded(end, hasDeadline: deadline != nil)
  }

  /// The same for a task, without blocking its thread. False also if the task is cancelled; in a deterministic central,
  /// which runs here, that makes no difference.
  nonisolated(nonsending) func waited(for end: Latch, until deadline: UInt64?) async -> Bool {
    guard let serial else { return await end.opened(until: deadline, by: basis.clock) }
    if !end.isOpen {
      await serial.run(untilOpen: end) { basis.now >= deadline ?? .max }
    }
    return hasEnded(end, hasDeadline: deadline != nil)
  }

  /// The same without a deadline, also in a task that is cancelled.
  nonisolated(nonsending) func joined(_ end: Latch) async {
    guard serial != nil else { return await end.opened() }
    _ = await waited(for: end, until: nil)
  }

  /// After a run. Without a deadline it traps if that was not enough.
  private func hasEnded(_ end: Latch, hasDeadline: Bool) -> Bool {
    require(
      end.isOpen || hasDeadline,
      """
      join() waits for the end of a thread or pool, and nothing is left to run in this deterministic central that would \
      end it: call cancel() or drain(until:), or await join() after what ends it.
      """)
    return end.isOpen
  }
}

extension EventCentral {
  /// For EventCoreTesting: whether it is deterministic.
  package var isDeterministic: Bool { serial != nil }

  /// For EventCoreTesting: registers a closure that the listener thread calls for later events alone, without the
  /// newest one that the central may keep.
  package func addProbe<E: Eventable>(_ callback: @escaping @Sendable (E) -> Void) -> any EventListenerHandling {
    listener.add(in: listener.contexts.listenerThread(), nil, eventTypeActions(E.self), isGreeted: false) {
      $0.handler(HandlerCallback(callback), HandlerInterest(.all, maximumAge: 0, customFilter: nil))
    }
  }

  /// For EventCoreTesting: runs a deterministic central for a time on its manual clock, which is moved from one deadline
  /// to the next whenever nothing is left to run. Returns early, and true, once a condition holds; it is asked before
  /// each event. `most`: how many events at one instant count as a chain without end, which traps.
  package func run(for duration: Duration, most: Int = 10_000_000, until isDone: () -> Bool) -> Bool {
    let loop = deterministic("advance(by:)")
    guard let clock = basis.clock?.manual else {
      refuse(
        """
        The time of a deterministic central is moved by its ManualClock, and this one was made with another clock: leave \
        clock: out, or pass a ManualClock.
        """, file: #fileID, line: #line)
    }
    let end = clockTime(later(clock.nanoseconds, by: duration))
    while true {
      let handled = loop.run(limit: most, until: isDone)
      if isDone() { return true }
      require(
        handled < most,
        """
        The time of a deterministic central goes on when nothing is left to run, and \(most) events were handled at \
        one instant: have the handlers that dispatch again and again schedule these events for later, or have them stop.
        """)
      let now = clock.nanoseconds
      guard now < end else { return false }
      // What sleeps by the clock itself, such as a scaler, goes on at its own time, too.
      clock.advance(to: max(now, min(end, scheduler.nextDeadline, clock.nextAlarm)))
    }
  }
}
