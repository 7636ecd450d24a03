// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The receivers of one key at one moment. Immutable.
final class LockingSnapshot: @unchecked Sendable {
  struct Entry {
    let subscription: Unmanaged<LockingSubscription>
    let sink: Unmanaged<LockingSink>
    let generation: UInt32
    let timed: Bool
    /// The load of a pool's thread; nil in a router.
    let load: EventLoad?

    init(_ name: Subscription, generation: UInt32, timed: Bool, load: EventLoad? = nil) {
      let subscription = LockingSubscription.of(name)
      self.subscription = .passUnretained(subscription)
      sink = .passUnretained(subscription.sink)
      (self.generation, self.timed, self.load) = (generation, timed, load)
    }
  }

  let entries: UnsafeBufferPointer<Entry>
  /// The sink of the only entry, if there is just one and its sink is an inbox.
  let onlyInbox: Unmanaged<LockingInbox>?
  let isTimed: Bool
  /// Ends a payload of this key; nil for types without references.
  let drop: ((UnsafeMutableRawPointer) -> Void)?
  private let keepsSubscriptions: Bool
  /// Who is told of dispatches to the key, in a router. Retained.
  let observation: Observation?

  struct Observation {
    let instruments: Unmanaged<Instruments>
    let key: UInt
  }

  /// - Parameter keepsSubscriptions: Whether to retain subscriptions, and with them the loads. Without them a
  ///   snapshot keeps nothing of the user's, so that threads may remember it.
  init(_ entries: [Entry], keepsSubscriptions: Bool, _ observation: Observation? = nil) {
    self.observation = observation
    _ = observation?.instruments.retain()
    let memory = UnsafeMutableBufferPointer<Entry>.allocate(capacity: entries.count)
    _ = memory.initialize(from: entries)
    self.entries = UnsafeBufferPointer(memory)
    self.keepsSubscriptions = keepsSubscriptions
    var inbox = entries.count == 1 ? entries[0].sink.takeUnretainedValue() as? LockingInbox : nil
    // What becomes of an event that finds it full is decided with the event at hand.
    if inbox?.bound != nil { inbox = nil }
    onlyInbox = inbox.map { .passUnretained($0) }
    isTimed = entries.contains { $0.timed }
    drop = entries.first.flatMap { $0.subscription._withUnsafeGuaranteedRef { $0.drop } }
    for entry in entries {
      _ = entry.sink.retain()
      if keepsSubscriptions { _ = entry.subscription.retain() }
    }
  }

  deinit {
    for entry in entries {
      entry.sink.release()
      if keepsSubscriptions { entry.subscription.release() }
    }
    entries.deallocate()
    observation?.instruments.release()
  }

  /// A snapshot with a new entry for a subscription, or without it; nil if that has no entries.
  static func changing(
    _ old: LockingSnapshot?, _ subscription: Subscription, to entry: Entry?,
    keepsSubscriptions: Bool = false, _ observation: Observation? = nil
  ) -> LockingSnapshot? {
    var entries = old.map { Array($0.entries) } ?? []
    switch (entries.firstIndex { $0.subscription.toOpaque() == subscription.pointer }, entry) {
    case (let index?, let entry?): entries[index] = entry
    case (let index?, nil): entries.remove(at: index)
    case (nil, let entry?): entries.append(entry)
    case (nil, nil): break
    }
    return entries.isEmpty
      ? nil : LockingSnapshot(entries, keepsSubscriptions: keepsSubscriptions, observation)
  }
}

/// The router in pure Swift: a dictionary of immutable snapshots under a mutex, and what each thread
/// remembers of it.
///
/// The event of a single mailbox is written where it is to wait, with that mailbox's mutex held. Other events
/// are written into memory of the thread's, from where each sink copies them. So nothing is locked while a
/// balancer of the user's looks at an event.
final class LockingRouter: RouterCore {
  private let snapshots = Guarded<[UInt: LockingSnapshot]>([:])
  /// Who is told of dispatches. Guarded by the mutex of `snapshots`, which have copies.
  private nonisolated(unsafe) var instruments: Instruments?
  /// Changes with each subscription, to a number that no other router has; 0 before the first. Written under
  /// the mutex.
  private let version = Atomic<UInt64>(0)
  private static let versions = Atomic<UInt64>(0)
  /// A copy of the global constant, each use of which would ask whether it has been made.
  private let threads = LockingThread.all
  /// Nil for the system's clock.
  private let clock: CentralClock?

  init(_ clock: CentralClock?) {
    self.clock = clock
  }

  /// What the events of a dispatch bear.
  @inline(__always)
  private func note(_ snapshot: LockingSnapshot, _ events: Int) -> Instruments.Note {
    if let observation = snapshot.observation {
      return observation.instruments._withUnsafeGuaranteedRef {
        $0.note(observation.key, events, isTimed: snapshot.isTimed)
      }
    }
    return Instruments.Note(time: snapshot.isTimed ? clock?.now ?? monotonicNanoseconds() : 0)
  }

  func beginOne(key: UInt, lane: UInt8, size: Int, alignment: Int) -> UnsafeMutableRawPointer? {
    guard let route = route(key, threads.kept(or: LockingThread.init)),
      LockingRecord.holds(size, alignment)
    else { return nil }
    return route._withUnsafeGuaranteedRef { snapshot in
      guard let inbox = snapshot.onlyInbox else { return nil }
      let entry = snapshot.entries[0]
      let note = note(snapshot, 1)
      return inbox._withUnsafeGuaranteedRef {
        $0.beginPost(entry, lane: lane, length: LockingRecord.length(payload: size), note)
      }
    }
  }

  func commitOne(_ payload: UnsafeMutableRawPointer) -> Int {
    let record = LockingRecord(address: payload - EnvelopeLayout.payload)
    // Not nil: `beginPost` has set it.
    let inbox = Unmanaged<LockingInbox>.fromOpaque(record.header.pointee.link.unsafelyUnwrapped)
    inbox._withUnsafeGuaranteedRef { $0.finishPost(record) }
    return 1
  }

  func begin(
    key: UInt, lane: UInt8, size: Int, alignment: Int, events: Int, _ state: inout DispatchState
  ) {
    let thread = threads.kept(or: LockingThread.init)
    guard let route = route(key, thread) else { return }
    // What the snapshot names is kept from `takeMemory` to `giveMemory`, also if a dispatch inside of this
    // one has the thread forget the route.
    let entries = route._withUnsafeGuaranteedRef { $0.entries }
    let receivers = entries.count
    let isBoxed = !LockingRecord.holds(size, alignment)
    let length = isBoxed ? LockingRecord.pointerLength : LockingRecord.length(payload: size)
    let first = thread._withUnsafeGuaranteedRef { $0.takeMemory(receivers * events * length) }
    let note = route._withUnsafeGuaranteedRef { self.note($0, events) }
    for (receiver, entry) in entries.enumerated() {
      for event in 0..<events {
        let record = LockingRecord(address: first + (receiver * events + event) * length)
        record.initialize(
          entry.subscription, entry.generation | note.mark, link: record.address + length, lane: lane,
          length: length, time: note.time, flags: isBoxed ? EnvelopeLayout.boxed : 0)
        guard isBoxed else { continue }
        // The records of an event share its box.
        record.pointer =
          receiver == 0
          ? LockingRecord.makeBox(size: size, alignment: alignment, references: receivers)
          : LockingRecord(address: first + event * length).pointer
      }
    }
    state.first = first
    state.payloads = UInt32(truncatingIfNeeded: isBoxed ? events : events * receivers)
    state.events = UInt16(truncatingIfNeeded: events)
    state.snapshot = route.toOpaque()
  }

  /// Leaves the records, and the payloads that are written to them, to `commit`.
  func skip(_ subscription: Subscription, size: Int, _ state: inout DispatchState) {
    guard let first = state.first, let opaque = state.snapshot else { return }
    let snapshot = Unmanaged<LockingSnapshot>.fromOpaque(opaque)
    var run = LockingRun(first: LockingRecord(address: first), count: Int(state.events))
    for entry in snapshot._withUnsafeGuaranteedRef({ $0.entries }) {
      if entry.subscription.toOpaque() == subscription.pointer {
        run.first.header.pointee.flags |= LockingRecord.skipped
      }
      run.first = run[run.count]
    }
  }

  func commit(_ state: inout DispatchState) -> Int {
    var outcome = EventDispatchOutcome()
    commit(&state, &outcome)
    return outcome.accepted + outcome.dropped
  }

  func commit(_ state: inout DispatchState, note: (Subscription, EventDispatchOutcome) -> Void) {
    guard let first = state.first, let opaque = state.snapshot else { return }
    let snapshot = Unmanaged<LockingSnapshot>.fromOpaque(opaque)
    var run = LockingRun(first: LockingRecord(address: first), count: Int(state.events))
    let thread = threads.kept(or: LockingThread.init)
    for entry in snapshot._withUnsafeGuaranteedRef({ $0.entries }) {
      guard !run.first.isSkipped else {
        run.end(first: run.count, snapshot._withUnsafeGuaranteedRef { $0.drop })
        run.first = run[run.count]
        continue
      }
      let before = thread._withUnsafeGuaranteedRef { $0.overflow }
      let left = entry.sink._withUnsafeGuaranteedRef { $0.post(run) }
      let overflow = thread._withUnsafeGuaranteedRef { $0.overflow } - before
      // A dispatch around this one, whose post runs user code, keeps its counts.
      thread._withUnsafeGuaranteedRef { $0.overflow = before }
      var outcome = EventDispatchOutcome()
      outcome.refused = overflow.refused
      outcome.dropped = overflow.dropped
      outcome.displaced = overflow.displaced
      if left != nil {
        outcome.accepted = run.count - overflow.refused - overflow.dropped
      } else {
        outcome.ended = run.count - overflow.refused
      }
      // The address of a receiver that has ended may be another's by now: then it is nobody's.
      note(Subscription(pointer: outcome.ended == 0 ? entry.subscription.toOpaque() : opaque), outcome)
      if left != 0 {
        run.end(first: left ?? run.count, snapshot._withUnsafeGuaranteedRef { $0.drop })
      }
      run.first = run[run.count]
    }
    thread._withUnsafeGuaranteedRef { $0.giveMemory(first) }
  }

  /// The receivers of a key, which the thread remembers until it asks again.
  @inline(__always)
  private func route(_ key: UInt, _ thread: Unmanaged<LockingThread>) -> Unmanaged<LockingSnapshot>? {
    // Acquiring: pairs with `change`, so that a subscription that happened before is seen.
    let version = version.load(ordering: .acquiring)
    return thread._withUnsafeGuaranteedRef { thread in
      thread.route(key, version) {
        // Relaxed: written under the mutex.
        snapshots.withLock { ($0[key], self.version.load(ordering: .relaxed)) }
      }
    }
  }

  func subscribe(_ key: UInt, _ subscription: Subscription, generation: UInt32, timed: Bool) {
    change(key, subscription, to: .init(subscription, generation: generation, timed: timed))
  }

  func unsubscribe(_ key: UInt, _ subscription: Subscription) {
    change(key, subscription, to: nil)
  }

  func observe(by instruments: Instruments?) {
    let old = snapshots.withLock { snapshots in
      self.instruments = instruments
      let old = snapshots
      for (key, snapshot) in old {
        snapshots[key] = LockingSnapshot(
          Array(snapshot.entries), keepsSubscriptions: false,
          instruments.map { .init(instruments: .passUnretained($0), key: key) })
      }
      didChange()
      return old
    }
    withExtendedLifetime(old) {}
  }

  /// Under the mutex.
  private func didChange() {
    let next = Self.versions.wrappingAdd(1, ordering: .relaxed).newValue
    // Releasing: pairs with `route`, which then looks for the snapshot under the mutex.
    version.store(next, ordering: .releasing)
  }

  private func change(
    _ key: UInt, _ subscription: Subscription, to entry: LockingSnapshot.Entry?
  ) {
    // What the old snapshot held may end with it: after the unlock.
    let old = snapshots.withLock { snapshots in
      let old = snapshots[key]
      snapshots[key] = LockingSnapshot.changing(
        old, subscription, to: entry, instruments.map { .init(instruments: .passUnretained($0), key: key) })
      didChange()
      return old
    }
    withExtendedLifetime(old) {}
  }
}
