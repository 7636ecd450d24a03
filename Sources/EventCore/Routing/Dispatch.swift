// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The generic part of a dispatch: the only code that makes a typed event the bytes of an
// envelope. Everything that is not generic is behind `RouterCore`.

/// A dispatch between its two steps. The layout is that of `struct evc_dispatch`; the locking core
/// fills the same fields. `EnvelopeLayoutTests` compares them.
@usableFromInline
struct DispatchState {
  /// The first envelope, or nil if nobody listens.
  @usableFromInline var first: UnsafeMutableRawPointer?
  @usableFromInline var receivers: UInt32 = 0
  /// How many payloads are to be written: by receiver, then by event; or, if shared, by event.
  @usableFromInline var payloads: UInt32 = 0
  @usableFromInline var shared = false
  var lane: UInt8 = 0
  var events: UInt16 = 0
  var needs: UInt8 = 0
  var record: UnsafeMutableRawPointer?
  var snapshot: UnsafeMutableRawPointer?
  /// After `beginBatch`: where all payloads lie side by side; nil if they lie in the envelopes.
  @usableFromInline var array: UnsafeMutableRawPointer?

  @inlinable
  init() { self.init(empty: ()) }

  @usableFromInline
  init(empty: Void) {}
}

/// How many events travel together at most; `EVC_DISPATCH_MAX`.
@usableFromInline let maximumBatch = 64

/// What tells one event type from all others: the address of its metadata (D11).
@inlinable
func eventKey<E: Eventable>(_ type: E.Type) -> UInt {
  UInt(bitPattern: ObjectIdentifier(type))
}

/// Dispatches one event. Most have one receiver: its payload is written where that finds it.
@inlinable
@discardableResult
func dispatch<E: Eventable>(
  _ event: consuming E, lane: Lane, through router: any RouterCore
) -> Int {
  let payload = router.beginOne(
    key: eventKey(E.self), lane: lane.index, size: MemoryLayout<E>.size,
    alignment: MemoryLayout<E>.alignment)
  guard let payload else { return dispatchToAll(event, lane: lane, through: router) }
  payload.initializeMemory(as: E.self, to: event)
  return router.commitOne(payload)
}

/// The same for any number of receivers: finds them, writes the payload once for each, posts.
@inlinable
@inline(never)
func dispatchToAll<E: Eventable>(
  _ event: consuming E, lane: Lane, through router: any RouterCore
) -> Int {
  var state = DispatchState()
  router.begin(
    key: eventKey(E.self), lane: lane.index, size: MemoryLayout<E>.size,
    alignment: MemoryLayout<E>.alignment, events: 1, &state)
  guard var envelope = state.first else { return 0 }
  // All receivers but the last get a copy; the last gets the event itself.
  var copies = state.payloads &- 1
  while copies != 0 {
    envelopePayload(envelope).initializeMemory(as: E.self, to: copy event)
    envelope = envelopeNext(envelope).unsafelyUnwrapped
    copies &-= 1
  }
  envelopePayload(envelope).initializeMemory(as: E.self, to: event)
  return router.commit(&state)
}

/// Dispatches the events of a sequence in batches. Returns how often one was accepted.
@inlinable
func dispatchBatches<S: Sequence>(
  of events: S, lane: Lane, through router: any RouterCore
) -> Int where S.Element: Eventable {
  // Straight from where they lie, if they do side by side, without a copy on the way.
  let accepted = events.withContiguousStorageIfAvailable { events in
    var accepted = 0
    var next = 0
    while next < events.count {
      let end = min(next &+ maximumBatch, events.count)
      let batch = UnsafeBufferPointer(rebasing: events[next..<end])
      accepted += dispatchBatch(
        // Read only, since nothing is moved out of it.
        UnsafeMutableBufferPointer(mutating: batch), moved: false, lane, through: router)
      next = end
    }
    return accepted
  }
  return accepted ?? dispatchBatches(from: events.makeIterator(), lane: lane, through: router)
}

/// The same for events that come one by one.
@inlinable
func dispatchBatches<I: IteratorProtocol>(
  from iterator: consuming I, lane: Lane, through router: any RouterCore
) -> Int where I.Element: Eventable {
  var accepted = 0
  withUnsafeTemporaryAllocation(of: I.Element.self, capacity: maximumBatch) { batch in
    while true {
      // The iterator is user code: it runs before the dispatch begins.
      var count = 0
      while count < maximumBatch, let event = iterator.next() {
        batch.initializeElement(at: count, to: event)
        count += 1
      }
      guard count > 0 else { return }
      accepted += dispatchBatch(
        UnsafeMutableBufferPointer(rebasing: batch[..<count]), moved: true, lane, through: router)
    }
  }
  return accepted
}

/// Dispatches up to 64 events. Returns how often one was accepted.
///
/// If `moved`, they are moved out of `batch`, else copied.
@inlinable
@inline(__always)
func dispatchBatch<E: Eventable>(
  _ batch: UnsafeMutableBufferPointer<E>, moved: Bool, _ lane: Lane, through router: any RouterCore
) -> Int {
  var state = DispatchState()
  router.beginBatch(
    events: batch.count, key: eventKey(E.self), lane: lane.index, size: MemoryLayout<E>.size,
    alignment: MemoryLayout<E>.alignment, &state)
  guard var envelope = state.first else {
    if moved {
      batch.deinitialize()
    }
    return 0
  }
  if let array = state.array {
    // Not nil: a batch has an event.
    let events = batch.baseAddress.unsafelyUnwrapped
    if moved {
      array.moveInitializeMemory(as: E.self, from: events, count: batch.count)
    } else {
      array.initializeMemory(as: E.self, from: events, count: batch.count)
    }
    return router.commit(&state) &* batch.count
  }
  // By receiver, then by event; by event alone, if the receivers share the payloads.
  var payloads = Int(state.payloads)
  while payloads > 0 {
    payloads &-= batch.count
    for index in batch.indices {
      let payload = envelopePayload(envelope)
      if moved && payloads == 0 {
        payload.initializeMemory(as: E.self, to: batch.moveElement(from: index))
      } else {
        payload.initializeMemory(as: E.self, to: batch[index])
      }
      if index + 1 < batch.count || payloads > 0 {
        envelope = envelopeNext(envelope).unsafelyUnwrapped
      }
    }
  }
  return router.commit(&state) * batch.count
}
