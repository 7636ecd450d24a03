// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The one that drains a mailbox: what an event thread runs, apart from the `EventThread` object,
/// so that this object can go away while its last handler is running. A consumer with a pump has no
/// thread: "the consumer's thread" is then the one that pumps, one at a time.
///
/// It has three parts: its handlers (`HandlerRegistry`), their calls and who waits for the end of one
/// (`HandlerCalls`), and what a pool or a listener thread adds (`ConsumerHooks`).
///
/// Ten files of this folder name one another in a circle: a consumer owns its mailbox and its receivers,
/// the mailbox (of either core, behind `MailboxCore`) delivers into these receivers, a receiver looks at
/// its consumer's state around each call, and a pump, or a shared mailbox, drives consumers.
///
/// Who touches what, beside what the parts say themselves:
/// - `held`, `workerReceivers`: the consumer's thread only.
/// - `thread`: written by the consumer's thread, read by anybody.
/// - `registry` and `mailbox`: set once by the initialiser, which needs `self` for them; constant from then on.
/// Lock order: `hasJobHandler`, then the registry's state, then a shared mailbox's state, then a router's
/// mutex, then a receiver's `additions`.
@usableFromInline
final class Consumer: @unchecked Sendable {
  let core: EventCentral.Core
  @usableFromInline let calls: HandlerCalls
  private(set) var registry: HandlerRegistry!
  let hooks: ConsumerHooks
  private(set) var mailbox: (any MailboxCore)!
  /// Who drives this consumer; nil if it has a thread of its own.
  let pump: ConsumerPump?
  /// For events that are posted straight to this consumer.
  let direct: any RouterCore
  /// Whether `post` has registered its handler.
  private let hasJobHandler = Guarded(false)
  /// The consumer's thread, as a number that no other thread has while it runs; 0 before, and
  /// between two pumps. A pump's is also the one that looks after it for a moment.
  private let thread = Atomic<UInt>(0)
  /// Opened when the consumer has handled or dropped its last event.
  let ended = Latch()

  private weak var owner: AnyObject?
  /// Keeps the owner and others over a run of events whose handlers need them. In memory of its
  /// own, since an access check for each event would cost more than the handler.
  @usableFromInline let held: UnsafeMutablePointer<Held>
  /// Of a worker: what its shared mailbox's entries are here. In memory of its own, as `held` is.
  let workerReceivers: UnsafeMutablePointer<SharedReceivers>

  /// The consumer whose handlers the calling thread is running, if any: set for as long as a consumer
  /// delivers on a thread, or lets go of ended handlers there, not for each event.
  static let current = ThreadLocal<Consumer>()

  /// - Parameters:
  ///   - routes: Where its handlers are registered.
  ///   - direct: The one of them, or behind one of them, for events that are posted straight to it.
  ///   - pump: Who drives this consumer, if it has no thread of its own.
  ///   - hooks: Of a worker: its handlers get the events that it takes from the shared mailbox, and
  ///     those that `routes` address to it alone; the shared mailbox has a router of its own, which is
  ///     not to be among them. A worker is held until `admit`.
  init(
    core: EventCentral.Core, routes: any RouteRegistry, direct: any RouterCore,
    strategy: EventWaitStrategy, pump: ConsumerPump? = nil, hooks: ConsumerHooks = ConsumerHooks()
  ) {
    held = .allocate(capacity: 1)
    held.initialize(to: Held())
    workerReceivers = .allocate(capacity: 1)
    workerReceivers.initialize(to: SharedReceivers())
    self.hooks = hooks
    self.direct = direct
    self.core = core
    self.pump = pump
    calls = HandlerCalls(hasBarrier: core.parts.barrier())
    pump?.attach(self)
    // A worker is held: its thread is complete only when whoever makes it has returned.
    mailbox =
      hooks.shared?.core.makeWorker(self, strategy)
      ?? core.parts.makeMailbox(self, strategy, pump)
    registry = HandlerRegistry(self, routes)
  }

  deinit {
    // If it never ran.
    _ = registry.takeAll()
    workerReceivers.deinitialize(count: 1)
    workerReceivers.deallocate()
    held.deinitialize(count: 1)
    held.deallocate()
  }

  /// Lets a worker take what its shared mailbox holds: with the handlers that it has by now also
  /// what waits there. Any thread.
  func admit() {
    registry.admit()
    mailbox.admit()
  }

  /// Ends a handler. True if it was alive.
  func remove(_ handler: HandlerState, of receiver: Receiver) -> Bool {
    guard receiver.end(handler) else { return false }
    let hasEndedLatest = registry.remove(handler, of: receiver)
    // The consumer frees the closure between two events.
    if calls.requestDrop(of: handler, receiver) {
      requestControl()
    } else if hasEndedLatest {
      // The consumer has ended without having found it among its own: nobody else knows it.
      receiver.drop(handler)
    }
    return true
  }

  /// Has a closure run as one of the consumer's events: in the order of the calls, behind what is
  /// queued with normal priority. False if the consumer is closed, and then the closure is gone.
  func post(_ body: @escaping @Sendable () -> Void) -> Bool {
    // Held over the registration, so that whoever comes second finds the handler.
    hasJobHandler.withLock { hasHandler in
      guard !hasHandler else { return }
      hasHandler = true
      _ = registry.add(
        TypedHandler<ConsumerJob>(plain: { $0.body() }), eventTypeActions(ConsumerJob.self))
    }
    return dispatch(ConsumerJob(body: body), lane: Lane(.queue, .normal), through: direct) != 0
  }

  // MARK: Ending, from any thread

  /// Takes the consumer off its routers and closes the mailbox.
  func close(whenEmpty: Bool) {
    registry.close()
    if whenEmpty {
      mailbox.closeWhenEmpty()
    } else {
      mailbox.close()
      pump?.end()
    }
  }

  /// False once it was closed.
  var isOpen: Bool { registry.isOpen }

  /// Whether the caller is the consumer's own thread.
  var isCurrent: Bool { thread.load(ordering: .relaxed) == currentThreadNumber() }

  var statistics: EventThreadStatistics {
    EventThreadStatistics(
      delivered: calls.delivered.load(ordering: .relaxed),
      skipped: calls.skipped.load(ordering: .relaxed) + mailbox.supersededCount,
      cancelled: mailbox.counts().dropped)
  }

  // MARK: Running, on the consumer's thread

  /// Runs `body` with the calling thread as the consumer's. Before the start of the consumer's thread
  /// too: waiting for the consumer's end would be waiting for itself.
  func asThread<Result>(_ body: () -> Result) -> Result {
    // Relaxed, both: pairs with nothing. Only this thread finds its own number there, which may be
    // another thread's afterwards.
    thread.store(currentThreadNumber(), ordering: .relaxed)
    defer { thread.store(0, ordering: .relaxed) }
    return body()
  }

  /// Tells whose handlers these are. Before the thread starts.
  func setOwner(_ owner: AnyObject) {
    self.owner = owner
  }

  /// Delivers until the mailbox closes, then frees every handler.
  func run() {
    asThread {
      Self.current.with(self) {
        mailbox.run(self)
        // A shared mailbox that closed ended the run without having closed this consumer.
        close(whenEmpty: false)
        finish()
      }
    }
  }

  /// Delivers up to `limit` events, on behalf of the pump and under its exclusion.
  func pump(limit: Int) -> PumpResult {
    asThread {
      Self.current.with(self) {
        let result = mailbox.pump(self, limit: limit)
        if result == .ended {
          finish()
        } else {
          letGoOfAll()
          // Those who wait for a handler that ran just now: the next pump may be long in coming.
          control()
        }
        return result
      }
    }
  }

  /// After the mailbox has ended.
  private func finish() {
    letGoOfAll()
    for receiver in registry.takeAll() {
      receiver.end()
    }
    calls.running.store(0, ordering: .sequentiallyConsistent)
    // Those that ended while the mailbox did are not among the receivers any more.
    for (receiver, handler) in calls.answer(andEnd: true) {
      receiver.drop(handler)
    }
    ended.open()
  }

  /// Has `control` run between two events: here, if nobody delivers, else by an interrupt.
  private func requestControl() {
    // What ends by it is told apart as it would be in a job: it may not wait for this consumer.
    if pump?.borrow({ asThread { Self.current.with(self) { control() } } }) != true {
      mailbox.interrupt()
    }
  }

  /// Between two events, after an interrupt.
  func control() {
    for (receiver, handler) in calls.answer(andEnd: false) {
      receiver.drop(handler)
      if receiver.route.ordinal != 0 {
        workerReceivers.pointee.remove(receiver)
      }
    }
    if let member = hooks.member, member.load.isFinished {
      close(whenEmpty: true)
    }
  }

  /// Before the consumer waits.
  func idle() {
    letGoOfAll()
    if let upkeep = hooks.upkeep, calls.countWait() { upkeep(.whenDry) }
  }

  /// The owner, kept until the consumer runs dry; nil if it is gone.
  @usableFromInline
  func holdOwner() -> Unmanaged<AnyObject>? {
    if held.pointee.owner == nil {
      held.pointee.owner = owner
      held.pointee.hasOwner = held.pointee.owner != nil
    }
    return held.pointee.owner.map { Unmanaged.passUnretained($0) }
  }

  @inline(__always)
  func didCall(_ called: Bool) {
    let count = calls.count(called)
    if count % Upkeep.eventsBetween == 0 {
      hooks.upkeep?(.whileBusy)
    }
    if held.pointee.hasOwner { lookAtOwner() }
    if count % Held.events == 0 { letGoOfReferences() }
  }

  /// The same, where the type of the event is known.
  @inlinable
  @inline(__always)
  func didCallDirectly(_ called: Bool) {
    // Both as in `HandlerCalls.count`.
    calls.running.store(0, ordering: .releasing)
    let count = calls.delivered.load(ordering: .relaxed) &+ 1
    // Now and then the rest of the work is done, in there: `Upkeep.eventsBetween` is a multiple of
    // `Held.events`.
    guard called && count % Held.events != 0 && !held.pointee.hasOwner else {
      didCallAny(called)
      return
    }
    calls.delivered.store(count, ordering: .relaxed)
  }

  @usableFromInline
  @inline(never)
  func didCallAny(_ called: Bool) {
    didCall(called)
  }
}

/// A closure that travels as an event, to run where a consumer's handlers run.
private struct ConsumerJob: Eventable {
  let body: @Sendable () -> Void
}
