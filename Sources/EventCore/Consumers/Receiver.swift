// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// What one consumer does with the events of one type: its handlers in the order of their
/// registration.
///
/// Who touches what:
/// - `list`: the consumer's thread only; after its end whoever removes a handler that it did not
///   find (`requests` orders the two).
/// - `liveCount`, `timedCount`, `supersededCount`: under the lock of the consumer's registry;
///   `generation` is written there.
/// - `additions`: its own mutex, held for an append or a swap.
/// - `ended`: counted up by whoever ends a handler, down by the consumer.
/// - `type`, `isLatestOnly`, `route`, `subscription`: constant once the receiver is registered.
///
/// How D4 stays exact while handlers come and go: each registration raises `generation`, hands the
/// handler over in `additions`, and only then publishes the new generation in the router. An
/// envelope carries the generation it was addressed under; if the consumer has not applied that one
/// yet, it takes the additions first. A handler is called for an envelope exactly if it was valid
/// at its generation.
///
/// That is nearly always so for every handler in the list: the envelope's generation is the one
/// that was applied last, and none of them has ended since. Then no handler's own state is read
/// (`reachesAll` and `mayHaveEnded`), which is a chain of two loads less for each call.
///
/// An event comes in by `deliver` (by `Consumer.deliverShared` before it, if a worker took it from its
/// shared mailbox), and where the short way is not open, goes on by `deliverAny`.
@usableFromInline
final class Receiver: @unchecked Sendable {
  let type: EventTypeActions
  /// What it is for, to the other workers of a shared mailbox. The ordinal of a worker's latest-only
  /// receiver tells its events from those of the others for the type, from 1 on; else it is 0.
  let route: PoolRoute
  var key: UInt { type.key }
  /// Ends a payload; nil for types without references.
  var drop: (@Sendable (UnsafeMutableRawPointer) -> Void)? { type.drop }
  /// Whether its one handler wants the newest of the waiting events only.
  let isLatestOnly: Bool
  // Not retained: envelopes are delivered by the consumer's own run loop, which keeps it alive.
  @usableFromInline let consumer: Unmanaged<Consumer>
  /// Counts what is handled, in a pool. Retained, since a pool's balancer looks at the counters as
  /// long as it may post to the mailbox.
  private let member: Unmanaged<PoolMember>?

  private struct Additions {
    var handlers: [EventHandler] = []
    /// Of the handler that came last, taken over or not.
    var generation: UInt32 = 0
  }

  private struct List: ~Copyable {
    var handlers = HandlerList()
    var appliedGeneration: UInt32 = 0
  }
  /// In memory of its own, since a property of a class would be checked at each access.
  private let list: UnsafeMutablePointer<List>
  /// What nearly every event is delivered by. In memory of its own, as `list`, which it follows.
  @usableFromInline let direct: UnsafeMutablePointer<DirectHandlers>

  /// How many handlers have ended that the consumer has not taken out of `list` yet.
  @usableFromInline let ended = Atomic<Int>(0)

  private let registered = Atomic<UInt32>(0)
  /// The generation of the youngest handler that was ever registered here. Written under the
  /// lock of the registry; a worker of a shared mailbox reads it for each event.
  var generation: UInt32 {
    // Pairs with the store in `add`: the handler in `additions` before its generation.
    registered.load(ordering: .acquiring)
  }
  var liveCount = 0
  var timedCount = 0
  /// Of a latest-only receiver that has ended: how many events were superseded until then.
  var supersededCount: UInt64 = 0
  var subscription: Subscription!
  /// Whether its one handler has ended, of a latest-only receiver: another may have its ordinal.
  /// Written under the lock of the registry.
  let isOver = Atomic<Bool>(false)

  private let additions = Guarded(Additions())
  /// Of a worker: what `generation` was when the worker began to take from its shared mailbox. What
  /// waited there is for the handlers that it has brought along. Written before it begins.
  var firstGeneration: UInt32 = 0

  init(_ type: EventTypeActions, consumer: Consumer, isLatestOnly: Bool, ordinal: Int = 0) {
    self.type = type
    self.consumer = Unmanaged.passUnretained(consumer)
    self.isLatestOnly = isLatestOnly
    route = PoolRoute(key: type.key, ordinal: ordinal)
    member = consumer.hooks.member.map { .passRetained($0) }
    list = .allocate(capacity: 1)
    list.initialize(to: List())
    direct = .allocate(capacity: 1)
    direct.initialize(to: DirectHandlers())
  }

  deinit {
    member?.release()
    direct.deallocate()
    list.deinitialize(count: 1)
    list.deallocate()
  }

  /// Hands a handler over to the consumer, to be called from the generation after `last` on, which
  /// is none before the receiver's own. Under the lock of the registry, before that generation is
  /// published.
  func add(_ handler: EventHandler, after last: UInt32) {
    require(
      last < .max - 1,
      """
      An event type can have 4,294,967,294 registrations on one thread or shared pool, and this one \
      has had them: make a new one.
      """)
    let next = last + 1
    liveCount += 1
    timedCount += handler.state.isTimed ? 1 : 0
    handler.state.begin(at: next)
    additions.withLock { additions in
      additions.handlers.append(handler)
      additions.generation = next
    }
    registered.store(next, ordering: .releasing)
  }

  /// Ends a handler of this receiver. True for the first call. Any thread.
  func end(_ handler: HandlerState) -> Bool {
    // Sequentially consistent: with it, `mayHaveEnded` stands for `isValid` in the argument at
    // `HandlerCalls`. First: who finds the handler ended by somebody else relies on it
    // too. One too many costs the consumer a look.
    ended.wrappingAdd(1, ordering: .sequentiallyConsistent)
    guard handler.end() else {
      ended.wrappingSubtract(1, ordering: .sequentiallyConsistent)
      return false
    }
    return true
  }

  /// Whether a look at a handler's own state is due. After `Consumer.willCall`, before each call: a
  /// handler may end while the one before it runs, and by its hand.
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

  /// Calls every handler that was alive when the event was dispatched. The consumer only.
  ///
  /// - Returns: Whether the payload was moved out.
  @inline(__always)
  func deliver(_ payload: UnsafeMutableRawPointer, _ envelope: UnsafeRawPointer, owned: Bool)
    -> Bool
  {
    type.deliverDirectly(self, payload, envelope, owned, nil)
  }

  /// The same for an event of a batch and those that follow it. Moves or ends their payloads.
  @inline(__always)
  func deliver(
    _ payload: UnsafeMutableRawPointer, _ envelope: UnsafeRawPointer, _ batch: EventBatch
  ) {
    _ = type.deliverDirectly(self, payload, envelope, true, batch)
  }

  /// The same for any event: one that was addressed before or after the list became what it is,
  /// handlers that judge, a thread of a pool.
  @usableFromInline
  func deliverAny(
    _ payload: UnsafeMutableRawPointer, _ envelope: UnsafeRawPointer, owned: Bool
  ) -> Bool {
    member == nil
      ? deliverToHandlers(payload, envelope, owned: owned)
      : deliverInPool(payload, envelope, owned: owned)
  }

  /// The same in a pool. Out of line, as everything that most events do not need: inside, it would
  /// cost each of them a larger stack frame and its guard.
  @inline(never)
  private func deliverInPool(
    _ payload: UnsafeMutableRawPointer, _ envelope: UnsafeRawPointer, owned: Bool
  ) -> Bool {
    // The receiver, which its consumer keeps over the event, keeps the member.
    member.unsafelyUnwrapped._withUnsafeGuaranteedRef { member in
      member.willHandle()
      let moved = deliverToHandlers(payload, envelope, owned: owned)
      consumer._withUnsafeGuaranteedRef { consumer in
        // Not in a shared pool, where nothing is promised to a thread.
        let isBalanced = isLatestOnly && route.ordinal == 0
        if member.didHandle(superseded: isBalanced ? consumer.mailbox.supersededCount : nil) {
          // The last that a retired thread was promised.
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
    let generation = envelope.load(fromByteOffset: EnvelopeLayout.generation, as: UInt32.self)
    if generation > list.pointee.appliedGeneration {
      apply()
    }
    return consumer._withUnsafeGuaranteedRef { consumer in
      // Nobody else changes the list, and this thread does not while it is in here.
      let handlers = list.pointee.handlers.first
      let count = list.pointee.handlers.count
      guard count > 0 else {
        consumer.didCall(false)
        return false
      }
      let delivery = Delivery(
        receiver: Unmanaged.passUnretained(self), consumer: self.consumer,
        handlers: UnsafeRawPointer(handlers), end: UnsafeRawPointer(handlers + count),
        generation: generation,
        lane: envelope.load(fromByteOffset: EnvelopeLayout.lane, as: UInt8.self),
        reachesAll: generation == list.pointee.appliedGeneration,
        time: envelope.load(fromByteOffset: EnvelopeLayout.time, as: UInt64.self))
      consumer.didCall(type.deliver(delivery, payload, owned))
      return owned
    }
  }

  /// Takes new handlers over; those that have ended already go. The consumer only, never inside a
  /// handler.
  @inline(never)
  func apply() {
    let (added, generation) = additions.withLock { additions in
      defer { additions.handlers.removeAll() }
      return (additions.handlers, additions.generation)
    }
    list.pointee.appliedGeneration = generation
    for handler in added where !handler.state.isEnded {
      list.pointee.handlers.append(handler)
    }
    direct.pointee = directHandlers()
  }

  /// What the list makes of `direct`. After each change of the list.
  private func directHandlers() -> DirectHandlers {
    guard list.pointee.handlers.isUniform, member == nil else { return DirectHandlers() }
    let first = list.pointee.handlers.first
    return DirectHandlers(
      first: UnsafeRawPointer(first), end: UnsafeRawPointer(first + list.pointee.handlers.count),
      generation: list.pointee.appliedGeneration)
  }

  /// Lets go of a handler that has ended; once for each. As for `list`, never inside a handler.
  func drop(_ handler: HandlerState) {
    if handler.index == nil {
      // Still among the additions, or it ended before it was taken over.
      apply()
    }
    let dropped = list.pointee.handlers.remove(handler)
    direct.pointee = directHandlers()
    // Sequentially consistent, as `end`: what it counted is not in the list any more.
    ended.wrappingSubtract(1, ordering: .sequentiallyConsistent)
    withExtendedLifetime(dropped) {}
  }

  /// Ends all handlers and lets them go: the consumer has ended.
  func end() {
    apply()
    let all = list.pointee.handlers.removeAll()
    direct.pointee = directHandlers()
    for handler in all {
      _ = handler.state.end()
    }
  }
}
