// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Makes an event thread part of a pool: the thread's consumer registers here instead of at the central,
/// and counts here what it handles.
///
/// A thread joins its pool once it is completely made; a worker of a shared mailbox takes nothing before
/// that. It leaves by being retired: balancers stop choosing it, it handles what was promised to it, and
/// then it ends (`EventLoad`).
///
/// Synchronization: `state` has a mutex; everything else is constant. Lock order: the state of the
/// consumer's registry, then `state`, then those of `PoolRoutes`.
///
/// A member has no reference to its thread: it lives as long as the mailbox, perhaps longer than both.
final class PoolMember: RouteRegistry, @unchecked Sendable {
  private struct Entry {
    let route: PoolRoute
    let subscription: Subscription
    let generation: UInt32
    let timed: Bool
  }

  private enum Phase {
    /// The thread is being made.
    case forming
    case member
    case left
  }

  private struct State {
    var phase = Phase.forming
    /// In the order of their registration, which is that of the thread's events: a dictionary by addresses would have
    /// another order in each run.
    var entries: [Entry] = []

    func index(of subscription: Subscription) -> Int? {
      entries.firstIndex { $0.subscription.pointer == subscription.pointer }
    }
  }

  private let memory: EventLoad.Memory
  private let ticker: PoolTicker?
  /// For events that are dispatched to this thread alone, which are part of its load too.
  private let own: PoolRoutes
  private let pool: PoolRoutes
  private let state = Guarded(State())

  /// - Parameters:
  ///   - direct: The router for events that are dispatched to this thread alone.
  ///   - pool: The routes of all threads of the pool.
  init(
    index: Int, _ basis: CentralBasis, direct: any RouterCore, pool: PoolRoutes,
    ticker: PoolTicker?
  ) {
    memory = EventLoad.Memory(index: index)
    self.ticker = ticker
    self.pool = pool
    own = PoolRoutes(basis, routes: direct, balancer: EventPoolLowestLoadBalancer(), name: "")
  }

  var load: EventLoad { memory.load }
  var index: Int { load.index }

  // MARK: Registration, under the lock of the consumer's registry

  func expect(_ key: UInt, drop: ((UnsafeMutableRawPointer) -> Void)?) {
    own.expect(key, drop: drop)
    pool.expect(key, drop: drop)
  }

  func subscribe(
    _ key: UInt, _ subscription: Subscription, ordinal: Int, generation: UInt32, timed: Bool,
    raising other: RaisedSubscription?
  ) {
    state.withLock { state in
      guard state.phase != .left else { return }
      let route = PoolRoute(key: key, ordinal: ordinal)
      let entry = Entry(route: route, subscription: subscription, generation: generation, timed: timed)
      if let index = state.index(of: subscription) { state.entries[index] = entry } else { state.entries.append(entry) }
      add(entry, to: own)
      if state.phase == .member {
        add(entry, to: pool)
      }
    }
  }

  func unsubscribe(_ key: UInt, _ subscription: Subscription) {
    state.withLock { state in
      guard let entry = state.index(of: subscription).map({ state.entries.remove(at: $0) }) else { return }
      own.remove(entry.route, subscription)
      pool.remove(entry.route, subscription)
    }
  }

  func observe(by instruments: Instruments?) {
    own.observe(by: instruments)
    pool.observe(by: instruments)
  }

  private func add(_ entry: Entry, to routes: PoolRoutes) {
    routes.add(
      entry.route, entry.subscription, generation: entry.generation, timed: entry.timed, load: load)
  }

  // MARK: The pool

  /// Makes the thread take part from now on. Called when the thread is completely made.
  func join() {
    state.withLock { state in
      guard state.phase == .forming else { return }
      state.phase = .member
      for entry in state.entries {
        add(entry, to: pool)
      }
    }
  }

  /// Makes the thread accept nothing new. The caller then interrupts the consumer, which checks
  /// `isFinished` at that and after each event, and ends when it has handled everything. Any thread, also
  /// the pool's own.
  func retire() {
    state.withLock { state in
      state.phase = .left
      for entry in state.entries {
        pool.remove(entry.route, entry.subscription)
        own.remove(entry.route, entry.subscription)
      }
      state.entries.removeAll()
    }
    load.retire()
  }

  // MARK: The pool's thread

  @inline(__always)
  func willHandle() {
    load.begin(isWatched: ticker != nil)
    ticker?.noteWork()
  }

  /// Counts an event. True if the thread is retired and has handled everything that was promised to it.
  ///
  /// - Parameter isPromised: False for a job that a retired thread began.
  @inline(__always)
  func didHandle(isPromised: Bool) -> Bool {
    load.end(isPromised: isPromised)
    return load.isFinished
  }
}
