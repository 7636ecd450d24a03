// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Identifies a balancer: an event type, and an ordinal among the subscriptions that each thread has for
/// that type. A thread has one subscription for all its ordinary callbacks of a type, and a further one for
/// each latest-only callback.
struct PoolRoute: Hashable {
  let key: UInt
  var ordinal: Int

  /// The route of a key for a conflated receiver, with the first unused ordinal: from 1 on, or from -1 down for the
  /// newest of each key, since a place in a shared mailbox is of one kind.
  static func freeForConflated(_ key: UInt, isPerKey: Bool, isUsed: (PoolRoute) -> Bool) -> PoolRoute {
    let step = isPerKey ? -1 : 1
    var route = PoolRoute(key: key, ordinal: step)
    while isUsed(route) { route.ordinal += step }
    return route
  }
}

/// Several threads as one receiver in a router: for each route a balancer, which knows the threads that
/// have a callback for its event type.
///
/// Synchronization: `state` has a mutex; everything else is constant. Lock order: the state of a consumer's
/// registry, the `state` of a member, then `state`, then a balancer's mutex, then a router's.
final class PoolRoutes: @unchecked Sendable {
  private struct Target {
    let sink: any BalancerCore
    /// The threads' subscriptions, and whether each of them needs the time of dispatch.
    var members: [UnsafeMutableRawPointer: Bool] = [:]
    var isTimed: Bool { members.values.contains(true) }
  }

  private struct State {
    var routes: [PoolRoute: Target] = [:]
    var drops: [UInt: (UnsafeMutableRawPointer) -> Void] = [:]
    var isClosed = false
  }

  private let basis: CentralBasis
  private let routes: any RouteRegistry
  private let balancer: any EventPoolBalancing
  /// What outcomes call this receiver.
  private let name: String
  private let state = Guarded(State())

  /// - Parameter routes: The router, or group of routers, in which this is one receiver.
  init(_ basis: CentralBasis, routes: any RouteRegistry, balancer: any EventPoolBalancing, name: String) {
    self.name = name
    self.basis = basis
    self.routes = routes
    self.balancer = balancer
  }

  deinit {
    state.withLock { state in
      for target in state.routes.values { basis.names.remove(target.sink.subscription) }
    }
  }

  /// As `RouteRegistry.expect`.
  func expect(_ key: UInt, drop: ((UnsafeMutableRawPointer) -> Void)?) {
    guard let drop else { return }
    state.withLock { $0.drops[key] = drop }
  }

  /// Gives a thread's subscription its share of the events of a route.
  func add(
    _ route: PoolRoute, _ subscription: Subscription, generation: UInt32, timed: Bool,
    load: EventLoad
  ) {
    state.withLock { state in
      // A closed pool routes nothing more, and a balancer without threads is how a dispatch knows that (`close`).
      guard !state.isClosed else { return }
      var target = state.routes[route] ?? makeTarget(route, state)
      let before = (target.members.isEmpty, target.isTimed)
      target.members[subscription.pointer] = timed
      state.routes[route] = target
      target.sink.add(subscription, generation: generation, timed: timed, load: load)
      if before != (false, target.isTimed) {
        tell(route, target)
      }
    }
  }

  /// Removes a thread's subscription.
  func remove(_ route: PoolRoute, _ subscription: Subscription) {
    state.withLock { state in
      guard var target = state.routes[route],
        let wasTimed = target.members.removeValue(forKey: subscription.pointer)
      else { return }
      state.routes[route] = target
      if !state.isClosed {
        // Before the balancer is empty: a dispatch then finds no receiver, instead of one that refuses.
        if target.members.isEmpty {
          retract(route, target)
        } else if wasTimed, !target.isTimed {
          // The last subscription that needs the time is gone (D8).
          tell(route, target)
        }
      }
      target.sink.remove(subscription)
    }
  }

  /// Removes all balancers from the router, and all threads from them. The threads keep what was posted to them. A
  /// dispatch that is past the router still reaches the thread that is chosen for it, or is refused: were the threads
  /// closed before, it would go from a closed one to one that is still open, past what waits for the closed one (D2).
  func close() {
    state.withLock { state in
      guard !state.isClosed else { return }
      state.isClosed = true
      for (route, target) in state.routes where !target.members.isEmpty {
        retract(route, target)
        target.sink.removeAll()
      }
    }
  }

  /// As `RouteRegistry.observe`.
  func observe(by instruments: Instruments?) { routes.observe(by: instruments) }

  /// As `BalancerCore.refused`, of all balancers.
  var refused: UInt64 {
    state.withLock { $0.routes.values.reduce(0) { $0 + $1.sink.refused } }
  }

  private func makeTarget(_ route: PoolRoute, _ state: State) -> Target {
    let balancer = route.ordinal != 0 ? balancer.needs?.forFurtherRoute() ?? balancer : balancer
    let sink = basis.core.parts.makeBalancer(
      PoolChooser(balancer, key: route.key, drop: state.drops[route.key], basis.clock))
    basis.names.set(sink.subscription, name)
    return Target(sink: sink)
  }

  private func tell(_ route: PoolRoute, _ target: Target) {
    routes.subscribe(route.key, target.sink.subscription, generation: 0, timed: target.isTimed)
  }

  private func retract(_ route: PoolRoute, _ target: Target) {
    routes.unsubscribe(route.key, target.sink.subscription)
  }
}
