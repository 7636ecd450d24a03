// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What makes an event thread one of a pool: its consumer registers here instead of at the central, and
/// counts what it handles.
///
/// A thread joins its pool when it is made, complete. It leaves by being retired: no balancer chooses it
/// from then on, what was promised to it is handled, and then it ends (`EventLoad`).
///
/// Who touches what: `state` under its mutex; everything else is constant. It does not know its thread,
/// which is held by the pool alone: a member lives as long as a mailbox, and so perhaps longer than both.
/// Lock order: the consumer's `registration`, then `state`, then those of `PoolRoutes`.
final class PoolMember: RouteRegistry, @unchecked Sendable {
  private struct Entry {
    let subscription: Subscription
    let generation: UInt32
    let timed: Bool
  }

  private enum Phase {
    /// Its thread is being made.
    case forming
    case member
    case left
  }

  private struct State {
    var phase = Phase.forming
    var entries: [UInt: Entry] = [:]
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
    own = PoolRoutes(core: core, routers: [direct], balancer: EventPoolLowestLoadBalancer())
  }

  var load: EventLoad { memory.load }
  var index: Int { load.index }

  // MARK: Registration, under the consumer's lock

  func expect(_ key: UInt, drop: ((UnsafeMutableRawPointer) -> Void)?) {
    own.expect(key, drop: drop)
    pool.expect(key, drop: drop)
  }

  func subscribe(_ key: UInt, _ subscription: Subscription, generation: UInt32, timed: Bool) {
    let entry = Entry(subscription: subscription, generation: generation, timed: timed)
    state.withLock { state in
      guard state.phase != .left else { return }
      state.entries[key] = entry
      add(key, entry, to: own)
      if state.phase == .member {
        add(key, entry, to: pool)
      }
    }
  }

  func unsubscribe(_ key: UInt, _ subscription: Subscription) {
    state.withLock { state in
      guard state.entries.removeValue(forKey: key) != nil else { return }
      own.remove(key, subscription)
      pool.remove(key, subscription)
    }
  }

  private func add(_ key: UInt, _ entry: Entry, to routes: PoolRoutes) {
    routes.add(
      key, entry.subscription, generation: entry.generation, timed: entry.timed, load: load)
  }

  // MARK: The pool

  /// The thread is complete: it takes part from now on.
  func join() {
    state.withLock { state in
      guard state.phase == .forming else { return }
      state.phase = .member
      for (key, entry) in state.entries {
        add(key, entry, to: pool)
      }
    }
  }

  /// Takes no more; the consumer ends once it has handled what it has. Any thread, also its own.
  func retire(_ consumer: Consumer) {
    state.withLock { state in
      state.phase = .left
      for (key, entry) in state.entries {
        pool.remove(key, entry.subscription)
        own.remove(key, entry.subscription)
      }
      state.entries.removeAll()
    }
    load.retire()
    // It looks at `isFinished` then; and after each event from then on.
    consumer.mailbox.interrupt()
  }

  // MARK: The thread itself

  @inline(__always)
  func willHandle() {
    load.begin(isWatched: ticker != nil)
    ticker?.noteWork()
  }

  /// True if the thread has done all that it was to do before its end.
  @inline(__always)
  func didHandle() -> Bool { load.end() }
}
