// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What a balancer's sink is for: an event type, and the ordinal of each thread's subscription
/// among those for it. 0 is all but always the only one: a latest-only callback has a subscription of its
/// own.
struct PoolRoute: Hashable {
  let key: UInt
  let ordinal: Int

  /// The first of a key from an ordinal on that is not in use.
  static func free(_ key: UInt, from first: Int, but used: some Sequence<PoolRoute>) -> PoolRoute {
    let taken = Set(used.lazy.filter { $0.key == key }.map(\.ordinal))
    return PoolRoute(key: key, ordinal: (first...).first { !taken.contains($0) }!)
  }
}

/// One receiver in a router for several threads: for each event type a balancer's sink, with the
/// threads that have a callback for it.
///
/// Who touches what: `state` under its mutex; everything else is constant. Lock order: a consumer's
/// registry's state, a member's `state`, then `state`, then a balancer's mutex, then a router's.
final class PoolRoutes: @unchecked Sendable {
  private struct Target {
    let sink: any BalancerCore
    /// The subscriptions of the threads; true if one wants the time of dispatch.
    var members: [UnsafeMutableRawPointer: Bool] = [:]
    var isTimed: Bool { members.values.contains(true) }
  }

  private struct State {
    var routes: [PoolRoute: Target] = [:]
    var drops: [UInt: (UnsafeMutableRawPointer) -> Void] = [:]
    var isClosed = false
  }

  private let core: EventCentral.Core
  private let routes: any RouteRegistry
  private let balancer: any EventPoolBalancing
  private let state = Guarded(State())

  /// - Parameter routes: Where this is one receiver.
  init(core: EventCentral.Core, routes: any RouteRegistry, balancer: any EventPoolBalancing) {
    self.core = core
    self.routes = routes
    self.balancer = balancer
  }

  /// As `RouteRegistry.expect`.
  func expect(_ key: UInt, drop: ((UnsafeMutableRawPointer) -> Void)?) {
    guard let drop else { return }
    state.withLock { $0.drops[key] = drop }
  }

  /// Gives a thread's subscription its share of the events of a key.
  func add(
    _ route: PoolRoute, _ subscription: Subscription, generation: UInt32, timed: Bool,
    load: EventLoad
  ) {
    state.withLock { state in
      var target = state.routes[route] ?? makeTarget(route, state)
      let before = (target.members.isEmpty, target.isTimed)
      target.members[subscription.pointer] = timed
      state.routes[route] = target
      target.sink.add(subscription, generation: generation, timed: timed, load: load)
      if before != (false, target.isTimed), !state.isClosed {
        tell(route, target)
      }
    }
  }

  /// Takes a thread's subscription off.
  func remove(_ route: PoolRoute, _ subscription: Subscription) {
    state.withLock { state in
      guard var target = state.routes[route],
        let wasTimed = target.members.removeValue(forKey: subscription.pointer)
      else { return }
      state.routes[route] = target
      if !state.isClosed {
        // Before the sink is empty, so that a dispatch is not refused that nobody needed to begin.
        if target.members.isEmpty {
          retract(route, target)
        } else if wasTimed, !target.isTimed {
          // Nobody is left who asks for the clock (D8).
          tell(route, target)
        }
      }
      target.sink.remove(subscription)
    }
  }

  /// Takes everything off the routers; the threads keep what was posted to them.
  func close() {
    state.withLock { state in
      guard !state.isClosed else { return }
      state.isClosed = true
      for (route, target) in state.routes where !target.members.isEmpty {
        retract(route, target)
      }
    }
  }

  /// How many events were not accepted, since no thread was left.
  var refused: UInt64 {
    state.withLock { $0.routes.values.reduce(0) { $0 + $1.sink.refused } }
  }

  /// How many events of a batch were freed, since no thread was left when their turn came.
  var dropped: UInt64 {
    state.withLock { $0.routes.values.reduce(0) { $0 + $1.sink.dropped } }
  }

  private func makeTarget(_ route: PoolRoute, _ state: State) -> Target {
    let balancer = route.ordinal > 0 ? balancer.needs?.forFurtherRoute() ?? balancer : balancer
    return Target(
      sink: core.parts.makeBalancer(
        PoolChooser(balancer, key: route.key, drop: state.drops[route.key])))
  }

  private func tell(_ route: PoolRoute, _ target: Target) {
    routes.subscribe(route.key, target.sink.subscription, generation: 0, timed: target.isTimed)
  }

  private func retract(_ route: PoolRoute, _ target: Target) {
    routes.unsubscribe(route.key, target.sink.subscription)
  }
}
