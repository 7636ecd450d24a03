// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// One consumer's handlers for the events of one type, in the order of their registration.
///
/// One file, though long: whatever changes `list` is in here.
///
/// Synchronization:
/// - `list`, `direct`: the consumer's thread only; after its end the thread that removes a handler which
///   the consumer did not find (`HandlerCalls.requests` orders the two).
/// - `liveCount`, `timedCount`, `supersededCount`: under the lock of the consumer's registry. `generation`
///   and `isOver` are written under it.
/// - `additions`: has a mutex, locked for an append or a swap.
/// - `ended`: incremented by whoever ends a handler, decremented by the consumer.
/// - `type`, `keys`, `isConflated`, `route`, `subscription`: constant once the receiver is registered.
///
/// How D4 stays exact while handlers come and go: each registration raises `generation`, hands the handler
/// over in `additions`, and only then publishes the new generation in the router. An envelope carries the
/// generation under which it was addressed; if the consumer has not applied that one yet, it takes the
/// additions first. A handler is called exactly if it was valid at the envelope's generation.
///
/// Usually the envelope's generation is the one applied last, and no handler has ended since. Then every
/// handler in the list is valid, and the state of the single handlers is not read (`reachesAll` and
/// `mayHaveEnded`), which saves a chain of two loads for each call.
///
/// Events come in by `deliver`, those of a shared mailbox through `Consumer.deliverShared`. `deliverAny` is
/// the general case, for events that `DirectHandlers` cannot take.
@usableFromInline
final class Receiver: @unchecked Sendable {
  let type: EventTypeActions
  /// Identifies the receiver among those of all threads of a pool. The ordinal is 0, except that a consumer's
  /// conflated receivers for one type have numbers of their own.
  let route: PoolRoute
  var key: UInt { type.key }
  /// Ends a payload; nil for types without references.
  var drop: (@Sendable (UnsafeMutableRawPointer) -> Void)? { type.drop }
  /// Whether its events find a place in a mailbox that is full: the consumer's own jobs, which may not be lost.
  var isUnbounded: Bool { key == eventKey(ConsumerJob.self) }
  /// Whether the receiver has one handler, which wants only the newest of the waiting events, or that of each key.
  let isConflated: Bool
  /// Tells the keys apart, if it wants the newest of each.
  let keys: ConflationKeys?
  // Not retained: events are delivered by the consumer's run loop, which keeps it alive.
  @usableFromInline let consumer: Unmanaged<Consumer>
  /// Counts the events of a pool. Retained, since balancers that may post to the mailbox read the counters.
  private let member: Unmanaged<PoolMember>?
  /// Notes the events in a deterministic central.
  private let trace: TraceName?

  struct Additions {
    var handlers: [EventHandler] = []
    var observed = ObservedGenerations()
    /// The generation of the last handler that was added, taken over or not.
    var generation: UInt32 = 0
  }

  private struct List: ~Copyable {
    var handlers = HandlerList()
    var appliedGeneration: UInt32 = 0
    /// Which events the probe counts.
    var observed = ObservedGenerations()
    /// The generation of an event that is older than the worker which takes it (`deliverOld`).
    var oldGeneration: UInt32?
    /// Where the probe counts them; before the first one, where all others are counted.
    var counts: HandledCounts
    /// Whether the pool, a trace or the instruments have to know of each event.
    var isWatched = false

    init(_ counts: HandledCounts) { self.counts = counts }
  }
  /// A pointer, since a class's property would be checked for exclusive access each time.
  private let list: UnsafeMutablePointer<List>
  /// Derived from `list` after each change of it. Nearly every event is delivered by it.
  @usableFromInline let direct: UnsafeMutablePointer<DirectHandlers>

  /// How many ended handlers the consumer has not removed from `list` yet.
  @usableFromInline let ended = Atomic<Int>(0)

  /// Generations leave a bit for the mark of an event.
  static let lastGeneration = EnvelopeLayout.mark - 2
  let registered = Atomic<UInt32>(0)
  /// The generation of the handler that was registered last. A worker reads it for each event.
  var generation: UInt32 {
    // Acquiring, pairs with the store in `add`: the handler in `additions` before its generation.
    registered.load(ordering: .acquiring)
  }
  var liveCount = 0
  var timedCount = 0
  /// Of an ended conflated receiver: how many events were superseded before its end.
  var supersededCount: UInt64 = 0
  var subscription: Subscription!
  /// Of a conflated receiver: whether it has ended. Another one may have its ordinal then.
  let isOver = Atomic<Bool>(false)

  let additions = Guarded(Additions())
  /// Counts the events of observed generations. Made under the lock of the consumer's registry, when the central is
  /// observed for the first time, and read by the consumer's thread after that.
  let probe = LazyReference<ReceiverProbe>()
  // Not retained: the consumer's. A retain would have the thread that dispatches wait for the cache line.
  private let instruments: Unmanaged<Instruments>
  /// Of a worker: what `generation` was when the worker began to take from its shared mailbox. What waited
  /// there before is for the handlers that it had then. Written before the worker begins.
  var firstGeneration: UInt32 = 0

  init(_ type: EventTypeActions, consumer: Consumer, _ conflation: Conflation, ordinal: Int = 0) {
    self.type = type
    self.consumer = Unmanaged.passUnretained(consumer)
    isConflated = conflation.isConflated
    keys = conflation.keys
    route = PoolRoute(key: type.key, ordinal: ordinal)
    member = consumer.hooks.member.map { .passRetained($0) }
    trace = consumer.hooks.trace
    instruments = .passUnretained(consumer.basis.instruments)
    list = .allocate(capacity: 1)
    let counts = HandledCounts(consumer.calls.counts.memory)
    list.initialize(to: List(counts))
    direct = .allocate(capacity: 1)
    direct.initialize(to: .none(counts))
  }

  deinit {
    member?.release()
    direct.deallocate()
    list.deinitialize(count: 1)
    list.deallocate()
  }

  /// Ends a handler of this receiver. True for the first call. Any thread.
  func end(_ handler: HandlerState) -> Bool {
    // Sequentially consistent: `mayHaveEnded` takes the place of `isValid` in the argument at
    // `HandlerCalls`. Before the end of the handler, since a second caller relies on the count, too. A
    // count that is too high for a moment only makes the consumer check.
    ended.wrappingAdd(1, ordering: .sequentiallyConsistent)
    guard handler.end() else {
      ended.wrappingSubtract(1, ordering: .sequentiallyConsistent)
      return false
    }
    return true
  }

  /// Whether the handler's own state has to be checked. Read after `HandlerCalls.willCall` and before each
  /// call, since a handler may end while the previous one runs.
  @inlinable
  @inline(__always)
  var mayHaveEnded: Bool {
    // Sequentially consistent, as `HandlerState.isValid`: a plain load on x86.
    ended.load(ordering: .sequentiallyConsistent) != 0
  }

  /// As `HandlerState.isValid`, out of line.
  @usableFromInline
  func isValid(_ handler: HandlerState, at generation: UInt32) -> Bool {
    handler.isValid(at: generation)
  }

  /// Calls every handler that was alive when the event was dispatched. The consumer's thread only.
  ///
  /// - Returns: Whether the payload was moved out.
  @inline(__always)
  func deliver(_ payload: UnsafeMutableRawPointer, _ envelope: UnsafeRawPointer, owned: Bool)
    -> Bool
  {
    type.deliverDirectly(self, payload, envelope, owned, nil)
  }

  /// The same for an event of a batch and those that follow it. All their payloads are moved or ended.
  @inline(__always)
  func deliver(
    _ payload: UnsafeMutableRawPointer, _ envelope: UnsafeRawPointer, _ batch: EventBatch
  ) {
    _ = type.deliverDirectly(self, payload, envelope, true, batch)
  }

  /// The same where `direct` does not apply: the event has another generation than the list or is measured, a handler
  /// judges events, or the thread belongs to a pool or to a deterministic central.
  @usableFromInline
  func deliverAny(
    _ payload: UnsafeMutableRawPointer, _ envelope: UnsafeRawPointer, owned: Bool
  ) -> Bool {
    let word = envelope.load(fromByteOffset: EnvelopeLayout.generation, as: UInt32.self)
    let generation = word & ~EnvelopeLayout.mark
    if generation > list.pointee.appliedGeneration {
      apply()
    }
    return word != generation || list.pointee.isWatched
      ? deliverWatched(payload, envelope, owned: owned, isMarked: word != generation)
      : deliverToHandlers(payload, envelope, owned: owned)
  }

  /// The same for an event that is older than this worker, and was addressed under `generation`, before that of its
  /// envelope: by the earlier one it is counted or not.
  @inline(never)
  func deliverOld(
    _ payload: UnsafeMutableRawPointer, _ envelope: UnsafeRawPointer, owned: Bool, generation: UInt32
  ) -> Bool {
    list.pointee.oldGeneration = generation
    defer { list.pointee.oldGeneration = nil }
    return deliver(payload, envelope, owned: owned)
  }

  /// Whether an event is counted by its type.
  @inline(__always)
  private func isObserved(_ generation: UInt32) -> Bool {
    list.pointee.observed.contains(list.pointee.oldGeneration ?? generation)
  }

  @inline(never)
  private func deliverWatched(
    _ payload: UnsafeMutableRawPointer, _ envelope: UnsafeRawPointer, owned: Bool, isMarked: Bool
  ) -> Bool {
    trace?.note(key, envelope, at: consumer._withUnsafeGuaranteedRef { $0.basis.now })
    let limit = instruments._withUnsafeGuaranteedRef { $0.limit.load(ordering: .relaxed) }
    guard isMarked || limit != .max, isObserved(Self.generation(envelope)) else {
      return deliverUnmeasured(payload, envelope, owned: owned)
    }
    return deliverMeasured(payload, envelope, owned: owned, isMarked: isMarked, limit)
  }

  @inline(__always)
  private func deliverUnmeasured(
    _ payload: UnsafeMutableRawPointer, _ envelope: UnsafeRawPointer, owned: Bool
  ) -> Bool {
    member == nil
      ? deliverToHandlers(payload, envelope, owned: owned)
      : deliverInPool(payload, envelope, owned: owned)
  }

  /// The same for an event that is timed, or while somebody wants to know of handlers that take as long as `limit`.
  private func deliverMeasured(
    _ payload: UnsafeMutableRawPointer, _ envelope: UnsafeRawPointer, owned: Bool, isMarked: Bool, _ limit: UInt64
  ) -> Bool {
    consumer._withUnsafeGuaranteedRef { consumer in
      instruments._withUnsafeGuaranteedRef { instruments in
        // Read before the delivery, after which the envelope may be gone.
        let dispatched = envelope.load(fromByteOffset: EnvelopeLayout.time, as: UInt64.self)
        let counts = list.pointee.counts.memory + HandledCounts.delivered
        let before = counts.pointee.load(ordering: .relaxed)
        let thread = instruments.thread
        let begin = thread._withUnsafeGuaranteedRef { instruments.now($0, after: dispatched) }
        let waited = begin &- dispatched
        consumer.probe.willHandle(key, at: begin)
        let signpost: Signposts.Handling? =
          isMarked && instruments.trace != nil
          ? Signposts.beginHandling(key, at: consumer.probe, waited: waited) : nil
        let moved = deliverUnmeasured(payload, envelope, owned: owned)
        Signposts.endHandling(signpost)
        let end = thread._withUnsafeGuaranteedRef { instruments.now($0, after: begin) }
        consumer.probe.didHandle()
        if isMarked, counts.pointee.load(ordering: .relaxed) != before {
          probe.withValue { probe in
            probe.record(waiting: waited, handling: end &- begin)
            thread._withUnsafeGuaranteedRef {
              instruments.trace(probe, from: begin, waited: waited, handled: end &- begin, $0)
            }
          }
        }
        if end &- begin >= limit { instruments.report(consumer, key, took: end &- begin) }
        return moved
      }
    }
  }

  /// The same in a pool. Out of line, since it would give every event a larger stack frame and its guard.
  @inline(never)
  private func deliverInPool(
    _ payload: UnsafeMutableRawPointer, _ envelope: UnsafeRawPointer, owned: Bool
  ) -> Bool {
    // The receiver, which the consumer keeps during the event, retains the member.
    member.unsafelyUnwrapped._withUnsafeGuaranteedRef { member in
      member.willHandle()
      // No balancer promises a job: that is done as it begins, or what waits would seem less. A retired thread counts
      // only what it was promised before.
      let isPromised = !isUnbounded || member.load.promise(1)
      let moved = deliverToHandlers(payload, envelope, owned: owned)
      consumer._withUnsafeGuaranteedRef { consumer in
        if member.didHandle(isPromised: isPromised) {
          // That was the last event that a retired thread was promised.
          consumer.close(whenEmpty: true)
        }
      }
      return moved
    }
  }

  @inline(__always)
  private func deliverToHandlers(
    _ payload: UnsafeMutableRawPointer, _ envelope: UnsafeRawPointer, owned: Bool
  ) -> Bool {
    let generation = Self.generation(envelope)
    return consumer._withUnsafeGuaranteedRef { consumer in
      let counts =
        isObserved(generation) ? list.pointee.counts : HandledCounts(consumer.calls.counts.memory)
      // Only this thread changes the list, and not while it delivers.
      let handlers = list.pointee.handlers.first
      let count = list.pointee.handlers.count
      guard count > 0 else {
        consumer.didCall(false, counts)
        return false
      }
      let delivery = Delivery(
        receiver: Unmanaged.passUnretained(self), consumer: self.consumer,
        handlers: UnsafeRawPointer(handlers), end: UnsafeRawPointer(handlers + count),
        generation: generation,
        lane: envelope.load(fromByteOffset: EnvelopeLayout.lane, as: UInt8.self),
        reachesAll: generation == list.pointee.appliedGeneration,
        time: envelope.load(fromByteOffset: EnvelopeLayout.time, as: UInt64.self), counts: counts)
      type.deliver(delivery, payload, owned)
      return owned
    }
  }

  /// The generation under which an event was addressed.
  @inline(__always)
  private static func generation(_ envelope: UnsafeRawPointer) -> UInt32 {
    envelope.load(fromByteOffset: EnvelopeLayout.generation, as: UInt32.self) & ~EnvelopeLayout.mark
  }

  /// Moves the additions to the list, except ended ones. The consumer's thread only, outside of handlers.
  @inline(never)
  func apply() {
    let (added, generation, observed) = additions.withLock { additions in
      defer { additions.handlers.removeAll() }
      return (additions.handlers, additions.generation, additions.observed)
    }
    list.pointee.appliedGeneration = generation
    list.pointee.observed = observed
    probe.withValue { list.pointee.counts = HandledCounts($0.counts.memory) }
    list.pointee.isWatched =
      member != nil || trace != nil || !observed.isEmpty && instruments._withUnsafeGuaranteedRef { $0.isWatching }
    for handler in added where !handler.state.isEnded {
      list.pointee.handlers.append(handler)
    }
    direct.pointee = directHandlers()
  }

  /// The value of `direct` for the list as it is now.
  private func directHandlers() -> DirectHandlers {
    let counts =
      list.pointee.observed.isOn
      ? list.pointee.counts : consumer._withUnsafeGuaranteedRef { HandledCounts($0.calls.counts.memory) }
    guard list.pointee.handlers.isUniform, !list.pointee.isWatched else { return .none(counts) }
    let first = list.pointee.handlers.first
    return DirectHandlers(
      first: UnsafeRawPointer(first), end: UnsafeRawPointer(first + list.pointee.handlers.count),
      generation: list.pointee.appliedGeneration, counts)
  }

  /// Releases an ended handler, once. On the threads that use `list`, outside of handlers.
  func drop(_ handler: HandlerState) {
    if handler.index == nil {
      // It may be among the additions.
      apply()
    }
    let dropped = list.pointee.handlers.remove(handler)
    direct.pointee = directHandlers()
    // Sequentially consistent, as in `end`, which counted it. After the removal from the list.
    ended.wrappingSubtract(1, ordering: .sequentiallyConsistent)
    withExtendedLifetime(dropped) {}
  }

  /// Ends and releases all handlers, after the consumer has ended.
  func end() {
    apply()
    let all = list.pointee.handlers.removeAll()
    direct.pointee = directHandlers()
    for handler in all {
      _ = handler.state.end()
    }
  }
}
