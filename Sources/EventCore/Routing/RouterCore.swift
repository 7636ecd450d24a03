// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Where a consumer says which events it takes: a router, or a pool that is one receiver for its
/// threads.
@usableFromInline
protocol RouteRegistry: AnyObject, Sendable {
  /// Tells how a payload of a key is ended if nobody handles it, before the first subscription to
  /// it. Nil for types without references.
  func expect(_ key: UInt, drop: ((UnsafeMutableRawPointer) -> Void)?)

  /// Gives a subscription the events of a key from now on, or changes its generation and `timed`.
  /// The subscription is of a mailbox of the same core.
  func subscribe(_ key: UInt, _ subscription: Subscription, generation: UInt32, timed: Bool)

  /// Ends a subscription. What is addressed already still arrives.
  func unsubscribe(_ key: UInt, _ subscription: Subscription)

  /// Whether what is dispatched through a router arrives by what is registered here.
  func includes(_ router: any RouterCore) -> Bool
}

extension RouteRegistry {
  /// A router addresses to subscriptions that know it themselves.
  @usableFromInline
  func expect(_ key: UInt, drop: ((UnsafeMutableRawPointer) -> Void)?) {}

  @usableFromInline
  func includes(_ router: any RouterCore) -> Bool { self === router }
}

/// Several routers to register with as with one.
final class RouterGroup: RouteRegistry {
  private let routers: [any RouterCore]

  init(_ routers: [any RouterCore]) {
    self.routers = routers
  }

  func subscribe(_ key: UInt, _ subscription: Subscription, generation: UInt32, timed: Bool) {
    for router in routers {
      router.subscribe(key, subscription, generation: generation, timed: timed)
    }
  }

  func unsubscribe(_ key: UInt, _ subscription: Subscription) {
    for router in routers {
      router.unsubscribe(key, subscription)
    }
  }

  func includes(_ router: any RouterCore) -> Bool { routers.contains { $0 === router } }
}

/// The seam between the module and its two cores: who gets an event of a key.
///
/// `begin`, then the payloads, then `commit` are one dispatch, on one thread. Implementations: the
/// lock-free router (C) and the locking router (Swift).
@usableFromInline
protocol RouterCore: RouteRegistry {
  /// The short way of `begin`, for one event that one receiver gets: where its payload is to be
  /// written, before `commitOne`. Nil: the long way.
  func beginOne(key: UInt, lane: UInt8, size: Int, alignment: Int) -> UnsafeMutableRawPointer?

  /// The second step of `beginOne`: posts. Returns how many accepted.
  func commitOne(_ payload: UnsafeMutableRawPointer) -> Int

  /// First step: finds the receivers and makes their envelopes. Nobody waits.
  func begin(
    key: UInt, lane: UInt8, size: Int, alignment: Int, events: Int, _ state: inout DispatchState)

  /// The same for several events. With `state.array` their payloads are to be written there, side
  /// by side.
  ///
  /// Its parameters are in another order than those of `begin` on purpose: of two implementations
  /// that are alike but for the function they call, the compiler makes one, to which both jump with
  /// their arguments copied once more, and the copy of what was stored right before costs each
  /// dispatch 6 ns.
  func beginBatch(
    events: Int, key: UInt, lane: UInt8, size: Int, alignment: Int, _ state: inout DispatchState)

  /// Second step: posts to every receiver. Returns how many accepted.
  @discardableResult
  func commit(_ state: inout DispatchState) -> Int
}

extension RouterCore {
  @usableFromInline
  func beginBatch(
    events: Int, key: UInt, lane: UInt8, size: Int, alignment: Int, _ state: inout DispatchState
  ) {
    begin(key: key, lane: lane, size: size, alignment: alignment, events: events, &state)
  }
}

/// What a mailbox knows about the events of one type, as its core names it: a pointer that stays
/// valid as long as the mailbox.
@usableFromInline
struct Subscription: @unchecked Sendable {
  // Only the core reads what it points to, and that is immutable.
  let pointer: UnsafeMutableRawPointer
}
