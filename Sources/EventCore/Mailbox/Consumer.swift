// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The one that drains a mailbox: what an event thread runs, apart from the `EventThread` object, so
/// that this object can go away while its last handler is running. A consumer with a pump has no thread:
/// "the consumer's thread" is then the one that pumps, one at a time.
///
/// Who touches what:
/// - `held`, `shared`: the consumer's thread only.
/// - `receivers`, `latests`, `isClosed`: under `registration`.
/// - `requests`: its own mutex, held for an append or a swap.
/// - `running`: written by the consumer's thread, read by those who wait for a handler.
/// Lock order: `hasJobHandler`, then `registration`, then a shared mailbox's state, then a router's mutex,
/// then a receiver's `additions`.
@usableFromInline
final class Consumer: @unchecked Sendable {
  private let core: EventCentral.Core
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
  /// What a listener thread does between two events now and then, and before it sleeps; nil for all others.
  private let upkeep: (@Sendable (Upkeep) -> Void)?
  var isListenerThread: Bool { upkeep != nil }
  /// The mailbox that this consumer takes from beside its own, as a worker; nil for most.
  private let sharedMailbox: SharedMailbox?
  /// What makes this consumer one of a pool's; nil for most.
  let member: PoolMember?
  /// Its types, as this consumer's receivers. In memory of its own, as `held` is.
  let shared: UnsafeMutablePointer<SharedReceivers>

  private let registration = Guarded(())
  private var receivers: [UInt: Receiver] = [:]
  /// Each with one handler, and a subscription of its own.
  private var latests: [ObjectIdentifier: Receiver] = [:]
  private var isClosed = false

  private struct Requests {
    /// Handlers that have ended.
    var dropped: [(receiver: Receiver, handler: HandlerState)] = []
    var waiting: [Latch] = []
    var hasEnded = false
  }
  private let requests = Guarded(Requests())

  /// The address of the state of the handler that is being called, or 0.
  @usableFromInline let running = Atomic<UInt>(0)
  /// The consumer's thread, as a number that no other thread has while it runs; 0 before, and between
  /// two pumps.
  private let thread = Atomic<UInt>(0)
  @usableFromInline let delivered = Atomic<UInt64>(0)
  private let skipped = Atomic<UInt64>(0)
  /// Opened when the consumer has handled or dropped its last event.
  let ended = Latch()

  private weak var owner: EventThread?
  /// Keeps the owner and others over a run of events whose handlers need them. In memory of its own, since
  /// an access check for each event would cost more than the handler.
  @usableFromInline let held: UnsafeMutablePointer<Held>

  /// - Parameters:
  ///   - routers: Where its handlers are registered.
  ///   - direct: The one of them, or behind one of them, for events that are posted straight to it.
  ///   - pump: Who drives this consumer, if it has no thread of its own.
  ///   - upkeep: What a listener thread does between two events now and then, and before it sleeps.
  ///   - shared: What this consumer is a worker of. Its handlers then get the events that it takes from
  ///     there, and those that `routers` address to it alone; the shared mailbox has a router of its own,
  ///     which is not to be among them.
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
    mailbox =
      sharedMailbox?.core.makeWorker(self, strategy) ?? core.makeMailbox(self, strategy, pump)
  }

  deinit {
    // If it never ran.
    latests.values.forEach(endLatest)
    shared.deinitialize(count: 1)
    shared.deallocate()
    held.deinitialize(count: 1)
    held.deallocate()
  }

  // MARK: Registration, from any thread

  /// Registers a handler for events of one type. False if the consumer is closed.
  func add(_ handler: EventHandler, _ type: EventTypeActions) -> Receiver? {
    registration.withLock { _ in
      guard !isClosed else { return nil }
      let receiver =
        handler.isLatestOnly ? makeLatest(type) : receivers[type.key] ?? makeReceiver(type)
      receiver.add(handler)
      publish(receiver)
      return receiver
    }
  }

  /// Tells the routers the receiver's generation, and whether the clock is needed. Registration locked.
  private func publish(_ receiver: Receiver) {
    for router in routers {
      router.subscribe(
        receiver.key, receiver.subscription, generation: receiver.generation,
        timed: receiver.timedCount > 0)
    }
    sharedMailbox?.join(receiver, isTimed: receiver.timedCount > 0)
  }

  /// Takes the receiver off the routers. Registration locked.
  private func retract(_ receiver: Receiver) {
    for router in routers {
      router.unsubscribe(receiver.key, receiver.subscription)
    }
    sharedMailbox?.leave(receiver)
  }

  /// What this worker does with the events of an entry of its shared mailbox, if it has a handler for it.
  func receiver(for entry: SharedMailbox.Entry) -> Receiver? {
    registration.withLock { _ in
      guard let rank = entry.rank else { return receivers[entry.key] }
      return latests.values.first { $0.key == entry.key && $0.rank == rank }
    }
  }

  /// Before the first subscription to a type. Registration locked.
  private func expect(_ type: EventTypeActions) {
    for router in routers {
      router.expect(type.key, drop: type.drop)
    }
  }

  private func makeReceiver(_ type: EventTypeActions) -> Receiver {
    expect(type)
    let receiver = Receiver(type, consumer: self, isLatestOnly: false)
    receiver.subscription = mailbox.addSubscription(receiver)
    receivers[type.key] = receiver
    return receiver
  }

  private func makeLatest(_ type: EventTypeActions) -> Receiver {
    expect(type)
    let receiver = Receiver(
      type, consumer: self, isLatestOnly: true,
      rank: sharedMailbox == nil ? nil : freeRank(type.key))
    receiver.subscription = mailbox.addLatestSubscription(receiver)
    latests[ObjectIdentifier(receiver)] = receiver
    return receiver
  }

  /// The first rank that no latest-only receiver of a type has. Registration locked.
  private func freeRank(_ key: UInt) -> Int {
    let used = Set(latests.values.lazy.filter { $0.key == key }.map(\.rank))
    return (0...).first { !used.contains($0) }!
  }

  /// Lets go of a latest-only receiver, which no router has any more. Registration locked; once.
  private func endLatest(_ receiver: Receiver) {
    guard latests.removeValue(forKey: ObjectIdentifier(receiver)) != nil else { return }
    receiver.supersededCount = mailbox.supersededCount(of: receiver.subscription)
    mailbox.removeLatestSubscription(receiver.subscription)
  }

  /// How many events of a latest-only receiver were superseded while its handler was alive. 0 for others.
  func supersededCount(_ receiver: Receiver) -> UInt64 {
    registration.withLock { _ in
      latests[ObjectIdentifier(receiver)] == nil
        ? receiver.supersededCount : mailbox.supersededCount(of: receiver.subscription)
    }
  }

  /// Ends a handler. True if it was alive.
  func remove(_ handler: HandlerState, of receiver: Receiver) -> Bool {
    guard receiver.end(handler) else { return false }
    registration.withLock { _ in
      receiver.liveCount -= 1
      receiver.timedCount -= handler.isTimed ? 1 : 0
      guard !isClosed else {
        endLatest(receiver)
        return
      }
      if receiver.liveCount == 0 {
        retract(receiver)
        endLatest(receiver)
      } else if handler.isTimed, receiver.timedCount == 0 {
        // Nobody is left who asks for the clock (D8).
        publish(receiver)
      }
    }
    // The consumer frees the closure between two events.
    if requests.withLock({ requests in
      if !requests.hasEnded { requests.dropped.append((receiver, handler)) }
      return !requests.hasEnded
    }) {
      requestControl()
    }
    return true
  }

  /// Returns when no call of a handler that has been ended is running.
  ///
  /// The consumer publishes a handler in `running` before it reads `validFrom`; the caller has written
  /// `validFrom` before it reads `running`. With a full fence on both sides at least one sees the
  /// other; the consumer's is the core's `barrier`, paid for here and not for each event.
  func waitUntilDone(_ handler: HandlerState) {
    let address = handler.address
    if isCurrent {
      require(
        running.load(ordering: .relaxed) != address,
        """
        removeAndWait() waits until its handler is not running, and was called inside that handler, \
        where it would wait for itself: call remove().
        """)
      return
    }
    if hasBarrier {
      _ = core.barrier()
    }
    if running.load(ordering: .sequentiallyConsistent) == address {
      waitForControl(whileRunning: address)
    }
  }

  /// Returns when the consumer has been between two events, has ended, or runs another handler.
  private func waitForControl(whileRunning address: UInt) {
    let latch = Latch()
    let waits = requests.withLock { requests in
      if !requests.hasEnded { requests.waiting.append(latch) }
      return !requests.hasEnded
    }
    // A pump looks at the requests when it leaves: it sees this one if it was in the handler until now,
    // and otherwise nobody may come by for a long time.
    guard waits, running.load(ordering: .sequentiallyConsistent) == address else { return }
    mailbox.interrupt()
    latch.wait()
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

  /// Whether the caller is the consumer's own thread.
  var isCurrent: Bool { thread.load(ordering: .relaxed) == currentThreadNumber() }

  var statistics: EventThreadStatistics {
    EventThreadStatistics(
      delivered: delivered.load(ordering: .relaxed),
      skipped: skipped.load(ordering: .relaxed) + mailbox.supersededCount,
      cancelled: mailbox.counts().dropped)
  }

  // MARK: Running, on the consumer's thread

  /// Tells whose handlers these are. Before the thread starts.
  func setOwner(_ owner: EventThread) {
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
      latests.values.forEach(endLatest)
      return all
    }
    for receiver in receivers {
      receiver.end()
    }
    running.store(0, ordering: .sequentiallyConsistent)
    let waiting = requests.withLock { requests in
      requests.hasEnded = true
      requests.dropped.removeAll()
      defer { requests.waiting.removeAll() }
      return requests.waiting
    }
    for latch in waiting {
      latch.open()
    }
    ended.open()
  }

  /// Has `control` run between two events: here, if nobody delivers, else by an interrupt.
  private func requestControl() {
    if pump?.borrow(control) != true {
      mailbox.interrupt()
    }
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
    upkeep?(.beforeSleep)
  }

  @inlinable
  @inline(__always)
  func willCall(_ handler: HandlerState) {
    let address = handler.address
    if hasBarrier {
      // Whoever reads it has made the barrier on this thread. Releasing: what the handler before it
      // did, before a waiter sees that it is another's turn.
      running.store(address, ordering: .releasing)
    } else {
      running.store(address, ordering: .sequentiallyConsistent)
    }
  }

  /// A handler has returned, and what follows is not part of it. Inside its call.
  func didLeaveHandler() {
    // Releasing: as in `didCall`.
    running.store(0, ordering: .releasing)
  }

  @inline(__always)
  func didCall(_ called: Bool) {
    // Releasing: what the handler did, before a waiter sees it done.
    running.store(0, ordering: .releasing)
    // Only this thread writes the counters.
    let count: UInt64
    if called {
      count = delivered.load(ordering: .relaxed) &+ 1
      delivered.store(count, ordering: .relaxed)
    } else {
      count = skipped.load(ordering: .relaxed) &+ 1
      skipped.store(count, ordering: .relaxed)
    }
    if count % Upkeep.eventsBetween == 0 {
      upkeep?(.whileBusy)
    }
    if held.pointee.isAny {
      lookAtHeld()
    }
  }

  /// The same, where the type of the event is known.
  @inlinable
  @inline(__always)
  func didCallDirectly(_ called: Bool) {
    // Both as in `didCall`.
    running.store(0, ordering: .releasing)
    let count = delivered.load(ordering: .relaxed) &+ 1
    // Every so many events, `Upkeep.eventsBetween`; the rest of the work is in there.
    guard called && count % 4096 != 0 && !held.pointee.isAny else {
      didCallAny(called)
      return
    }
    delivered.store(count, ordering: .relaxed)
  }

  @usableFromInline
  @inline(never)
  func didCallAny(_ called: Bool) {
    didCall(called)
  }

  /// The owner, kept until the consumer runs dry; nil if it is gone.
  @usableFromInline
  func holdOwner() -> Unmanaged<EventThread>? {
    if held.pointee.owner == nil {
      held.pointee.owner = owner
      held.pointee.isAny = true
    }
    return held.pointee.owner.map { Unmanaged.passUnretained($0) }
  }
}

/// When a listener thread does what is to be done now and then.
enum Upkeep {
  case beforeSleep
  /// After some events, for a thread that never comes to sleep.
  case whileBusy

  /// How many events: a look at 32 listeners, some 1 µs, for each so many costs an event 0.2 ns.
  static let eventsBetween: UInt64 = 4096
}
