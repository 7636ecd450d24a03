// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// A latest-only receiver with a mailbox of its own, which is driven by those who ask for the event: for the dispatches
/// of its type a receiver more, and nothing for all others.
///
/// A registration of a handler raises the generation of this receiver in the same step. So an event of that generation has found the
/// handler, too, and comes to it as any other; one of an earlier generation is what the handler is greeted with, by a job
/// of its consumer in the last lane, unless it has been called for another event, which is newer.
/// - A dispatch that began before the registration may come here only after that job. Therefore the first event that comes
///   after somebody has read has all be greeted again who have not been called. This loses no event: each reader leaves the
///   mailbox armed, or has taken one, and has all be greeted again itself.
///
/// Synchronization: `state` has a mutex, whose holder drives the consumer and uses `slot`. `newcomers` has another.
/// Lock order: `state`, then what a consumer locks. Greetings are posted with none of them held, since a place may wake its
/// loop by the user's code.
final class TypedStickyEvent<E: Eventable>: GreetingEvent, @unchecked Sendable {
  struct Kept {
    let event: E
    let lane: UInt8
    let time: UInt64
    let generation: UInt32
    /// Counts the events, from 1.
    var number: UInt64 = 0
    /// What the central carried with it.
    var carried: (any EventCarrier.Value)?
  }

  private struct State {
    var kept: Kept?
    var count: UInt64 = 0
    var maximumAge: UInt64?
  }
  private let state = Guarded(State())
  /// Where the handler puts an event.
  private let slot: UnsafeMutablePointer<Kept?>
  private let consumer: Consumer
  private let receiver: Receiver?
  private let pump: ConsumerPump
  private let newcomers = Guarded<(all: [Newcomer], limit: Int)>(([], 8))

  /// A handler that was not called yet, but for a greeting. Nothing of the user's is retained.
  private final class Newcomer: @unchecked Sendable {
    let state: HandlerState
    /// Where its consumer gets jobs.
    let direct: any RouterCore
    /// Written once, before the first job. Read by jobs alone: a dispatch must not release the last reference.
    weak var handler: TypedHandler<E>?
    weak var receiver: Receiver?
    /// That of the events that come as any other.
    var generation: UInt32 = 0
    /// Written by the consumer's thread. Relaxed: another thread that misses it posts a job too many.
    let wasCalled = Atomic<Bool>(false)
    /// Whether a job waits, so that there is one at most while the consumer does not run. Its exchange and the job's, which
    /// pair with each other, order what one thread has put and the other then reads.
    let isDue = Atomic<Bool>(false)
    /// The consumer's thread only: the number of the last greeting's event, and whether a greeting calls the handler.
    var number: UInt64 = 0
    var isGreeted = false

    init(_ state: HandlerState, _ direct: any RouterCore) {
      self.state = state
      self.direct = direct
    }

    /// The handler is called for an event.
    func isCalled() {
      if !isGreeted { wasCalled.store(true, ordering: .relaxed) }
    }

    var isNew: Bool { !wasCalled.load(ordering: .relaxed) && !state.isEnded }
  }

  private final class Driver: PumpDriver, @unchecked Sendable {
    /// Written once, before others know the mailbox.
    weak var event: TypedStickyEvent?
    /// The thread that reads; another one compares it with itself alone.
    let reader = Atomic<UInt>(0)

    /// Called by a dispatch, for the first event after a read. A reader greets by itself, after its unlock.
    func schedule(_ pump: ConsumerPump) {
      if reader.load(ordering: .relaxed) != currentThreadNumber() { event?.greetAll() }
    }
  }
  private let driver = Driver()

  init(_ basis: CentralBasis, _ router: any RouterCore) {
    let slot = UnsafeMutablePointer<Kept?>.allocate(capacity: 1)
    slot.initialize(to: nil)
    self.slot = slot
    pump = ConsumerPump(driver, batch: 1)
    var hooks = ConsumerHooks(name: "newest")
    hooks.taken = basis.carrier.map { _ in TakenValue() }
    consumer = Consumer(
      basis, routes: RouterGroup([router]), direct: router, strategy: .park, pump: pump,
      hooks: hooks)
    // It is never called, since the actions put each event into the slot.
    let handler = TypedHandler<E>(HandlerState(isTimed: true), conflation: .latestOnly) { _, _, _, _ in false }
    receiver = consumer.registry.subscribe(handler, Self.actions(slot))
    driver.event = self
  }

  /// What the receiver does with events: it keeps the generation of each.
  private static func actions(_ slot: UnsafeMutablePointer<Kept?>) -> EventTypeActions {
    let actions = eventTypeActions(E.self)
    // The consumer's thread alone uses it.
    nonisolated(unsafe) let slot = slot
    return EventTypeActions(
      key: actions.key, size: actions.size,
      deliver: { delivery, payload, owned in
        let pointer = payload.assumingMemoryBound(to: E.self)
        slot.pointee = Kept(
          event: owned ? pointer.move() : pointer.pointee, lane: delivery.lane, time: delivery.time,
          generation: delivery.generation)
        delivery.consumer._withUnsafeGuaranteedRef { $0.didCall(true, delivery.counts) }
      },
      deliverDirectly: { receiver, payload, envelope, owned, batch in
        guard let batch else { return receiver.deliverAny(payload, envelope, owned: owned) }
        batch.forEach(from: payload) { if !receiver.deliverAny($0, envelope, owned: true) { actions.drop?($0) } }
        return true
      }, drop: actions.drop)
  }

  deinit {
    slot.deinitialize(count: 1)
    slot.deallocate()
  }

  var subscription: Subscription? { receiver?.subscription }

  func setMaximumAge(_ nanoseconds: UInt64?) {
    state.withLock { $0.maximumAge = nanoseconds }
  }

  /// The newest event, if it is not too old. Any thread.
  func newest() -> Kept? {
    let now = consumer.basis.now
    return read { state in
      guard let age = state.maximumAge, let kept = state.kept, !isYounger(than: age, dispatched: kept.time, now: now)
      else { return state.kept }
      return nil
    }
  }

  /// Forgets the event. Any thread.
  func clear() {
    let old = read { state in
      defer { state.kept = nil }
      return state.kept
    }
    withExtendedLifetime(old) {}
  }

  func end() {
    consumer.close(whenEmpty: false)
    clear()
  }

  /// Runs `body` after the events that wait were taken. What they replace is freed without the mutex.
  private func read<Result>(_ body: (inout State) -> Result) -> Result {
    let (result, old, hasNew) = state.withLock { state in
      let count = state.count
      driver.reader.store(currentThreadNumber(), ordering: .relaxed)
      let old = take(&state)
      driver.reader.store(0, ordering: .relaxed)
      return (body(&state), old, state.count != count)
    }
    // Their dispatches may have found the mailbox not armed.
    if hasNew { greetAll() }
    return withExtendedLifetime(old) { result }
  }

  /// How many events a reader takes at most, which come while it reads.
  private static var mostTakes: Int { 64 }

  /// Takes the event that waits, if any, which is the newest then, and leaves the mailbox armed, unless as many come
  /// meanwhile as it takes at most. Returns those that were replaced. Locked.
  private func take(_ state: inout State) -> [Kept] {
    var old: [Kept] = []
    for _ in 0..<Self.mostTakes {
      _ = pump.run(consumer, limit: 1, until: .max)
      if var new = slot.pointee.take() {
        state.count += 1
        new.number = state.count
        new.carried = consumer.hooks.taken?.value.take()
        if let kept = state.kept { old.append(kept) }
        state.kept = new
      }
      // It is due after an event, and if another one came meanwhile.
      guard pump.isDue else { break }
    }
    return old
  }

  // MARK: Greeting

  func greet(
    _ handler: EventHandler, of registry: HandlerRegistry, _ consumer: Consumer, _ type: EventTypeActions
  ) -> Receiver? {
    let newcomer = Newcomer(handler.state, consumer.direct)
    // The receiver's type is E, by its key.
    let inner = unsafeDowncast(handler, to: TypedHandler<E>.self)
    let outer = TypedHandler<E>(inner.state, needsOwner: inner.needsOwner, conflation: inner.conflation) {
      event, lane, time, owner in
      newcomer.isCalled()
      guard !inner.isPlain else {
        inner.plain(event)
        return true
      }
      return inner.general(event, lane, time, owner)
    }
    // Each event finds the handler with the new generation, or has the one before, by which it greets.
    let receiver = registry.subscribe(outer, type) { publish in
      guard let kept = self.receiver else { return publish(nil) }
      newcomer.generation = self.consumer.registry.raise(kept, with: publish)
    }
    guard let receiver else { return nil }
    (newcomer.handler, newcomer.receiver) = (outer, receiver)
    consumer.acceptJobs()
    newcomers.withLock { newcomers in
      if newcomers.all.count >= newcomers.limit {
        newcomers.all.removeAll { !$0.isNew }
        newcomers.limit = max(8, 2 * newcomers.all.count)
      }
      newcomers.all.append(newcomer)
    }
    // After that: what is kept later greets all that are there.
    if newest() != nil { greet(newcomer) }
    return receiver
  }

  private func greetAll() {
    let all = newcomers.withLock { newcomers in
      newcomers.all.removeAll { !$0.isNew }
      return newcomers.all
    }
    for newcomer in all { greet(newcomer) }
  }

  private func greet(_ newcomer: Newcomer) {
    guard !newcomer.isDue.exchange(true, ordering: .acquiringAndReleasing) else { return }
    let job = ConsumerJob.closure { [self] in
      // Before it reads: what comes after the reading makes another job.
      _ = newcomer.isDue.exchange(false, ordering: .acquiringAndReleasing)
      guard
        newcomer.isNew, let kept = newest(), kept.generation < newcomer.generation, kept.number > newcomer.number,
        let handler = newcomer.handler, let receiver = newcomer.receiver
      else { return }
      newcomer.number = kept.number
      newcomer.isGreeted = true
      receiver.consumer._withUnsafeGuaranteedRef { consumer in
        // Not what the job has carried, which is that of the registration.
        consumer.run(with: kept.carried, E.self) { receiver.call(handler, kept.event, kept.lane, kept.time) }
      }
      newcomer.isGreeted = false
    }
    // In the last lane, so that events of the type that wait come first, and make this superfluous.
    guard dispatch(job, lane: Lane(.queue, .lowest), through: newcomer.direct) == 0 else { return }
    // It was refused: relaxed, since there is no job.
    newcomer.isDue.store(false, ordering: .relaxed)
  }
}

extension Receiver {
  /// Calls one handler, if it has not ended, inside another one of the consumer.
  fileprivate func call<E: Eventable>(_ handler: TypedHandler<E>, _ event: E, _ lane: UInt8, _ time: UInt64) {
    var slot = HandlerList.Slot(handler: Unmanaged.passUnretained(handler), state: handler.state.address)
    withUnsafePointer(to: &slot) { slot in
      let delivery = Delivery(
        receiver: Unmanaged.passUnretained(self), consumer: consumer, handlers: UnsafeRawPointer(slot),
        end: UnsafeRawPointer(slot + 1), generation: .max - 1, lane: lane, reachesAll: false, time: time,
        counts: direct.pointee.counts)
      _ = delivery.call(event)
      consumer._withUnsafeGuaranteedRef { $0.calls.didLeaveHandler() }
    }
  }
}
