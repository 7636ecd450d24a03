// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What only generic code can do with the events of one type, as closures of raw pointers: made
/// once for each registration, where the type is known.
@usableFromInline
struct EventTypeActions: Sendable {
  /// Calls the handlers for one event.
  ///
  /// With `owned` the payload is moved out, whoever is called; otherwise it is read only, since
  /// other receivers share it. Returns whether a handler was called.
  @usableFromInline
  typealias Deliver =
    @Sendable (
      _ delivery: Delivery, _ payload: UnsafeMutableRawPointer, _ owned: Bool
    ) -> Bool

  /// The same from the envelope on, which is done here as far as it is the same for nearly all
  /// events; with `batch` the events that follow it there too. Returns whether the payload was moved
  /// out, of one event; those of a batch are moved or ended here.
  @usableFromInline
  typealias DeliverDirectly =
    @Sendable (
      _ receiver: Receiver, _ payload: UnsafeMutableRawPointer, _ envelope: UnsafeRawPointer,
      _ owned: Bool, _ batch: EventBatch?
    ) -> Bool

  let key: UInt
  let deliver: Deliver
  let deliverDirectly: DeliverDirectly
  /// Ends a payload that nobody took; nil for types that need no ending.
  let drop: (@Sendable (UnsafeMutableRawPointer) -> Void)?

  @usableFromInline
  init(
    key: UInt, deliver: @escaping Deliver, deliverDirectly: @escaping DeliverDirectly,
    drop: (@Sendable (UnsafeMutableRawPointer) -> Void)?
  ) {
    self.key = key
    self.deliver = deliver
    self.deliverDirectly = deliverDirectly
    self.drop = drop
  }
}

/// The events of a batch that are still to be taken.
@usableFromInline
struct EventBatch {
  @usableFromInline let walk: OpaquePointer
  /// Has the next one taken, and returns its payload; nil if another event is next.
  @usableFromInline let next: @convention(c) (_ walk: OpaquePointer?) -> UnsafeMutableRawPointer?
}

/// The actions for one type.
@inlinable
func eventTypeActions<E: Eventable>(_ type: E.Type) -> EventTypeActions {
  let deliver: EventTypeActions.Deliver = { delivery, payload, owned in
    let pointer = payload.assumingMemoryBound(to: E.self)
    // One value for all handlers, which borrow it: no copy for any of them.
    let event = owned ? pointer.move() : pointer.pointee
    let called = delivery.call(event)
    // The event ends here, in no handler.
    delivery.consumer._withUnsafeGuaranteedRef { $0.calls.didLeaveHandler() }
    return called
  }
  let deliverDirectly: EventTypeActions.DeliverDirectly = {
    receiver, payload, envelope, owned, batch in
    let generation = envelope.load(fromByteOffset: EnvelopeLayout.generation, as: UInt32.self)
    var payload = payload
    while true {
      // Anew for each event: the list may change between two of them.
      let direct = receiver.direct.pointee
      let pointer = payload.assumingMemoryBound(to: E.self)
      var isMoved = owned
      if generation == direct.generation {
        direct.call(owned ? pointer.move() : pointer.pointee, receiver, envelope)
      } else {
        isMoved = receiver.deliverAny(payload, envelope, owned: owned)
      }
      guard let batch else { return isMoved }
      if !isMoved { pointer.deinitialize(count: 1) }
      guard let following = batch.next(batch.walk) else { return true }
      payload = following
    }
  }
  return EventTypeActions(
    key: eventKey(type), deliver: deliver, deliverDirectly: deliverDirectly, drop: payloadDrop(type))
}

/// How a payload that nobody took is ended; nil for types that need no ending.
@inlinable
func payloadDrop<E: Eventable>(_ type: E.Type) -> (@Sendable (UnsafeMutableRawPointer) -> Void)? {
  if _isPOD(type) {
    return nil
  }
  return { payload in payload.assumingMemoryBound(to: E.self).deinitialize(count: 1) }
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

  /// Calls every handler that was alive at the dispatch and is alive still. True if one was called.
  ///
  /// A second loop beside that of `DirectHandlers`, which does without what most events do not need: with
  /// this one alone eight handlers took 6.96 ns a delivery in place of 5.94 (Documentation/Choices.md).
  @inlinable
  @inline(__always)
  func call<E: Eventable>(_ event: E) -> Bool {
    consumer._withUnsafeGuaranteedRef { consumer in
      receiver._withUnsafeGuaranteedRef { receiver in
        var called = false
        var next = handlers
        while next != end {
          // All handlers of a receiver are for events of one type. Not a cast inside: that would
          // retain the closure for the call.
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

  /// Calls a handler that is not plain. False if its interest turned the event away, its owner is
  /// gone, or it is younger than the event.
  @inlinable
  @inline(never)
  func callGeneral<E: Eventable>(
    _ handler: TypedHandler<E>, _ event: E, _ consumer: Consumer
  ) -> Bool {
    var owner: Unmanaged<AnyObject>?
    // Nobody had asked for the time yet when the event was dispatched: it is older than this thread
    // of a shared pool, which is not like the others.
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
