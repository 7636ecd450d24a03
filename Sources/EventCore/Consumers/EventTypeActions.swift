// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What only generic code can do with the events of one type, as closures over raw pointers. They are made
/// at each registration, where the type is known.
@usableFromInline
struct EventTypeActions: Sendable {
  /// Calls the handlers for one event, and counts it. With `owned` the payload is moved out; otherwise it is only
  /// read, since other receivers share it.
  @usableFromInline
  typealias Deliver =
    @Sendable (
      _ delivery: Delivery, _ payload: UnsafeMutableRawPointer, _ owned: Bool
    ) -> Void

  /// Calls the handlers for the event in an envelope, by `DirectHandlers` if possible, and with `batch`
  /// also for the events that follow. Returns whether the payload was moved out; those of a batch are all
  /// moved or ended.
  @usableFromInline
  typealias DeliverDirectly =
    @Sendable (
      _ receiver: Receiver, _ payload: UnsafeMutableRawPointer, _ envelope: UnsafeRawPointer,
      _ owned: Bool, _ batch: EventBatch?
    ) -> Bool

  let key: UInt
  /// That of an event in bytes.
  let size: Int
  let deliver: Deliver
  let deliverDirectly: DeliverDirectly
  /// Ends a payload that nobody took; nil for types that need no ending.
  let drop: (@Sendable (UnsafeMutableRawPointer) -> Void)?

  @usableFromInline
  init(
    key: UInt, size: Int, deliver: @escaping Deliver, deliverDirectly: @escaping DeliverDirectly,
    drop: (@Sendable (UnsafeMutableRawPointer) -> Void)?
  ) {
    self.key = key
    self.size = size
    self.deliver = deliver
    self.deliverDirectly = deliverDirectly
    self.drop = drop
  }
}

@inlinable
func eventTypeActions<E: Eventable>(_ type: E.Type) -> EventTypeActions {
  let deliver: EventTypeActions.Deliver = { delivery, payload, owned in
    let pointer = payload.assumingMemoryBound(to: E.self)
    // All handlers borrow this one value.
    let event = owned ? pointer.move() : pointer.pointee
    let called = delivery.call(event)
    delivery.consumer._withUnsafeGuaranteedRef { $0.didCall(called, delivery.counts) }
    // The event ends here, outside of the handlers.
  }
  let deliverDirectly: EventTypeActions.DeliverDirectly = {
    receiver, payload, envelope, owned, batch in
    if let batch {
      deliverBatch(type, batch, from: payload, envelope, to: receiver)
      return true
    }
    return deliverOne(type, payload, envelope, owned: owned, to: receiver)
  }
  let drop: @Sendable (UnsafeMutableRawPointer) -> Void = { payload in
    payload.assumingMemoryBound(to: E.self).deinitialize(count: 1)
  }
  return EventTypeActions(
    key: eventKey(type), size: MemoryLayout<E>.size, deliver: deliver, deliverDirectly: deliverDirectly,
    drop: _isPOD(type) ? nil : drop)
}

/// Calls the handlers for one event, by `DirectHandlers` if possible. Returns whether the payload was moved.
@inlinable
@inline(__always)
func deliverOne<E: Eventable>(
  _ type: E.Type, _ payload: UnsafeMutableRawPointer, _ envelope: UnsafeRawPointer, owned: Bool,
  to receiver: Receiver
) -> Bool {
  let generation = envelope.load(fromByteOffset: EnvelopeLayout.generation, as: UInt32.self)
  // Read for each event, since the list may change between two of them.
  let direct = receiver.direct
  guard generation == direct.pointee.generation else {
    return receiver.deliverAny(payload, envelope, owned: owned)
  }
  let pointer = payload.assumingMemoryBound(to: E.self)
  guard let handler = direct.pointee.only(for: type, receiver) else {
    return deliverToEach(type, payload, envelope, owned: owned, to: receiver)
  }
  direct.pointee.call(handler, owned ? pointer.move() : pointer.pointee, receiver)
  return owned
}

/// The same for several handlers, and for one that has ended or whose requester has to be held. Not inlined, so that
/// the event does not occupy registers and a second place on the stack while the only handler is called.
@inlinable
@inline(never)
func deliverToEach<E: Eventable>(
  _ type: E.Type, _ payload: UnsafeMutableRawPointer, _ envelope: UnsafeRawPointer, owned: Bool,
  to receiver: Receiver
) -> Bool {
  let pointer = payload.assumingMemoryBound(to: E.self)
  // A copy, since its fields would be read again after each call.
  let direct = receiver.direct.pointee
  direct.call(owned ? pointer.move() : pointer.pointee, receiver, envelope)
  return owned
}

/// The same for the events of a batch, until it has none left or another event comes first. Not inlined, so
/// that single events do not save the registers of this loop.
@inlinable
@inline(never)
func deliverBatch<E: Eventable>(
  _ type: E.Type, _ batch: EventBatch, from payload: UnsafeMutableRawPointer,
  _ envelope: UnsafeRawPointer, to receiver: Receiver
) {
  let generation = envelope.load(fromByteOffset: EnvelopeLayout.generation, as: UInt32.self)
  let step = batch.step
  var payload = payload
  while true {
    let direct = receiver.direct
    if generation == direct.pointee.generation, let handler = direct.pointee.only(for: type, receiver) {
      if handler._withUnsafeGuaranteedRef({ $0.requester == nil }) {
        payload = deliverRun(type, batch, from: payload, to: handler, receiver)
      } else {
        direct.pointee.call(handler, payload.assumingMemoryBound(to: E.self).move(), receiver)
      }
    } else {
      deliverOneOfBatch(type, payload, envelope, to: receiver)
    }
    guard let next = batch.next(after: payload, step) else { return }
    payload = next
  }
}

/// Calls the only handler, which is announced and has no requester, for the event at `payload` and for those that follow
/// it and need no checks. Returns the last payload; all were moved.
///
/// The handler stays announced from event to event: its end is looked for before each, as ever, and the announcement
/// that came before all of these looks serves each of them (`HandlerCalls`). The list of handlers does not change in a
/// direct call, so that it was looked at once for all.
@inlinable
@inline(never)
func deliverRun<E: Eventable>(
  _ type: E.Type, _ batch: EventBatch, from payload: UnsafeMutableRawPointer,
  to handler: Unmanaged<TypedHandler<E>>, _ receiver: Receiver
) -> UnsafeMutableRawPointer {
  handler._withUnsafeGuaranteedRef { handler in
    receiver.consumer._withUnsafeGuaranteedRef { consumer in
      let direct = receiver.direct.pointee
      let held = consumer.held
      let (step, ahead) = (batch.step, batch.ahead)
      let plain = handler.plain
      var payload = payload
      while true {
        callInRun(plain, payload.assumingMemoryBound(to: E.self).move(), consumer, direct.counts)
        assert(receiver.direct.pointee.isSame(as: direct), "The list of handlers has changed during an event.")
        held.pointee.left &-= 1
        let next = payload + step
        guard held.pointee.left != 0, ahead.isUnchecked(next) else { break }
        if !_isPOD(type) { consumer.calls.willCall(at: handler.state.address) }
        // After the announcement, as `Receiver.mayHaveEnded` says.
        guard !receiver.mayHaveEnded else { break }
        payload = next
        ahead.take(payload)
      }
      consumer.calls.didLeaveHandler()
      if held.pointee.left == 0 { consumer.lookAround() }
      return payload
    }
  }
}

/// Calls the handler for an event that ends after it, which may run code of the user's: so that event, if it has an end
/// of its own, leaves the handler.
@inlinable
@inline(__always)
func callInRun<E: Eventable>(
  _ plain: (E) -> Void, _ event: E, _ consumer: Consumer, _ counts: HandledCounts
) {
  plain(event)
  counts.add(to: HandledCounts.delivered)
  if !_isPOD(E.self) { consumer.calls.didLeaveHandler() }
}

/// The rare part of `deliverBatch`.
@inlinable
@inline(never)
func deliverOneOfBatch<E: Eventable>(
  _ type: E.Type, _ payload: UnsafeMutableRawPointer, _ envelope: UnsafeRawPointer, to receiver: Receiver
) {
  if !deliverOne(type, payload, envelope, owned: true, to: receiver) {
    payload.assumingMemoryBound(to: E.self).deinitialize(count: 1)
  }
}

/// One event on its way to the handlers of a receiver. The consumer's thread only.
@usableFromInline
struct Delivery {
  @usableFromInline let receiver: Unmanaged<Receiver>
  @usableFromInline let consumer: Unmanaged<Consumer>
  @usableFromInline let handlers: UnsafeRawPointer
  @usableFromInline let end: UnsafeRawPointer
  @usableFromInline let generation: UInt32
  @usableFromInline let lane: UInt8
  /// Whether every handler in the list was alive when the event was dispatched.
  @usableFromInline let reachesAll: Bool
  @usableFromInline let time: UInt64
  /// Where the event is counted.
  @usableFromInline let counts: HandledCounts

  /// Calls every handler that was alive at the dispatch and still is. True if one was called.
  ///
  /// This is the general case beside `DirectHandlers`, which saves what most events do not need: with this
  /// loop alone eight handlers took 6.96 ns a delivery instead of 5.94 (Documentation/Choices.md).
  @inlinable
  @inline(__always)
  func call<E: Eventable>(_ event: E) -> Bool {
    consumer._withUnsafeGuaranteedRef { consumer in
      receiver._withUnsafeGuaranteedRef { receiver in
        var called = false
        var next = handlers
        while next != end {
          // All handlers of a receiver are for one type. It is given here, since a cast inside would retain
          // the closure for the call.
          let handler = next.load(as: Unmanaged<TypedHandler<E>>?.self)
          handler?._withUnsafeGuaranteedRef { handler in
            let state = handler.state
            consumer.calls.willCall(at: state.address)
            // After `willCall`: see `Receiver.mayHaveEnded`.
            guard reachesAll && !receiver.mayHaveEnded || receiver.isValid(state, at: generation)
            else { return }
            if !handler.judges && handler.mayCallPlain(by: consumer.address) {
              handler.plain(event)
              called = true
            } else {
              called = callGeneral(handler, event, consumer) || called
            }
          }
          next += DirectHandlers.stride
        }
        return called
      }
    }
  }

  /// Calls a handler that is not plain. False if its interest skips the event, its owner is gone, or it was
  /// registered after the dispatch.
  @inlinable
  @inline(never)
  func callGeneral<E: Eventable>(
    _ handler: TypedHandler<E>, _ event: E, _ consumer: Consumer
  ) -> Bool {
    var owner: Unmanaged<AnyObject>?
    // The event has no time, since no handler needed it at the dispatch: this handler came later, with a
    // new thread of a shared pool.
    if time == 0, handler.state.isTimed { return false }
    if handler.needsOwner {
      owner = consumer.holdOwner()
      if owner == nil { return false }
    }
    if handler.general(event, lane, time, owner) { return true }
    handler.state.skip()
    return false
  }
}
