// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Where a consumer registers for events: a router, or a pool, which registers once for all its threads.
@usableFromInline
protocol RouteRegistry: AnyObject, Sendable {
  /// Tells, before the first subscription to a key, how to end a payload that nobody handles. Nil for types
  /// without references.
  func expect(_ key: UInt, drop: ((UnsafeMutableRawPointer) -> Void)?)

  /// Gives a subscription the events of a key from now on, or changes its generation and `timed`, which
  /// tells whether a handler needs the time of the dispatch. The subscription is of the same core.
  ///
  /// - Parameters:
  ///   - ordinal: 0, and others for the conflated subscriptions of one consumer to the key. A pool balances those with
  ///     the same ordinal; routers do not ask.
  ///   - other: Gets its generation in the same step where it is subscribed, so that each event has found both of
  ///     these generations, or neither. Pools leave it as it is.
  func subscribe(
    _ key: UInt, _ subscription: Subscription, ordinal: Int, generation: UInt32, timed: Bool,
    raising other: RaisedSubscription?)

  /// Ends a subscription. Events that are already addressed to it still arrive.
  func unsubscribe(_ key: UInt, _ subscription: Subscription)

  /// Tells the instruments of each dispatch through the routers that this stands for, from now on; nil for nobody.
  func observe(by instruments: Instruments?)

  /// Whether subscriptions that are registered here get the events that are dispatched through a router.
  func includes(_ router: any RouterCore) -> Bool
}

extension RouteRegistry {
  func subscribe(_ key: UInt, _ subscription: Subscription, generation: UInt32, timed: Bool) {
    subscribe(key, subscription, ordinal: 0, generation: generation, timed: timed, raising: nil)
  }

  /// Does nothing: the subscriptions of a router know it themselves.
  @usableFromInline
  func expect(_ key: UInt, drop: ((UnsafeMutableRawPointer) -> Void)?) {}

  @usableFromInline
  func includes(_ router: any RouterCore) -> Bool { self === router }
}

/// Several routers with which a consumer registers as with one.
final class RouterGroup: RouteRegistry {
  private let routers: [any RouterCore]

  init(_ routers: [any RouterCore]) {
    self.routers = routers
  }

  func subscribe(
    _ key: UInt, _ subscription: Subscription, ordinal: Int, generation: UInt32, timed: Bool,
    raising other: RaisedSubscription?
  ) {
    for router in routers {
      router.subscribe(
        key, subscription, ordinal: ordinal, generation: generation, timed: timed, raising: other)
    }
  }

  func unsubscribe(_ key: UInt, _ subscription: Subscription) {
    for router in routers {
      router.unsubscribe(key, subscription)
    }
  }

  func observe(by instruments: Instruments?) {
    for router in routers { router.observe(by: instruments) }
  }

  func includes(_ router: any RouterCore) -> Bool { routers.contains { $0 === router } }
}

/// The seam between dispatching and the two cores: finds the receivers of an event and posts to them.
///
/// A dispatch, on one thread, is: `begin`, write the payloads, `commit`.
@usableFromInline
protocol RouterCore: RouteRegistry {
  /// The short way for one event with one receiver. Returns where its payload has to be written before
  /// `commitOne`, or nil if the event has to go the way of `begin`.
  ///
  /// It may return with a mutex held, which `commitOne` unlocks: between the two, the event is moved to its
  /// place, and nothing else happens.
  func beginOne(key: UInt, lane: UInt8, size: Int, alignment: Int) -> UnsafeMutableRawPointer?

  /// Ends what `beginOne` began: posts. Returns how many receivers accepted the event.
  func commitOne(_ payload: UnsafeMutableRawPointer) -> Int

  /// Finds the receivers and makes their envelopes. Waits for nobody.
  func begin(
    key: UInt, lane: UInt8, size: Int, alignment: Int, events: Int, _ state: inout DispatchState)

  /// The same for several events. If it sets `state.array`, their payloads have to be written there, side
  /// by side.
  ///
  /// The order of the parameters differs from that of `begin` on purpose: the compiler merges two
  /// implementations that differ only in the function they call, and the merged one copies its arguments
  /// once more, which costs each dispatch 6 ns.
  func beginBatch(
    events: Int, key: UInt, lane: UInt8, size: Int, alignment: Int, _ state: inout DispatchState)

  /// Takes a receiver out of a dispatch, between `begin` and the writing of the payloads. Does nothing if the dispatch
  /// does not go to it. The pointer is only compared.
  ///
  /// - Parameter size: That of an event, in bytes.
  func skip(_ subscription: Subscription, size: Int, _ state: inout DispatchState)

  /// Posts to every receiver. Returns the sum over the events of how many receivers accepted each.
  @discardableResult
  func commit(_ state: inout DispatchState) -> Int

  /// Posts to every receiver, and tells `note` what each did: its subscription, to be compared alone, and an outcome.
  func commit(_ state: inout DispatchState, note: (Subscription, EventDispatchOutcome) -> Void)
}

extension RouterCore {
  /// Posts to every receiver, and adds what each did to an outcome.
  @usableFromInline
  func commit(_ state: inout DispatchState, _ outcome: inout EventDispatchOutcome) {
    commit(&state) { outcome.add($1) }
  }

  @usableFromInline
  func beginBatch(
    events: Int, key: UInt, lane: UInt8, size: Int, alignment: Int, _ state: inout DispatchState
  ) {
    begin(key: key, lane: lane, size: size, alignment: alignment, events: events, &state)
  }
}

/// A core's record of what a mailbox does with the events of one type. The pointer is valid as long as the
/// mailbox.
@usableFromInline
struct Subscription: @unchecked Sendable {
  // Only the core reads the memory, which never changes.
  let pointer: UnsafeMutableRawPointer
}

/// A subscription that gets another generation together with the registration of one of the same key.
@usableFromInline
struct RaisedSubscription {
  let subscription: Subscription
  let generation: UInt32
}
