// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Several consumers as one receiver in a central's router: events of a type that any of them handles wait
/// here, and whichever consumer is idle first takes them.
///
/// A consumer becomes a worker by being made with this mailbox (`ConsumerHooks.shared`). It registers the
/// types of its handlers here, and leaves when it ends. All workers have to handle the same types: an event
/// for which the worker that takes it has no handler is skipped and counted, even if another worker has one
/// (`EventPoolSharedBalancer` says why).
///
/// Synchronization: `state` has a mutex; everything else is constant. Lock order: the state of a consumer's
/// registry, then `state`, then a router's mutex.
final class SharedMailbox: @unchecked Sendable {
  /// The events of one type for all workers, or those for one conflated handler of each worker: the first
  /// such handlers of all workers for a type share an entry, the second share another, and so on.
  final class Entry: @unchecked Sendable {
    // Constant, except for what `state` guards.

    let route: PoolRoute
    /// The index in each worker's table of receivers, from 0 without gaps.
    let index: Int
    /// Ends a payload; nil for types without references.
    let drop: (@Sendable (UnsafeMutableRawPointer) -> Void)?
    /// As the first worker's receiver has it; the workers have the same handlers.
    let keys: ConflationKeys?

    // Guarded by the mailbox's `state`.
    fileprivate var subscription: Subscription!
    /// Counts the registrations of all workers, whose receivers share these generations.
    fileprivate var generation: UInt32 = 0
    /// Also for workers that come later, and take what was dispatched before.
    fileprivate var observed = ObservedGenerations()
    /// The workers' receivers that have a handler, and whether each of them needs the time.
    fileprivate var members: [ObjectIdentifier: Bool] = [:]
    fileprivate var isTimed: Bool { members.values.contains(true) }

    fileprivate init(_ receiver: Receiver, index: Int) {
      route = receiver.route
      drop = receiver.drop
      keys = receiver.keys
      self.index = index
    }
  }

  private struct State {
    var entries: [PoolRoute: Entry] = [:]
    var isClosed = false
  }

  /// How many workers there can be at one time. A further one traps.
  static let maximumWorkers = 256

  let core: any SharedMailboxCore
  /// What statistics call the mailbox. Its workers have probes of their own, which count what is handled.
  let probe: ConsumerProbe
  private let instruments: Instruments
  private let router: any RouteRegistry
  private let names: ReceiverNames
  private let name: String
  private let state = Guarded(State())

  /// - Parameters:
  ///   - router: The central's router, of the same core.
  ///   - capacity: How many events may wait for all workers together.
  ///   - name: What outcomes call it, as they do other pools.
  ///   - receiverName: What statistics call it.
  init(
    _ basis: CentralBasis, router: any RouteRegistry, capacity: EventMailboxCapacity = .unbounded, name: String = "",
    receiverName: String = ""
  ) {
    self.name = name
    core = basis.core.parts.makeSharedMailbox(capacity)
    names = basis.names
    instruments = basis.instruments
    probe = instruments.makeProbe(receiverName)
    self.router = router
    instruments.add(self)
  }

  deinit {
    instruments.remove(probe) { reading }
    state.withLock { state in
      for entry in state.entries.values {
        names.remove(entry.subscription)
        if entry.route.ordinal != 0 { core.removeLatestSubscription(entry.subscription) }
      }
    }
  }

  // MARK: For consumers

  /// Hands a handler over to a worker's receiver, for events that are dispatched from now on. Under the
  /// lock of the consumer's registry.
  func add(_ handler: EventHandler, to receiver: Receiver) {
    // In one critical section: a generation is published when all workers' handlers up to it are handed
    // over.
    state.withLock { state in
      guard let entry = entry(of: receiver, &state) else { return receiver.add(handler, after: receiver.generation) }
      receiver.add(handler, after: entry.generation)
      entry.generation = receiver.generation
      entry.members[ObjectIdentifier(receiver)] = receiver.timedCount > 0
      subscribe(entry, state)
    }
  }

  /// Begins or stops to count the events of a worker's receiver, from the next generation on; also called for each new
  /// receiver, which learns of earlier observations. Under the lock of the consumer's registry.
  func observe(_ isObserved: Bool, _ receiver: Receiver) {
    state.withLock { state in
      guard let entry = entry(of: receiver, &state) else {
        return receiver.observe(isObserved, after: receiver.generation)
      }
      entry.observed.change(to: isObserved, at: entry.generation + 1)
      receiver.observe(entry.observed, after: entry.generation)
      entry.generation = receiver.generation
      subscribe(entry, state)
    }
  }

  /// As `RouteRegistry.observe`.
  func observe(by instruments: Instruments?) { router.observe(by: instruments) }

  /// Called when no handler of a receiver needs the time any more (D8). Under its registry's lock.
  func leaveClock(_ receiver: Receiver) {
    state.withLock { state in
      guard !state.isClosed, let entry = state.entries[receiver.route] else { return }
      entry.members[ObjectIdentifier(receiver)] = false
      if !entry.isTimed { subscribe(entry, state) }
    }
  }

  /// Called when a receiver has no handler any more, or its worker ends, or takes nothing more. Under its
  /// registry's lock.
  func leave(_ receiver: Receiver) {
    state.withLock { state in
      guard let entry = state.entries[receiver.route],
        let wasTimed = entry.members.removeValue(forKey: ObjectIdentifier(receiver)),
        !state.isClosed
      else { return }
      if entry.members.isEmpty {
        router.unsubscribe(entry.route.key, entry.subscription)
      } else if wasTimed, !entry.isTimed {
        subscribe(entry, state)
      }
    }
  }

  private func subscribe(_ entry: Entry, _ state: State) {
    guard !state.isClosed, !entry.members.isEmpty else { return }
    router.subscribe(
      entry.route.key, entry.subscription, generation: entry.generation, timed: entry.isTimed)
  }

  /// Also in a closed mailbox, whose events still wait for the workers: what begins now is not for them. Nil if it was
  /// closed before any worker had such a handler, so that none of these events waits.
  private func entry(of receiver: Receiver, _ state: inout State) -> Entry? {
    if let entry = state.entries[receiver.route] { return entry }
    return state.isClosed ? nil : makeEntry(receiver, &state)
  }

  private func makeEntry(_ receiver: Receiver, _ state: inout State) -> Entry {
    let entry = Entry(receiver, index: state.entries.count)
    entry.subscription =
      entry.route.ordinal == 0 ? core.addSubscription(entry) : core.addLatestSubscription(entry)
    names.set(entry.subscription, name)
    state.entries[receiver.route] = entry
    return entry
  }

  // MARK: For the owner, from any thread

  /// Whether it takes nothing more.
  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// Unsubscribes the mailbox and ends it with all its workers (D10). `whenEmpty`: what waits is handled
  /// first; otherwise it is freed and counted.
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

  /// Frees and counts what waits after the end of the mailbox and of all its workers. A second call does nothing.
  func dropAll() {
    core.dropAll()
    instruments.remove(probe) { reading }
  }
}

extension SharedMailbox: Instrumented {
  /// Its workers count what is handled; of what came, its own counts are kept after its end.
  func followInstruments() { if instruments.isObserved { probe.noteObserved() } }

  var waiting: Int { core.waiting }

  var statistics: EventMailboxStatistics { core.statistics(core.counts()) }

  var reading: ReceiverReading {
    // As `Consumer.figures`.
    let counts = core.counts()
    return ReceiverReading(
      mailbox: core.statistics(counts),
      counts: EventThreadStatistics(delivered: 0, skipped: core.supersededCount, cancelled: counts.dropped))
  }
}
