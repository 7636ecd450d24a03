// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// Takes events from a mailbox and calls their handlers. It is an object apart from `EventThread`, so that
/// an event thread can be released while its last handler runs. A consumer with a pump has no thread: "the
/// consumer's thread" is then whichever thread runs the pump, one at a time.
///
/// Its parts are its handlers (`HandlerRegistry`), the calls of its handlers (`HandlerCalls`), and what a
/// pool or a listener thread adds (`ConsumerHooks`).
///
/// Twelve files of this folder name one another in a circle: a consumer owns its mailbox and its receivers,
/// the mailbox delivers to these receivers, a receiver reads its consumer's state around each call, and a
/// pump or a shared mailbox drives consumers.
///
/// Synchronization, beside what the parts say themselves:
/// - `held`, `workerReceivers`: the consumer's thread only.
/// - `thread`: written by the consumer's thread, read by any.
/// - `registry` and `mailbox`: set once by the initialiser, which needs `self` for them.
/// Lock order: `hasJobHandler`, then the registry's state, then a shared mailbox's state, then a router's
/// mutex, then a receiver's `additions`; the requests of `calls` last.
@usableFromInline
final class Consumer: @unchecked Sendable {
  let basis: CentralBasis
  /// Of a worker: whether it takes from its shared mailbox.
  let isAdmitted = Atomic<Bool>(false)
  @usableFromInline let calls: HandlerCalls
  private(set) var registry: HandlerRegistry!
  let hooks: ConsumerHooks
  /// What is known of it while the central is observed.
  let probe: ConsumerProbe
  private(set) var mailbox: (any MailboxCore)!
  /// Drives this consumer; nil if it has a thread.
  let pump: ConsumerPump?
  /// The router for events that are sent to this consumer alone.
  let direct: any RouterCore
  /// Whether the handler for jobs is registered; then there are `jobs`, too.
  let hasJobHandler = Guarded(false)
  let jobs = LazyReference<ConsumerJobs>()
  /// Jobs that ended without being run. Relaxed: a statistic.
  let droppedJobs = Atomic<UInt64>(0)
  /// Those of them that are not lost: of executors, which the heir runs, and of guests.
  let keptJobs = Atomic<UInt64>(0)
  /// What tasks prefer, to run where the handlers run. Written before others know the consumer.
  var taskExecutor: UnownedTaskExecutor?
  /// The number of the consumer's thread, unique among running threads; 0 before the start, and while
  /// nobody pumps or borrows the consumer.
  private let thread = Atomic<UInt>(0)
  /// Opened when the consumer has handled or dropped its last event.
  let ended = Latch()
  /// The consumers that end with this one; made with the first, or at the end, for those that come too late.
  let guests = LazyReference<ConsumerGuests>()
  /// Runs the jobs of executors that the consumer has left.
  let heir = LazyReference<ExecutorHeir>()

  private weak var owner: AnyObject?
  /// Retains the owner and requesters over a run of events whose handlers need them. It is a pointer, since
  /// the access checks of a property would cost more for each event than the handler.
  @usableFromInline let held: UnsafeMutablePointer<Held>
  /// Of a worker: its receivers for the entries of its shared mailbox. A pointer, as `held`.
  let workerReceivers: UnsafeMutablePointer<SharedReceivers>

  /// The consumer whose handlers the calling thread is running, if any. It is set for a whole run of
  /// events, and while a consumer releases ended handlers.
  static let current = ThreadLocal<Consumer>()

  /// - Parameters:
  ///   - routes: Where the consumer registers its handlers. For a worker without the router of the shared
  ///     mailbox, which subscribes there itself.
  ///   - direct: The router among `routes`, or behind one of them, for events sent to this consumer alone.
  ///   - capacity: How many events may wait in its own mailbox.
  ///   - pump: Drives this consumer, if it has no thread.
  ///   - hooks: What a pool or a listener thread adds. The shared mailbox is not used before `admit`.
  init(
    _ basis: CentralBasis, routes: any RouteRegistry, direct: any RouterCore, strategy: EventWaitStrategy,
    capacity: EventMailboxCapacity = .unbounded, pump: ConsumerPump? = nil, hooks: ConsumerHooks = ConsumerHooks()
  ) {
    held = .allocate(capacity: 1)
    held.initialize(to: Held())
    workerReceivers = .allocate(capacity: 1)
    workerReceivers.initialize(to: SharedReceivers())
    self.hooks = hooks
    probe = basis.instruments.makeProbe(hooks.name)
    self.direct = direct
    self.basis = basis
    self.pump = pump
    calls = HandlerCalls(hasBarrier: basis.core.parts.barrier())
    pump?.attach(self)
    // What has a trace is in a deterministic central.
    let capacity = hooks.trace == nil ? capacity : capacity.withoutWaiting
    mailbox =
      hooks.shared?.core.makeWorker(self, strategy)
      ?? basis.core.parts.makeMailbox(self, strategy, capacity, pump)
    registry = HandlerRegistry(self, routes)
    basis.instruments.add(self)
  }

  deinit {
    // In case the consumer never ran to its end, both.
    leaveInstruments()
    endHandlers()
    workerReceivers.deinitialize(count: 1)
    workerReceivers.deallocate()
    held.deinitialize(count: 1)
    held.deallocate()
  }

  /// Lets a worker take from its shared mailbox. The handlers that it has by now also get what already
  /// waits there. Any thread.
  func admit() {
    registry.admit()
    mailbox.admit()
    // Relaxed: a deterministic central asks, on one thread.
    isAdmitted.store(true, ordering: .relaxed)
  }

  /// Ends a handler. True for the first call. Any thread.
  func remove(_ handler: HandlerState, of receiver: Receiver) -> Bool {
    guard receiver.end(handler) else { return false }
    // The consumer frees the closure between two events.
    if registry.remove(handler, of: receiver) { requestControl() }
    return true
  }

  // MARK: Running, on the consumer's thread

  /// Whether the caller is the consumer's own thread.
  var isCurrent: Bool { thread.load(ordering: .relaxed) == currentThreadNumber() }

  /// Runs `body` as the consumer's thread, which must not wait for the consumer.
  func asThread<Result>(_ body: () -> Result) -> Result {
    // One inside of another leaves the number to the outer one.
    guard !isCurrent else { return body() }
    // Relaxed, both: a thread compares the number with its own alone, which no other thread stores. It is
    // reset since another thread may get the same number later.
    thread.store(currentThreadNumber(), ordering: .relaxed)
    defer { thread.store(0, ordering: .relaxed) }
    return body()
  }

  /// Runs `body` with a consumer as the one whose handlers the thread runs; nil if it runs nobody's.
  func withCurrent<Result>(_ consumer: Consumer?, _ body: () -> Result) -> Result {
    // Observers count what the handlers dispatch as the consumer's.
    let before = basis.core.setOrigin(consumer.map { UInt64($0.probe.number) } ?? 0)
    defer { _ = basis.core.setOrigin(before) }
    return Self.current.with(consumer, body)
  }

  /// Sets the object that handlers are given as their owner. Before the thread starts.
  func setOwner(_ owner: AnyObject) {
    self.owner = owner
  }

  /// Delivers until the mailbox closes, then frees every handler.
  func run() {
    asThread {
      withCurrent(self) {
        mailbox.run(self)
        endGuests()
        // A worker's run also ends when the shared mailbox closes, and then this consumer may still be open.
        close(whenEmpty: false)
        finish()
      }
    }
  }

  /// Delivers up to `limit` events, and begins none after `deadline`. Fires the `timers` that are due, before and
  /// between the events. Called by the pump, which lets one thread at a time do so.
  func pump(limit: Int, until deadline: UInt64 = .max, timers: Scheduler? = nil) -> PumpResult {
    asThread {
      withCurrent(self) {
        let result =
          timers == nil && basis.clock == nil
          ? mailbox.pump(self, limit: limit, until: deadline)
          : pumpOnClock(limit: limit, until: deadline, timers)
        if result == .ended {
          endGuests()
          finish()
        } else {
          letGoOfAll()
          // Wakes those who wait for a handler that has just run: the next pump may take long to come.
          control()
        }
        return result
      }
    }
  }

  /// Delivers one event, for `ConsumerPump.take`. The handlers have no owner, and their requester is let go of at once,
  /// since nobody knows when the next take comes.
  func takeOne() -> PumpResult {
    asThread {
      withCurrent(self) {
        let result = mailbox.pump(self, limit: 1, until: .max)
        letGoOfReferences()
        if result == .ended { finish() }
        return result
      }
    }
  }

  /// Frees all handlers. After the last event.
  private func endHandlers() {
    for receiver in registry.takeAll() { receiver.end() }
    // Sequentially consistent: pairs with `HandlerCalls.isRunning`.
    calls.running.store(0, ordering: .sequentiallyConsistent)
    // Latest-only receivers that were removed before were not among those of `takeAll`.
    for (receiver, handler) in calls.answer(andEnd: true) { receiver.drop(handler) }
  }

  /// After the mailbox has ended.
  private func finish() {
    // A worker that a loop drives ends with its shared mailbox, too, and may still be subscribed then. In the manner of the
    // close before this, if there was one: calls of a task may be about to begin, which a drain waits for.
    registry.close(whenEmpty: true)
    letGoOfAll()
    endHandlers()
    // With calls left it leaves later: when its contexts find it settled, or with its last reference.
    if !hasCalls { leaveInstruments() }
    ended.open()
  }

  /// Runs `control` between two events: on the calling thread if no other delivers, else by an interrupt.
  private func requestControl() {
    // As the consumer's thread, as in a job: a `deinit` that runs here must not wait for this consumer.
    if pump?.borrow({ asThread { withCurrent(self) { control() } } }) != true {
      mailbox.interrupt()
    }
  }

  /// Releases ended handlers, wakes those who wait for one, and ends a retired thread that has finished.
  /// Runs between two events, after an interrupt.
  func control() {
    for (receiver, handler) in calls.answer(andEnd: false) {
      receiver.drop(handler)
      if hooks.shared != nil, receiver.isConflated { workerReceivers.pointee.remove(receiver) }
    }
    if let member = hooks.member, member.load.isFinished { close(whenEmpty: true) }
  }

  /// Called before the consumer waits.
  func idle() {
    letGoOfAll()
    pump?.driver.ranDry()
    if let upkeep = hooks.upkeep, calls.countWait() { upkeep(.whenDry) }
  }

  /// The owner, retained until the consumer runs dry; nil if it is gone.
  @usableFromInline
  func holdOwner() -> Unmanaged<AnyObject>? {
    if held.pointee.owner == nil {
      held.pointee.owner = owner
      held.pointee.countDown()
    }
    return held.pointee.owner.map { Unmanaged.passUnretained($0) }
  }

  /// Ends the calls for an event, and counts it. `called`: at least one handler was called.
  @inlinable
  @inline(__always)
  func didCall(_ called: Bool, _ counts: HandledCounts) {
    // First: who waits for the handler reads the counts then, unless its requester was let go of, which has left it.
    counts.add(to: called ? HandledCounts.delivered : HandledCounts.skipped)
    calls.didLeaveHandler()
    held.pointee.left &-= 1
    if held.pointee.left == 0 { lookAround() }
  }

  /// Does what is due after some events, between two of them. It does not touch the lists of handlers, which a batch's
  /// loop has looked at: that is for `control`, which an interrupt brings about.
  @usableFromInline
  @inline(never)
  func lookAround() {
    let taken = held.pointee.taken
    if taken % Upkeep.eventsBetween == 0 { hooks.upkeep?(.whileBusy) }
    if held.pointee.owner != nil { lookAtOwner() }
    if taken % Held.events == 0 { letGoOfReferences() }
    held.pointee.countDown()
  }
}
