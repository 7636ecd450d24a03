// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// One receiver in a central's router for several consumers: an event of a type that any of them
/// handles waits here, and whichever is idle first takes it.
///
/// A consumer becomes a worker by being made with this mailbox (`Consumer.init(shared:)`); it tells
/// it the types of its handlers, and leaves it when it ends. The types of all workers are to be the
/// same: what a worker takes and has no handler for is counted among its skipped events, whether
/// another has one or not.
///
/// It is not handed on (`EventPoolSharedBalancer` says why): to know better before the take, the lanes
/// would have to be looked through for each event.
///
/// Who touches what: `state` under its mutex; everything else is constant.
/// Lock order: the state of a consumer's registry, then `state`, then a router's mutex.
final class SharedMailbox: @unchecked Sendable {
  /// The events of one type, for all workers; or, for handlers that want the latest event only,
  /// those for one handler of each worker: the first of its kind and type of every worker share an
  /// entry, the second, and so on. Constant once it is made, but for what `state` guards.
  final class Entry: @unchecked Sendable {
    /// The type; for handlers that want the latest event only, with their ordinal, since each of them
    /// has an entry of its own.
    let route: PoolRoute
    /// Its index in each worker's table of receivers; from 0 without a gap.
    let index: Int
    /// Ends a payload; nil for types without references.
    let drop: (@Sendable (UnsafeMutableRawPointer) -> Void)?

    // Guarded by the mailbox's `state`.
    fileprivate var subscription: Subscription!
    /// How many handlers all workers have ever registered. They are valid from the generation that
    /// each began (`Receiver`).
    fileprivate var generation: UInt32 = 0
    /// The receivers of the workers that have a handler for the type; true if one of those wants
    /// the time.
    fileprivate var members: [ObjectIdentifier: Bool] = [:]
    fileprivate var isTimed: Bool { members.values.contains(true) }

    fileprivate init(_ receiver: Receiver, index: Int) {
      route = receiver.route
      drop = receiver.drop
      self.index = index
    }
  }

  private struct State {
    var entries: [PoolRoute: Entry] = [:]
    var isClosed = false
  }

  /// How many workers it can have at one time. A further one traps.
  static let maximumWorkers = 256

  let core: any SharedMailboxCore
  private let router: any RouteRegistry
  private let state = Guarded(State())

  /// - Parameters:
  ///   - core: Of the router's kind.
  ///   - router: Where the events come from: the central's.
  init(core: EventCentral.Core, router: any RouteRegistry) {
    self.core = core.parts.makeSharedMailbox()
    self.router = router
  }

  deinit {
    state.withLock { state in
      for entry in state.entries.values where entry.route.ordinal != 0 {
        core.removeLatestSubscription(entry.subscription)
      }
    }
  }

  // MARK: For consumers

  /// Hands a handler over to a worker's receiver, for the events that are dispatched from now on.
  /// Under the lock of the consumer's registry.
  func add(_ handler: EventHandler, to receiver: Receiver) {
    // All of it under the lock: an event of a generation finds its handler handed over, whichever of
    // the workers registered one since.
    state.withLock { state in
      guard !state.isClosed else { return receiver.add(handler, after: receiver.generation) }
      let entry = state.entries[receiver.route] ?? makeEntry(receiver, &state)
      receiver.add(handler, after: entry.generation)
      entry.generation = receiver.generation
      entry.members[ObjectIdentifier(receiver)] = receiver.timedCount > 0
      subscribe(entry)
    }
  }

  /// None of a receiver's handlers asks for the clock any more (D8). Under the lock of its registry.
  func leaveClock(_ receiver: Receiver) {
    state.withLock { state in
      guard !state.isClosed, let entry = state.entries[receiver.route] else { return }
      entry.members[ObjectIdentifier(receiver)] = false
      if !entry.isTimed { subscribe(entry) }
    }
  }

  /// A worker's receiver has no handler any more, or the worker ends. Under the lock of its registry.
  func leave(_ receiver: Receiver) {
    state.withLock { state in
      guard let entry = state.entries[receiver.route],
        let wasTimed = entry.members.removeValue(forKey: ObjectIdentifier(receiver)),
        !state.isClosed
      else { return }
      if entry.members.isEmpty {
        router.unsubscribe(entry.route.key, entry.subscription)
      } else if wasTimed, !entry.isTimed {
        // As above.
        subscribe(entry)
      }
    }
  }

  private func subscribe(_ entry: Entry) {
    router.subscribe(
      entry.route.key, entry.subscription, generation: entry.generation, timed: entry.isTimed)
  }

  private func makeEntry(_ receiver: Receiver, _ state: inout State) -> Entry {
    let entry = Entry(receiver, index: state.entries.count)
    entry.subscription =
      entry.route.ordinal == 0 ? core.addSubscription(entry) : core.addLatestSubscription(entry)
    state.entries[receiver.route] = entry
    return entry
  }

  // MARK: For the owner, from any thread

  /// Takes the mailbox off its router and ends it, with all its workers (D10).
  ///
  /// `whenEmpty`: what waits is handled first. Without it, what waits is freed and counted.
  func close(whenEmpty: Bool) {
    state.withLock { state in
      guard !state.isClosed else { return }
      state.isClosed = true
      for entry in state.entries.values where !entry.members.isEmpty {
        router.unsubscribe(entry.route.key, entry.subscription)
      }
    }
    if whenEmpty {
      core.closeWhenEmpty()
    } else {
      core.close()
    }
  }
}
