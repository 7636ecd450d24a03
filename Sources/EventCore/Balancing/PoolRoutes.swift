// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What a balancer's sink is for: an event type, and the how-manieth subscription of each thread
/// for it. Rank 0 is all but always the only one: a latest-only callback has a subscription of its
/// own.
struct PoolRoute: Hashable {
  let key: UInt
  let rank: Int
}

/// One receiver in a router for several threads: for each event type a balancer's sink, with the
/// threads that have a callback for it.
///
/// Who touches what: `state` under its mutex; everything else is constant. Lock order: a consumer's
/// `registration`, a member's `state`, then `state`, then a balancer's mutex, then a router's.
final class PoolRoutes: @unchecked Sendable {
  private struct Route {
    let sink: any BalancerCore
    /// The subscriptions of the threads; true if one wants the time of dispatch.
    var members: [UnsafeMutableRawPointer: Bool] = [:]
    var isTimed: Bool { members.values.contains(true) }
  }

  private struct State {
    var routes: [PoolRoute: Route] = [:]
    var drops: [UInt: (UnsafeMutableRawPointer) -> Void] = [:]
    var isClosed = false
  }

  private let core: EventCentral.Core
  private let routers: [any RouterCore]
  private let balancer: any EventPoolBalancing
  private let state = Guarded(State())

  /// - Parameter routers: Where this is one receiver.
  init(
    core: EventCentral.Core, routers: [any RouterCore], balancer: any EventPoolBalancing
  ) {
    self.core = core
    self.routers = routers
    self.balancer = balancer
  }

  /// As `RouteRegistry.expect`.
  func expect(_ key: UInt, drop: ((UnsafeMutableRawPointer) -> Void)?) {
    guard let drop else { return }
    state.withLock { $0.drops[key] = drop }
  }

  /// Gives a thread's subscription its share of the events of a key.
  func add(
    _ place: PoolRoute, _ subscription: Subscription, generation: UInt32, timed: Bool,
    load: EventLoad
  ) {
    state.withLock { state in
      var route = state.routes[place] ?? makeRoute(place, state)
      let before = (route.members.isEmpty, route.isTimed)
      route.members[subscription.pointer] = timed
      state.routes[place] = route
      route.sink.add(subscription, generation: generation, timed: timed, load: load)
      if before != (false, route.isTimed), !state.isClosed {
        tell(place, route)
      }
    }
  }

  /// Takes a thread's subscription off.
  func remove(_ place: PoolRoute, _ subscription: Subscription) {
    state.withLock { state in
      guard var route = state.routes[place],
        let wasTimed = route.members.removeValue(forKey: subscription.pointer)
      else { return }
      state.routes[place] = route
      if !state.isClosed {
        // Before the sink is empty, so that a dispatch is not refused that nobody needed to begin.
        if route.members.isEmpty {
          retract(place, route)
        } else if wasTimed, !route.isTimed {
          // Nobody is left who asks for the clock (D8).
          tell(place, route)
        }
      }
      route.sink.remove(subscription)
    }
  }

  /// Takes everything off the routers; the threads keep what was posted to them.
  func close() {
    state.withLock { state in
      guard !state.isClosed else { return }
      state.isClosed = true
      for (place, route) in state.routes where !route.members.isEmpty {
        retract(place, route)
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

  private func makeRoute(_ place: PoolRoute, _ state: State) -> Route {
    // Each event asks every rank: with one count of turns, two ranks would take every other thread.
    let balancer =
      place.rank > 0 && balancer is EventPoolRoundRobinBalancer
      ? EventPoolRoundRobinBalancer() : balancer
    return Route(
      sink: core.makeBalancer(PoolChooser(balancer, key: place.key, drop: state.drops[place.key])))
  }

  private func tell(_ place: PoolRoute, _ route: Route) {
    for router in routers {
      router.subscribe(place.key, route.sink.subscription, generation: 0, timed: route.isTimed)
    }
  }

  private func retract(_ place: PoolRoute, _ route: Route) {
    for router in routers {
      router.unsubscribe(place.key, route.sink.subscription)
    }
  }
}
