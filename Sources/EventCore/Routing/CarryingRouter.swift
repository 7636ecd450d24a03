// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A router of a central with a carrier: puts the value of whoever dispatches behind each payload.
final class CarryingRouter: RouterCore {
  private let base: any RouterCore
  private let carrier: EventCarrier

  init(_ base: any RouterCore, _ carrier: EventCarrier) {
    self.base = base
    self.carrier = carrier
  }

  /// The same router for events that are dispatched later: with the value that the calling thread or task has now.
  func withPresentValue() -> CarryingRouter {
    let value = carrier.capture()
    var carrier = carrier
    carrier.capture = { value }
    return CarryingRouter(base, carrier)
  }

  func beginOne(key: UInt, lane: UInt8, size: Int, alignment: Int) -> UnsafeMutableRawPointer? {
    // Before, since a mutex may be held afterwards.
    let value = carrier.capture()
    let layout = CarriedLayout(behind: size)
    let payload = base.beginOne(
      key: key, lane: lane, size: layout.size, alignment: max(alignment, CarriedLayout.alignment))
    if let payload { layout.put(value, in: payload) }
    return payload
  }

  func commitOne(_ payload: UnsafeMutableRawPointer) -> Int { base.commitOne(payload) }

  func begin(
    key: UInt, lane: UInt8, size: Int, alignment: Int, events: Int, _ state: inout DispatchState
  ) {
    let value = carrier.capture()
    let layout = CarriedLayout(behind: size)
    base.begin(
      key: key, lane: lane, size: layout.size, alignment: max(alignment, CarriedLayout.alignment), events: events,
      &state)
    guard var envelope = state.first else { return }
    // As the dispatch will walk when it writes the events.
    for left in (0..<state.payloads).reversed() {
      layout.put(value, in: envelopePayload(envelope))
      if left > 0 { envelope = envelopeNext(envelope).unsafelyUnwrapped }
    }
  }

  func skip(_ subscription: Subscription, size: Int, _ state: inout DispatchState) {
    guard let first = state.first else { return }
    // All payloads have the same value, and it is there already.
    let value = CarriedLayout(behind: size).value(in: envelopePayload(first))
    let payloads = state.payloads
    base.skip(subscription, size: size, &state)
    guard let value else { return }
    for _ in state.payloads..<payloads { Unmanaged.passUnretained(value as AnyObject).release() }
  }

  // `beginBatch` is the protocol's own, without an array: what lies side by side has no room between.

  func commit(_ state: inout DispatchState) -> Int { base.commit(&state) }

  func commit(_ state: inout DispatchState, note: (Subscription, EventDispatchOutcome) -> Void) {
    base.commit(&state, note: note)
  }

  func expect(_ key: UInt, drop: ((UnsafeMutableRawPointer) -> Void)?) { base.expect(key, drop: drop) }

  func subscribe(
    _ key: UInt, _ subscription: Subscription, ordinal: Int, generation: UInt32, timed: Bool,
    raising other: RaisedSubscription?
  ) {
    base.subscribe(key, subscription, ordinal: ordinal, generation: generation, timed: timed, raising: other)
  }

  func observe(by instruments: Instruments?) { base.observe(by: instruments) }

  func unsubscribe(_ key: UInt, _ subscription: Subscription) { base.unsubscribe(key, subscription) }
}
