// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The generic part of a dispatch, which is the only code that writes a typed event into the bytes of an
// envelope. The rest is behind `RouterCore`.

/// The state of a dispatch between `begin` and `commit`. Both cores use the layout of `struct evc_dispatch`,
/// which `EnvelopeLayoutTests` compares with this.
@usableFromInline
struct DispatchState {
  /// The first envelope, or nil if there is no receiver.
  @usableFromInline var first: UnsafeMutableRawPointer?
  @usableFromInline var receivers: UInt32 = 0
  /// How many payloads have to be written: one for each receiver and event, or one for each event if the
  /// receivers share them.
  @usableFromInline var payloads: UInt32 = 0
  @usableFromInline var shared = false
  var lane: UInt8 = 0
  var events: UInt16 = 0
  var needs: UInt8 = 0
  var needing: UInt16 = 0
  var record: UnsafeMutableRawPointer?
  var snapshot: UnsafeMutableRawPointer?
  /// After `beginBatch`: where the payloads have to be written side by side; nil if they belong into the
  /// envelopes.
  @usableFromInline var array: UnsafeMutableRawPointer?

  @inlinable
  init() { self.init(empty: ()) }

  @usableFromInline
  init(empty: Void) {}
}

/// The most events of one batch: `EVC_DISPATCH_MAX`.
@usableFromInline let maximumBatch = 64

/// The key of an event type: the address of its metadata (D11).
@inlinable
func eventKey<E: Eventable>(_ type: E.Type) -> UInt {
  UInt(bitPattern: ObjectIdentifier(type))
}

/// The alignment of an event's payload for the cores. An event that cannot be moved as bytes, such as one with
/// a weak reference or a member of C++, gets one for which it stays where it is written.
@inlinable
@inline(__always)
func payloadAlignment<E: Eventable>(of type: E.Type) -> Int {
  let alignment = MemoryLayout<E>.alignment
  return _isBitwiseTakable(type) ? alignment : max(alignment, EnvelopeLayout.unmovedAlignment)
}

/// Dispatches one event. The short way is for events with one receiver, which most have.
@inlinable
@discardableResult
func dispatch<E: Eventable>(
  _ event: consuming E, lane: Lane, through router: any RouterCore
) -> Int {
  let payload = router.beginOne(
    key: eventKey(E.self), lane: lane.index, size: MemoryLayout<E>.size,
    alignment: payloadAlignment(of: E.self))
  guard let payload else { return dispatchToAll(event, lane: lane, through: router) }
  // A mutex may be held until `commitOne`, so only the event comes between: to move it runs no user code.
  payload.initializeMemory(as: E.self, to: event)
  return router.commitOne(payload)
}

/// Dispatches one event to any number of receivers: finds them, writes one payload for each, and posts.
@inlinable
@inline(never)
func dispatchToAll<E: Eventable>(
  _ event: consuming E, lane: Lane, through router: any RouterCore
) -> Int {
  var state = DispatchState()
  return begin(event, lane: lane, through: router, &state) ? router.commit(&state) : 0
}

/// The same, and says what became of the event at each receiver.
@inlinable
@inline(never)
func dispatchWithOutcome<E: Eventable>(
  _ event: consuming E, lane: Lane, through router: any RouterCore
) -> EventDispatchOutcome {
  var state = DispatchState()
  var outcome = EventDispatchOutcome()
  if begin(event, lane: lane, through: router, &state) { router.commit(&state, &outcome) }
  return outcome
}

/// The part before the post. False if there is no receiver.
@inlinable
@inline(__always)
func begin<E: Eventable>(
  _ event: consuming E, lane: Lane, through router: any RouterCore, _ state: inout DispatchState
) -> Bool {
  router.begin(
    key: eventKey(E.self), lane: lane.index, size: MemoryLayout<E>.size,
    alignment: payloadAlignment(of: E.self), events: 1, &state)
  guard var envelope = state.first else { return false }
  // All receivers but the last get a copy; the last gets the event itself.
  var copies = state.payloads &- 1
  while copies != 0 {
    envelopePayload(envelope).initializeMemory(as: E.self, to: copy event)
    envelope = envelopeNext(envelope).unsafelyUnwrapped
    copies &-= 1
  }
  envelopePayload(envelope).initializeMemory(as: E.self, to: event)
  return true
}

/// Dispatches an event to every receiver but some, and says what became of it at each of the others.
func dispatch<E: Eventable>(
  _ event: consuming E, lane: Lane, through router: any RouterCore, skipping others: () -> [Subscription]
) -> EventDispatchOutcome {
  var state = DispatchState()
  var outcome = EventDispatchOutcome()
  router.begin(
    key: eventKey(E.self), lane: lane.index, size: MemoryLayout<E>.size,
    alignment: payloadAlignment(of: E.self), events: 1, &state)
  guard state.first != nil else { return outcome }
  for other in others() { router.skip(other, size: MemoryLayout<E>.size, &state) }
  var next = state.first
  for _ in 0..<state.payloads {
    // Not nil: there are as many envelopes as payloads, at least.
    let envelope = next.unsafelyUnwrapped
    envelopePayload(envelope).initializeMemory(as: E.self, to: copy event)
    next = envelopeNext(envelope)
  }
  router.commit(&state, &outcome)
  return outcome
}

/// Dispatches the events of a sequence in batches. Returns how often receivers accepted one.
@inlinable
func dispatchBatches<S: Sequence>(
  of events: S, lane: Lane, through router: any RouterCore
) -> Int where S.Element: Eventable {
  // Without a copy on the way, if the events lie side by side.
  let accepted = events.withContiguousStorageIfAvailable { events in
    var accepted = 0
    var next = 0
    while next < events.count {
      let end = min(next &+ maximumBatch, events.count)
      let batch = UnsafeBufferPointer(rebasing: events[next..<end])
      accepted += dispatchBatch(
        // It is only read, since nothing is moved out of it.
        UnsafeMutableBufferPointer(mutating: batch), moved: false, lane, through: router)
      next = end
    }
    return accepted
  }
  return accepted ?? dispatchBatches(from: events.makeIterator(), lane: lane, through: router)
}

/// Dispatches the events of an iterator in batches, likewise.
@inlinable
func dispatchBatches<I: IteratorProtocol>(
  from iterator: consuming I, lane: Lane, through router: any RouterCore
) -> Int where I.Element: Eventable {
  var accepted = 0
  // As many as fit on the stack: a larger temporary allocation would be one of the heap (D5).
  let capacity = max(1, min(maximumBatch, 1_024 / max(1, MemoryLayout<I.Element>.stride)))
  withUnsafeTemporaryAllocation(of: I.Element.self, capacity: capacity) { batch in
    while true {
      // The iterator is user code, so it runs before the dispatch begins.
      var count = 0
      while count < capacity, let event = iterator.next() {
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

/// Dispatches up to 64 events, which are moved out of `batch` if `moved`, and copied otherwise. Returns how
/// often receivers accepted one.
@inlinable
@inline(__always)
func dispatchBatch<E: Eventable>(
  _ batch: UnsafeMutableBufferPointer<E>, moved: Bool, _ lane: Lane, through router: any RouterCore
) -> Int {
  var state = DispatchState()
  router.beginBatch(
    events: batch.count, key: eventKey(E.self), lane: lane.index, size: MemoryLayout<E>.size,
    alignment: payloadAlignment(of: E.self), &state)
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
    return router.commit(&state)
  }
  // One payload for each receiver and event, or one for each event if the receivers share them.
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
  return router.commit(&state)
}
