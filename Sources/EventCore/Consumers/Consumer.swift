// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The one that drains a mailbox: what an event thread runs, apart from the `EventThread` object,
/// so that this object can go away while its last handler is running. A consumer with a pump has no
/// thread: "the consumer's thread" is then the one that pumps, one at a time.
///
/// Ten files of this folder name one another in a circle: a consumer owns its mailbox and its receivers,
/// the mailbox (of either core, behind `MailboxCore`) delivers into these receivers, a receiver looks at
/// its consumer's state around each call, and a pump, or a shared mailbox, drives consumers.
///
/// Who touches what:
/// - `held`, `shared`: the consumer's thread only.
/// - `receivers`, `latests`, `isClosed`: under `registration`.
/// - `requests`: its own mutex, held for an append or a swap.
/// - `running`: written by the consumer's thread, read by those who wait for a handler.
/// Lock order: `hasJobHandler`, then `registration`, then a shared mailbox's state, then a router's
/// mutex, then a receiver's `additions`.
@usableFromInline
final class Consumer: @unchecked Sendable {
  let core: EventCentral.Core
  /// Whether `core.barrier()` orders `running`, so that publishing it costs a plain store.
  @usableFromInline let hasBarrier: Bool
  /// The central's router, and the one for events that are posted straight to this consumer.
  let routers: [any RouteRegistry]
  let direct: any RouterCore
  /// Whether `post` has registered its handler.
  let hasJobHandler = Guarded(false)
  private(set) var mailbox: (any MailboxCore)!
  /// Who drives this consumer; nil if it has a thread of its own.
  let pump: ConsumerPump?
  /// What a listener thread does between two events and before a wait now and then; nil for all
  /// others.
  let upkeep: (@Sendable (Upkeep) -> Void)?
  var isListenerThread: Bool { upkeep != nil }
  /// The mailbox that this consumer takes from beside its own, as a worker; nil for most.
  let sharedMailbox: SharedMailbox?
  /// What makes this consumer one of a pool's; nil for most.
  let member: PoolMember?
  /// Its types, as this consumer's receivers. In memory of its own, as `held` is.
  let shared: UnsafeMutablePointer<SharedReceivers>

  let registration = Guarded(())
  var receivers: [UInt: Receiver] = [:]
  /// Each with one handler, and a subscription of its own.
  var latests: [ObjectIdentifier: Receiver] = [:]
  private(set) var isClosed = false

  struct Requests {
    /// Handlers that have ended.
    var dropped: [(receiver: Receiver, handler: HandlerState)] = []
    var waiting: [Latch] = []
    var hasEnded = false
  }
  let requests = Guarded(Requests())

  /// The address of the state of the handler that is being called, or 0.
  @usableFromInline let running = Atomic<UInt>(0)
  /// The consumer's thread, as a number that no other thread has while it runs; 0 before, and
  /// between two pumps. A pump's is also the one that looks after it for a moment.
  private let thread = Atomic<UInt>(0)
  @usableFromInline let delivered = Atomic<UInt64>(0)
  let skipped = Atomic<UInt64>(0)
  /// How often it ran dry. Its thread only; counted for the upkeep alone.
  private var waits: UInt64 = 0
  /// Opened when the consumer has handled or dropped its last event.
  let ended = Latch()

  private weak var owner: AnyObject?
  /// Keeps the owner and others over a run of events whose handlers need them. In memory of its
  /// own, since an access check for each event would cost more than the handler.
  @usableFromInline let held: UnsafeMutablePointer<Held>

  /// - Parameters:
  ///   - routers: Where its handlers are registered.
  ///   - direct: The one of them, or behind one of them, for events that are posted straight to it.
  ///   - pump: Who drives this consumer, if it has no thread of its own.
  ///   - upkeep: What a listener thread does between two events and before a wait now and then.
  ///   - shared: What this consumer is a worker of. Its handlers then get the events that it takes
  ///     from there, and those that `routers` address to it alone; the shared mailbox has a router of its
  ///     own, which is not to be among them. A worker is held until `admit`.
  ///   - member: What counts its events for a pool.
  init(
    core: EventCentral.Core, routers: [any RouteRegistry], direct: any RouterCore,
    strategy: EventWaitStrategy, pump: ConsumerPump? = nil,
    upkeep: (@Sendable (Upkeep) -> Void)? = nil, shared sharedMailbox: SharedMailbox? = nil,
    member: PoolMember? = nil
  ) {
    held = .allocate(capacity: 1)
    held.initialize(to: Held())
    shared = .allocate(capacity: 1)
    shared.initialize(to: SharedReceivers())
    self.sharedMailbox = sharedMailbox
    self.member = member
    self.routers = routers
    self.direct = direct
    self.core = core
    self.pump = pump
    self.upkeep = upkeep
    hasBarrier = core.barrier()
    pump?.attach(self)
    // A worker is held: its thread is complete only when whoever makes it has returned.
    mailbox =
      sharedMailbox?.core.makeWorker(self, strategy) ?? core.makeMailbox(self, strategy, pump)
  }

  deinit {
    // If it never ran.
    for receiver in latests.values { endLatest(receiver) }
    shared.deinitialize(count: 1)
    shared.deallocate()
    held.deinitialize(count: 1)
    held.deallocate()
  }

  /// Lets a worker take what its shared mailbox holds: with the handlers that it has by now also
  /// what waits there. Any thread.
  func admit() {
    registration.withLock { _ in
      for receiver in Array(receivers.values) + Array(latests.values) {
        receiver.firstGeneration = receiver.generation
      }
    }
    mailbox.admit()
  }

  // MARK: Ending, from any thread

  /// Takes the consumer off its routers and closes the mailbox.
  func close(whenEmpty: Bool) {
    registration.withLock { _ in
      guard !isClosed else { return }
      isClosed = true
      for receiver in receivers.values where receiver.liveCount > 0 {
        retract(receiver)
      }
      for receiver in latests.values {
        retract(receiver)
      }
    }
    if whenEmpty {
      mailbox.closeWhenEmpty()
    } else {
      mailbox.close()
      pump?.end()
    }
  }

  /// False once it was closed.
  var isOpen: Bool { registration.withLock { _ in !isClosed } }

  /// Whether the caller is the consumer's own thread.
  var isCurrent: Bool { thread.load(ordering: .relaxed) == currentThreadNumber() }

  var statistics: EventThreadStatistics {
    EventThreadStatistics(
      delivered: delivered.load(ordering: .relaxed),
      skipped: skipped.load(ordering: .relaxed) + mailbox.supersededCount,
      cancelled: mailbox.counts().dropped)
  }

  // MARK: Running, on the consumer's thread

  /// Runs `body`, after which the consumer's thread is started. Until then the calling thread counts as
  /// the consumer's: waiting for the consumer's end would be waiting for itself.
  func beforeStart(_ body: () -> Void) {
    // Relaxed, both: pairs with nothing. Only this thread finds its own number there.
    thread.store(currentThreadNumber(), ordering: .relaxed)
    body()
    thread.store(0, ordering: .relaxed)
  }

  /// Tells whose handlers these are. Before the thread starts.
  func setOwner(_ owner: AnyObject) {
    self.owner = owner
  }

  /// Delivers until the mailbox closes, then frees every handler.
  func run() {
    thread.store(currentThreadNumber(), ordering: .relaxed)
    CurrentConsumer.with(self) {
      mailbox.run(self)
      // A shared mailbox that closed ended the run without having closed this consumer.
      close(whenEmpty: false)
      finish()
    }
    // The number may be given to another thread from now on.
    thread.store(0, ordering: .relaxed)
  }

  /// Delivers up to `limit` events, on behalf of the pump and under its exclusion.
  func pump(limit: Int) -> PumpResult {
    thread.store(currentThreadNumber(), ordering: .relaxed)
    let result = CurrentConsumer.with(self) {
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
    thread.store(0, ordering: .relaxed)
    return result
  }

  /// After the mailbox has ended.
  private func finish() {
    letGoOfAll()
    let receivers = registration.withLock { _ in
      let all = Array(self.receivers.values) + Array(latests.values)
      self.receivers.removeAll()
      for receiver in latests.values { endLatest(receiver) }
      return all
    }
    for receiver in receivers {
      receiver.end()
    }
    running.store(0, ordering: .sequentiallyConsistent)
    let (dropped, waiting) = requests.withLock { requests in
      requests.hasEnded = true
      defer {
        requests.dropped.removeAll()
        requests.waiting.removeAll()
      }
      return (requests.dropped, requests.waiting)
    }
    for latch in waiting {
      latch.open()
    }
    // Those that ended while the mailbox did are not among the receivers any more.
    for (receiver, handler) in dropped {
      receiver.drop(handler)
    }
    ended.open()
  }

  /// Has `control` run between two events: here, if nobody delivers, else by an interrupt.
  func requestControl() {
    if pump?.borrow(controlAsCurrent) != true {
      mailbox.interrupt()
    }
  }

  /// What ends by it is told apart as it would be in a job: it may not wait for this consumer.
  private func controlAsCurrent() {
    thread.store(currentThreadNumber(), ordering: .relaxed)
    CurrentConsumer.with(self) { control() }
    thread.store(0, ordering: .relaxed)
  }

  /// Between two events, after an interrupt.
  func control() {
    let (dropped, waiting) = requests.withLock { requests in
      defer {
        requests.dropped.removeAll()
        requests.waiting.removeAll()
      }
      return (requests.dropped, requests.waiting)
    }
    // First those who wait: letting handlers go runs the end of what they held, which is user code.
    for latch in waiting {
      latch.open()
    }
    for (receiver, handler) in dropped {
      receiver.drop(handler)
      if receiver.rank != nil {
        shared.pointee.remove(receiver)
      }
    }
    if let member, member.load.isFinished {
      close(whenEmpty: true)
    }
  }

  /// Before the consumer waits.
  func idle() {
    letGoOfAll()
    guard let upkeep else { return }
    waits &+= 1
    if waits % Upkeep.waitsBetween == 0 { upkeep(.whenDry) }
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
}

/// When a listener thread does what is to be done now and then.
@usableFromInline
enum Upkeep {
  /// Before some of its waits.
  case whenDry
  /// After some events, for a thread that never comes to wait.
  case whileBusy

  /// How many events: a look at 32 listeners, some 1 µs, for each so many costs an event 0.2 ns.
  @inlinable static var eventsBetween: UInt64 { 4096 }
  /// How many waits: a stream of events may let it run dry after each.
  static let waitsBetween: UInt64 = 16
}
