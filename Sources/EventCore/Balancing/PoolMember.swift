// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What makes an event thread one of a pool: its consumer registers here instead of at the central,
/// and counts what it handles.
///
/// A thread joins its pool when it is made, complete; a worker of a shared mailbox is held until
/// then. It leaves by being retired: no balancer chooses it from then on, what was promised to it
/// is handled, and then it ends (`EventLoad`).
///
/// Who touches what: `state` under its mutex; everything else is constant. It does not know its
/// thread, which is held by the pool alone: a member lives as long as a mailbox, and so perhaps
/// longer than both. Lock order: the state of the consumer's registry, then `state`, then those of
/// `PoolRoutes`.
final class PoolMember: RouteRegistry, @unchecked Sendable {
  private struct Entry {
    let route: PoolRoute
    let subscription: Subscription
    var generation: UInt32
    var timed: Bool
  }

  private enum Phase {
    /// Its thread is being made.
    case forming
    case member
    case left
  }

  private struct State {
    var phase = Phase.forming
    /// By subscription.
    var entries: [UnsafeMutableRawPointer: Entry] = [:]
  }

  private let memory: EventLoad.Memory
  private let ticker: PoolTicker?
  /// For events that are dispatched to this thread alone: they count as its load too.
  private let own: PoolRoutes
  private let pool: PoolRoutes
  private let state = Guarded(State())

  /// - Parameters:
  ///   - direct: The router for this thread alone.
  ///   - pool: Where it is one of several.
  init(
    index: Int, core: EventCentral.Core, direct: any RouterCore, pool: PoolRoutes,
    ticker: PoolTicker?
  ) {
    memory = EventLoad.Memory(index: index)
    self.ticker = ticker
    self.pool = pool
    own = PoolRoutes(core: core, routes: direct, balancer: EventPoolLowestLoadBalancer())
  }

  var load: EventLoad { memory.load }
  var index: Int { load.index }

  // MARK: Registration, under the lock of the consumer's registry

  func expect(_ key: UInt, drop: ((UnsafeMutableRawPointer) -> Void)?) {
    own.expect(key, drop: drop)
    pool.expect(key, drop: drop)
  }

  func subscribe(_ key: UInt, _ subscription: Subscription, generation: UInt32, timed: Bool) {
    state.withLock { state in
      guard state.phase != .left else { return }
      var entry =
        state.entries[subscription.pointer]
        ?? Entry(
          route: .free(key, from: 0, but: state.entries.values.lazy.map(\.route)),
          subscription: subscription, generation: 0, timed: false)
      entry.generation = generation
      entry.timed = timed
      state.entries[subscription.pointer] = entry
      add(entry, to: own)
      if state.phase == .member {
        add(entry, to: pool)
      }
    }
  }

  func unsubscribe(_ key: UInt, _ subscription: Subscription) {
    state.withLock { state in
      guard let entry = state.entries.removeValue(forKey: subscription.pointer) else { return }
      own.remove(entry.route, subscription)
      pool.remove(entry.route, subscription)
    }
  }

  private func add(_ entry: Entry, to routes: PoolRoutes) {
    routes.add(
      entry.route, entry.subscription, generation: entry.generation, timed: entry.timed, load: load)
  }

  // MARK: The pool

  /// The thread is complete: it takes part from now on.
  func join() {
    state.withLock { state in
      guard state.phase == .forming else { return }
      state.phase = .member
      for entry in state.entries.values {
        add(entry, to: pool)
      }
    }
  }

  /// Takes no more. Its consumer looks at `isFinished` when it is interrupted afterwards, and after each
  /// event from then on, and ends once it has handled what it has. Any thread, also its own.
  func retire() {
    state.withLock { state in
      state.phase = .left
      for entry in state.entries.values {
        pool.remove(entry.route, entry.subscription)
        own.remove(entry.route, entry.subscription)
      }
      state.entries.removeAll()
    }
    load.retire()
  }

  // MARK: The thread itself

  @inline(__always)
  func willHandle() {
    load.begin(isWatched: ticker != nil)
    ticker?.noteWork()
  }

  /// True if the thread has done all that it was to do before its end.
  ///
  /// - Parameter superseded: After an event of a latest-only callback, how many were superseded so
  ///   far.
  @inline(__always)
  func didHandle(superseded: UInt64?) -> Bool {
    if let superseded {
      load.setSuperseded(superseded)
    }
    load.end()
    return load.isFinished
  }
}
