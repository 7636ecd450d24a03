// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// A latest-only receiver with a mailbox of its own, which is driven by those who ask for the event: for the dispatches
/// of its type a receiver more, and nothing for all others.
///
/// A handler that registers is greeted by two jobs of its consumer, in the last lane. The first reads the newest event;
/// the second, which comes after all that was waiting at that moment, calls the handler for it, unless the handler has been
/// called for another one, which is newer.
/// - A dispatch that began before the registration, and so does not reach the handler, may come here only after the first
///   job. Therefore the first event that comes after somebody has read has all be greeted again who have not been called.
///   This loses no event: each reader leaves the mailbox armed.
/// - An event that came here after the registration began is mostly on its way to the handler, too, and it alone: those
///   before it were waiting when it was read. After a greeting it is passed by when it comes, known by its time. (For two
///   events of one time, of which a dispatch at the same moment did not bring the first to the handler, this is a guess.)
///
/// Synchronization: `state` has a mutex, whose holder drives the consumer and uses `slot`. `newcomers` has another.
/// Lock order: `state`, then what a consumer locks.
final class TypedStickyEvent<E: Eventable>: GreetingEvent, @unchecked Sendable {
  struct Kept {
    let event: E
    let lane: UInt8
    let time: UInt64
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
    /// Written by the consumer's thread. Relaxed: another thread that misses it posts a job too many.
    let wasCalled = Atomic<Bool>(false)
    /// Number and time of its last greeting's event, and whether that may come as any other. The consumer's thread only.
    var number: UInt64 = 0
    var time: UInt64 = 0
    var mayCome = false
    /// How many events had come before its registration.
    let before: UInt64

    init(_ state: HandlerState, _ direct: any RouterCore, after before: UInt64) {
      self.state = state
      self.direct = direct
      self.before = before
    }

    /// What to do with an event that comes as any other. True to call the handler.
    func takes(_ time: UInt64) -> Bool {
      let isGreeted = mayCome && time == self.time
      if isGreeted { mayCome = false }
      wasCalled.store(true, ordering: .relaxed)
      return !isGreeted
    }

    var isNew: Bool { !wasCalled.load(ordering: .relaxed) && !state.isEnded }
  }

  /// Called by a dispatch, for the first event after a read.
  private final class Driver: PumpDriver, @unchecked Sendable {
    /// Written once, before others know the mailbox.
    weak var event: TypedStickyEvent?
    func schedule(_ pump: ConsumerPump) { event?.greetAll() }
  }

  init(_ basis: CentralBasis, _ router: any RouterCore) {
    let slot = UnsafeMutablePointer<Kept?>.allocate(capacity: 1)
    slot.initialize(to: nil)
    self.slot = slot
    let driver = Driver()
    pump = ConsumerPump(driver, batch: 1)
    var hooks = ConsumerHooks(name: "newest")
    hooks.taken = basis.carrier.map { _ in TakenValue() }
    consumer = Consumer(
      basis, routes: RouterGroup([router]), direct: router, strategy: .park, pump: pump,
      hooks: hooks)
    driver.event = self
    let handler = TypedHandler<E>(HandlerState(isTimed: true), conflation: .latestOnly) { event, lane, time, _ in
      slot.pointee = Kept(event: event, lane: lane, time: time)
      return true
    }
    _ = consumer.registry.subscribe(handler, eventTypeActions(E.self))
  }

  deinit {
    slot.deinitialize(count: 1)
    slot.deallocate()
  }

  func setMaximumAge(_ nanoseconds: UInt64?) {
    state.withLock { $0.maximumAge = nanoseconds }
  }

  /// The newest event, if it is not too old. Any thread.
  func newest() -> Kept? {
    let now = consumer.basis.now
    let (kept, old) = state.withLock { state in
      let old = take(&state)
      guard let age = state.maximumAge, let kept = state.kept, !isYounger(than: age, dispatched: kept.time, now: now)
      else { return (state.kept, old) }
      return (nil, old)
    }
    return withExtendedLifetime(old) { kept }
  }

  /// How many events have come.
  private func count() -> UInt64 {
    let (count, old) = state.withLock { state in
      let old = take(&state)
      return (state.count, old)
    }
    return withExtendedLifetime(old) { count }
  }

  /// Forgets the event. Any thread.
  func clear() {
    let old = state.withLock { state in
      let old = take(&state)
      defer { state.kept = nil }
      return (old, state.kept)
    }
    withExtendedLifetime(old) {}
  }

  func end() {
    consumer.close(whenEmpty: false)
    clear()
  }

  /// How many events a reader takes at most, which come while it reads.
  private static var mostTakes: Int { 64 }

  /// Takes the event that waits, if any, which is the newest then, and leaves the mailbox armed. Returns those that were
  /// replaced, which the caller frees without the mutex. Locked.
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
    _ handler: EventHandler, of consumer: Consumer, _ subscribe: (EventHandler) -> Receiver?
  ) -> Receiver? {
    let newcomer = Newcomer(handler.state, consumer.direct, after: count())
    // The receiver's type is E, by its key.
    let inner = unsafeDowncast(handler, to: TypedHandler<E>.self)
    let outer = TypedHandler<E>(inner.state, needsOwner: inner.needsOwner, conflation: inner.conflation) {
      event, lane, time, owner in
      guard newcomer.takes(time) else { return true }
      guard !inner.isPlain else {
        inner.plain(event)
        return true
      }
      return inner.general(event, lane, time, owner)
    }
    guard let receiver = subscribe(outer) else { return nil }
    (newcomer.handler, newcomer.receiver) = (outer, receiver)
    consumer.acceptJobs()
    newcomers.withLock { newcomers in
      if newcomers.all.count >= newcomers.limit {
        newcomers.all.removeAll { !$0.isNew }
        newcomers.limit = max(8, 2 * newcomers.all.count)
      }
      newcomers.all.append(newcomer)
    }
    greet(newcomer)
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
    post(to: newcomer) { [self] in
      guard newcomer.isNew, let kept = newest(), kept.number > newcomer.number else { return }
      post(to: newcomer) { [self] in greet(newcomer, with: kept) }
    }
  }

  private func greet(_ newcomer: Newcomer, with kept: Kept) {
    guard
      newcomer.isNew, kept.number > newcomer.number, let handler = newcomer.handler, let receiver = newcomer.receiver
    else { return }
    (newcomer.number, newcomer.time, newcomer.mayCome) = (kept.number, kept.time, false)
    receiver.consumer._withUnsafeGuaranteedRef { consumer in
      // Not what the job has carried, which is that of the registration.
      consumer.run(with: kept.carried, E.self) { receiver.call(handler, kept.event, kept.lane, kept.time) }
    }
    newcomer.mayCome = kept.number > newcomer.before
    newcomer.wasCalled.store(false, ordering: .relaxed)
  }

  private func post(to newcomer: Newcomer, _ job: @escaping @Sendable () -> Void) {
    dispatch(ConsumerJob(body: job), lane: Lane(.queue, .lowest), through: newcomer.direct)
  }
}

extension Receiver {
  /// Calls one handler, if it has not ended, inside another one of the consumer.
  fileprivate func call<E: Eventable>(_ handler: TypedHandler<E>, _ event: E, _ lane: UInt8, _ time: UInt64) {
    var slot = HandlerList.Slot(handler: Unmanaged.passUnretained(handler), state: handler.state.address)
    withUnsafePointer(to: &slot) { slot in
      let delivery = Delivery(
        receiver: Unmanaged.passUnretained(self), consumer: consumer, handlers: UnsafeRawPointer(slot),
        end: UnsafeRawPointer(slot + 1), generation: .max - 1, lane: lane, reachesAll: false, time: time)
      _ = delivery.call(event)
      consumer._withUnsafeGuaranteedRef { $0.calls.didLeaveHandler() }
    }
  }
}
