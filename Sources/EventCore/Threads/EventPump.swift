// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A mailbox with callbacks that your own loop drives: a frame, a simulation step, an `epoll` loop. It makes no
/// thread.
///
/// ```swift
/// let pump = EventPump(on: world)
/// pump.addEventCallback { (hit: Hit) in game.apply(hit) }
///
/// while game.isRunning {
///   let report = pump.run(until: .now + .milliseconds(2), limit: 10_000)
///   game.draw(late: report.waiting)
/// }
/// ```
///
/// A pump is not `Sendable`: it belongs to the code that made it, and the compiler keeps other threads away from
/// it. Its closures therefore need not be `Sendable` either, and use what the loop uses without a lock. Events
/// come from anywhere: dispatching goes through the central.
///
/// While a program has pumps alone, EventCore has no thread in it: what the lock-free core keeps until no thread reads it
/// any more is freed at the beginning of the runs. Once there is another receiver (an event thread, a pool, a listener
/// elsewhere, a sequence, a type whose newest event is kept), a thread of the core's frees it, which runs no callback.
///
/// It ends with its last reference (D9) or with ``cancel()``. A closure that retains the pump keeps it alive
/// until then.
public final class EventPump {
  // All stored properties are constant; what changes belongs to the consumer, and to its driver.

  /// Where the events of this pump are dispatched.
  public let central: EventCentral
  /// The pump as a place for listeners, for the handlers of trees, and for actors, and as a source of events
  /// (``EventListenable``). **Threads**: those of the loop for this property, any for its value.
  public let place: EventPumpPlace
  let consumer: Consumer
  @usableFromInline let direct: any RouterCore
  /// Of the consumer, where it is no constant: a retain and a release for each event.
  @usableFromInline let mailbox: any MailboxCore
  /// What the loop posts joins it; nil for the locking core, and where events carry a value.
  @usableFromInline let openBatch: OpenBatch?
  let driver: LoopDriver
  let pump: ConsumerPump

  /// What a ``run(until:limit:)-(ContinuousClock.Instant?,_)`` has done, and what it left.
  public struct Report: Sendable, Equatable {
    /// How many events were handled; those that all interests skipped are among them.
    public let handled: Int
    /// How many events wait. It is 0 if the pump ran dry; otherwise as exact as ``EventPump/eventCount``.
    public let waiting: Int
    /// An upper bound of the age of the oldest event that waits: the time since the pump was last seen with
    /// nothing left. Nil if nothing waits. The pump was last empty at the end of an earlier run, so this is too
    /// high by the time from then to the first event. It costs one look at the clock a run, and none an event.
    public let oldestAge: Duration?
  }

  /// Makes a pump, and no thread.
  ///
  /// - Parameters:
  ///   - central: Where its events are dispatched.
  ///   - mailbox: How many events may wait.
  ///   - wakeUp: Called when something waits and no run is due yet: by the first dispatch after a run that left
  ///     nothing, on the thread that dispatches, and by each run that does not run dry: that leaves something, or comes to
  ///     its limit or deadline; but not by one that handles nothing after a run that left nothing, unless the central has
  ///     a clock of its own or ``EventCentral/Timers/pumps``. For a loop with a wake-up of its own, such as that of a
  ///     window system: it neither waits nor runs the pump. A removal by another thread, whose closure is to be released,
  ///     calls it as well. The end of the pump does not, but another thread's dispatch that is on its way then may. Loops
  ///     that poll descriptors have ``fileDescriptor``.
  ///
  /// **Threads**: any. The pump belongs to the caller.
  public init(
    on central: EventCentral = .shared, mailbox: EventMailboxCapacity = .unbounded,
    wakeUp: (@Sendable () -> Void)? = nil
  ) {
    mailbox.check(for: "EventPump")
    self.central = central
    direct = central.basis.makeRouter()
    driver = LoopDriver(
      wakeUp: wakeUp, central.basis, timers: central.basis.timersInPumps ? central.scheduler : nil)
    // The number is for the end alone, which handles nothing.
    pump = ConsumerPump(driver, batch: ExecutionContexts.largeBatch)
    consumer = Consumer(
      central.basis, routes: RouterGroup([central.router, direct]), direct: direct, strategy: .park,
      capacity: mailbox, pump: pump, hooks: ConsumerHooks(trace: central.serial?.name("EventPump"), name: "EventPump"))
    place = EventPumpPlace(consumer, PumpSource(central, direct))
    self.mailbox = consumer.mailbox
    openBatch = consumer.mailbox.openBatch(through: direct)
    consumer.setOwner(self)
  }

  deinit {
    cancel()
  }

  // MARK: Running

  /// Handles events on the calling thread, the most urgent first (D1 to D3, anew for each event), until none is
  /// left, the limit is reached, or the deadline has come.
  ///
  /// - Parameters:
  ///   - deadline: No event begins after it; nil handles all. What is left keeps its order for the next run.
  ///   - limit: How many events to handle at most. At 0 the call handles none, and tells what waits.
  /// - Returns: What was handled, and what waits.
  ///
  /// The clock is read between two events: after each one while handlers take more than a microsecond, and after up to
  /// 128 while they are short and the deadline is more than a millisecond away (32 when a quarter of one is left),
  /// which costs half a nanosecond to one an event, and 4 ns if there are only 50. The stretches between two looks
  /// begin with 1, 2, 4, 8 ... events, anew at the first event of each type, and of each one after a stretch that took
  /// 8 µs. So the run ends one handler after the deadline, give or take two microseconds, as long as handlers keep
  /// their pace or take longer than 8 µs each time. If those that were short turn slow all at once, as many events as
  /// were handled before may begin too late, but at most 31, or 127 if the deadline was more than a quarter of a
  /// millisecond away. A handler is never interrupted.
  ///
  /// The lock-free core sorts a backlog before its first event begins: 4 to 12 ns an event, with a look at the clock after
  /// each 1,024. So a run may reach its deadline with nothing handled; the next one goes on where it stopped, but for a
  /// stack to which more was sent: while more comes between two runs than one of them can sort, none of it begins. On a
  /// central with a clock of its own, and with ``EventOverflowPolicy/dropOldest``, it sorts without looking at the clock.
  ///
  /// With `EventCentral(timers: .pumps)` the clock is also read without a deadline, for the timers, after at most 32
  /// events.
  ///
  /// Events that handlers dispatch, and that other threads dispatch meanwhile, are handled, too. So a run without a
  /// deadline and a limit does not return while a handler dispatches to the pump each time, or producers are faster:
  /// give a run that has to end one of the two. On a central with a `ManualClock` only a limit ends it: time stands
  /// still during the run, and the deadline does not come.
  ///
  /// **Threads**: those of the loop, one at a time; a second thread at the same time, and a callback of the pump
  /// itself, trap.
  ///
  /// **Order**: the closures that were removed before the run are released first. If registrations have changed since the
  /// last run, and no thread of the core's frees what they have replaced (see above), this run waits until no thread reads
  /// it: some microseconds, or milliseconds if the system has taken a thread away in the middle of a dispatch of a type
  /// that is new to it.
  ///
  /// **Complexity**: O(events handled). On the lock-free core a run that leaves something also looks once at each
  /// callback of `.latestOnly` and `.latestPerKey`, to tell how much is left.
  @discardableResult
  public func run(until deadline: ContinuousClock.Instant? = nil, limit: Int = .max) -> Report {
    run(until: deadline?.nanoseconds(on: central.basis) ?? .max, limit)
  }

  /// Handles events until a time on the central's clock, ``EventCentral/now``. All else is as for the form with an
  /// instant of the system's clock, of which the time that is left counts: with a clock of your own, this form is exact.
  @discardableResult
  public func run(until deadline: DispatchTime, limit: Int = .max) -> Report {
    run(until: deadline.uptimeNanoseconds, limit)
  }

  private func run(until deadline: UInt64, _ limit: Int) -> Report {
    require(
      limit >= 0,
      """
      The limit of EventPump.run(until:limit:) is the number of events to handle at most, and this one is \
      \(limit): pass 0 or more, or leave it out to handle all.
      """)
    let before = consumer.handled
    driver.willRun()
    EventCentral.Core.reclaim()
    let result = pump.run(consumer, limit: limit, until: deadline, timers: driver.timers)
    guard let result else { refuseSecondRun() }
    let handled = Int(consumer.handled &- before)
    guard result == .more else { return Report(handled: handled, waiting: 0, oldestAge: nil) }
    // The clock first: what is posted between the two is younger than that.
    let now = central.basis.now
    let waiting = eventCount
    guard waiting > 0 else {
      driver.emptied(at: now)
      return Report(handled: handled, waiting: 0, oldestAge: nil)
    }
    return Report(
      handled: handled, waiting: waiting,
      oldestAge: .nanoseconds(Int64(clamping: now - min(now, driver.emptied))))
  }

  private func refuseSecondRun() -> Never {
    refuse(
      consumer.isCurrent
        ? """
        EventPump.run(until:limit:) handles one event after another, and was called inside a callback of the \
        same pump: return from the callback, and the run that called it goes on.
        """
        : """
        An EventPump is run by one thread at a time, and another thread is running this one: it belongs to \
        the loop that made it. Give each loop a pump of its own.
        """, file: #fileID, line: #line)
  }

  /// Ends the pump: the callback that is running finishes; events that wait are freed and counted (D10), and so
  /// are the closures. A later run handles nothing.
  ///
  /// **Threads**: those of the loop, also inside a callback of the pump.
  public func cancel() {
    driver.willEnd()
    place.end()
  }

  // MARK: Dispatching

  /// Queues an event for this pump alone.
  ///
  /// - Parameters:
  ///   - event: What to dispatch.
  ///   - priority: Which of the five queues it joins.
  /// - Returns: False if nobody gets it: the pump has ended, has no callback for the type, or is full and refuses it.
  ///
  /// **Threads**: those of the loop. **Order**: as ``Eventable/queue(priority:on:)``. **Complexity**: as there, but
  /// the lock-free core writes the event where it waits, without an envelope, while the events of the lane come
  /// from the loop alone: about a fourth of the time of a dispatch on the central. So it does with what callbacks of the pump
  /// dispatch.
  @inlinable
  @discardableResult
  public func queueEvent<E: Eventable>(
    _ event: consuming E, priority: EventPriority = .normal
  ) -> Bool {
    // The loop is the consumer, also between two runs.
    assert(!isRunElsewhere, "EventPump.queueEvent(_:priority:) was called while another thread runs the pump.")
    let lane = Lane(.queue, priority)
    guard let openBatch, let place = openBatch.place(for: E.self, lane) else { return post(event, lane) }
    place.initializeMemory(as: E.self, to: event)
    openBatch.didWrite(place)
    return true
  }

  /// Dispatches an event that joins no batch. Not inlined, so that the event stays in its registers where it does.
  @inlinable
  @inline(never)
  func post<E: Eventable>(_ event: consuming E, _ lane: Lane) -> Bool {
    let before = mailbox.enter()
    let accepted = dispatch(event, lane: lane, through: direct)
    mailbox.leave(before)
    return accepted != 0
  }

  /// For checks in debug builds: what the compiler cannot refuse in unsafe code.
  @usableFromInline var isRunElsewhere: Bool { pump.isRunning && !consumer.isCurrent }

  /// Stacks an event for this pump alone.
  ///
  /// The order is that of ``Eventable/stack(priority:on:)``; all else is as for ``queueEvent(_:priority:)``.
  @inlinable
  @discardableResult
  public func stackEvent<E: Eventable>(
    _ event: consuming E, priority: EventPriority = .normal
  ) -> Bool {
    assert(!isRunElsewhere, "EventPump.stackEvent(_:priority:) was called while another thread runs the pump.")
    return post(event, Lane(.stack, priority))
  }

  // MARK: Looking

  /// How many events wait for this pump. Exact while no other thread dispatches, approximate otherwise.
  ///
  /// **Complexity**: O(callbacks of the pump that want the latest event only).
  public var eventCount: Int { consumer.mailbox.waiting }

  /// How many events wait in one lane, as exact as ``eventCount``.
  ///
  /// - Parameters:
  ///   - priority: The priority of the lane.
  ///   - method: Whether it is a queue or a stack.
  /// - Returns: The number.
  public func eventCount(priority: EventPriority, method: EventDispatchMethod) -> Int {
    consumer.mailbox.depths()[Int(Lane(method, priority).index)]
  }

  /// What the pump has done so far.
  public var statistics: EventThreadStatistics { consumer.statistics }

  /// What came to its mailbox, and what became of it there.
  public var mailboxStatistics: EventMailboxStatistics { consumer.mailboxStatistics }
}

@available(*, unavailable, message: "A pump belongs to its loop: dispatch to its central instead.")
extension EventPump: Sendable {}

extension ContinuousClock.Instant {
  /// The time on the clock of a central. That of the cores stands still while the system sleeps, this one does not: the
  /// deadline of a frame during which the system slept comes too late, by the length of that sleep.
  func nanoseconds(on basis: CentralBasis) -> UInt64 {
    let left = self - .now
    // `.max` is no deadline at all.
    return left > .zero ? later(basis.now, by: left) : 0
  }
}
