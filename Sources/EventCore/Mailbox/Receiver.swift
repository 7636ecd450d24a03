// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// What one consumer does with the events of one type: its handlers in the order of their registration.
///
/// Who touches what:
/// - `list`: the consumer's thread only.
/// - `liveCount`, `timedCount`: under the consumer's registration lock; `generation` is written there.
/// - `additions`: its own mutex, held for an append or a swap.
/// - `key`, `drop`, `subscription`: constant once the receiver is registered.
///
/// How D4 stays exact while handlers come and go: each registration raises `generation`, hands the
/// handler over in `additions`, and only then publishes the new generation in the router. An envelope
/// carries the generation it was addressed under; if the consumer has not applied that one yet, it takes
/// the additions first. A handler is called for an envelope exactly if it was valid at its generation.
final class Receiver: @unchecked Sendable {
  let key: UInt
  /// Ends a payload; nil for types without references.
  let drop: ((UnsafeMutableRawPointer) -> Void)?
  // Not retained: envelopes are delivered by the consumer's own run loop, which keeps it alive.
  private let consumer: Unmanaged<Consumer>
  /// Counts what is handled, in a pool. Retained, since a pool's balancer looks at the counters as long as
  /// it may post to the mailbox.
  private let member: PoolMember?

  /// The handlers, in memory of its own: an array in a class costs retains and access checks per event.
  private struct List {
    var handlers: UnsafeMutablePointer<Unmanaged<EventHandler>>?
    var count = 0
    var appliedGeneration: UInt32 = 0
  }
  private let list: UnsafeMutablePointer<List>

  private let registered = Atomic<UInt32>(0)
  /// How many handlers were ever registered here. Written under the registration lock; a worker of a shared
  /// mailbox reads it for each event.
  var generation: UInt32 {
    // Pairs with the store in `add`: the handler in `additions` before its generation.
    registered.load(ordering: .acquiring)
  }
  var liveCount = 0
  var timedCount = 0
  var subscription: Subscription!

  private let additions = Guarded<[EventHandler]>([])

  init(key: UInt, consumer: Consumer, drop: ((UnsafeMutableRawPointer) -> Void)?) {
    self.key = key
    self.consumer = Unmanaged.passUnretained(consumer)
    member = consumer.member
    self.drop = drop
    list = .allocate(capacity: 1)
    list.initialize(to: List())
  }

  deinit {
    replaceHandlers([])
    list.deallocate()
  }

  /// Hands a handler over to the consumer, to be called from the next generation on. Under the
  /// registration lock, before that generation is published.
  func add(_ handler: EventHandler) {
    precondition(
      generation < .max - 1,
      """
      An event type can have 4,294,967,294 registrations on one thread, and this one has had them: \
      make a new thread.
      """)
    let next = generation + 1
    liveCount += 1
    timedCount += handler.state.isTimed ? 1 : 0
    handler.state.begin(at: next)
    additions.withLock { $0.append(handler) }
    registered.store(next, ordering: .releasing)
  }

  /// Calls every handler that was alive when the event was dispatched. The consumer only.
  ///
  /// - Returns: Whether the payload was moved out.
  func deliver(_ payload: UnsafeMutableRawPointer, _ envelope: UnsafeRawPointer, owned: Bool) -> Bool {
    guard let member else {
      return deliverToHandlers(payload, envelope, owned: owned)
    }
    member.willHandle()
    let moved = deliverToHandlers(payload, envelope, owned: owned)
    if member.didHandle() {
      // The last that a retired thread was promised.
      consumer._withUnsafeGuaranteedRef { $0.close(whenEmpty: true) }
    }
    return moved
  }

  @inline(__always)
  private func deliverToHandlers(
    _ payload: UnsafeMutableRawPointer, _ envelope: UnsafeRawPointer, owned: Bool
  ) -> Bool {
    let generation = envelope.load(fromByteOffset: EnvelopeLayout.generation, as: UInt32.self)
    if generation > list.pointee.appliedGeneration {
      apply()
    }
    let lane = envelope.load(fromByteOffset: EnvelopeLayout.lane, as: UInt8.self)
    let time = envelope.load(fromByteOffset: EnvelopeLayout.time, as: UInt64.self)
    return consumer._withUnsafeGuaranteedRef { consumer in
      var called = false
      var moved = false
      // Nobody else changes the list, and this thread does not while it is in here.
      let count = list.pointee.count
      let handlers = list.pointee.handlers
      for index in 0..<count {
        let isLast = index == count - 1
        handlers.unsafelyUnwrapped[index]._withUnsafeGuaranteedRef { handler in
          consumer.willCall(handler.state)
          guard handler.state.isValid(at: generation) else { return }
          // The payload goes with the last handler, unless other receivers still read it.
          let take = owned && isLast
          if handler.needsOwner {
            guard let owner = consumer.holdOwner() else { return }
            handler.body(payload, lane, time, owner, take)
          } else {
            handler.body(payload, lane, time, nil, take)
          }
          called = true
          moved = take
        }
      }
      consumer.didCall(called)
      return moved
    }
  }

  /// Takes new handlers over and lets removed ones go. The consumer only, never inside a handler.
  func apply() {
    let added = additions.withLock { waiting in
      defer { waiting.removeAll() }
      return waiting
    }
    // One generation for each, in order and without a gap: they come from `add`.
    list.pointee.appliedGeneration += UInt32(added.count)
    let current = (0..<list.pointee.count).map {
      list.pointee.handlers![$0].takeUnretainedValue()
    }
    replaceHandlers((current + added).filter { !$0.state.isEnded })
  }

  /// Ends all handlers and lets them go: the consumer has ended.
  func end() {
    apply()
    for index in 0..<list.pointee.count {
      _ = list.pointee.handlers![index].takeUnretainedValue().state.end()
    }
    replaceHandlers([])
  }

  private func replaceHandlers(_ new: [EventHandler]) {
    let (old, count) = (list.pointee.handlers, list.pointee.count)
    list.pointee.handlers = new.isEmpty ? nil : .allocate(capacity: new.count)
    list.pointee.count = new.count
    for (index, handler) in new.enumerated() {
      (list.pointee.handlers! + index).initialize(to: Unmanaged.passRetained(handler))
    }
    // Last: what a closure holds may end with it, and that is user code.
    for index in 0..<count {
      old![index].release()
    }
    old?.deallocate()
  }
}
