// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The receivers of one key at one moment. Immutable.
final class LockingSnapshot: @unchecked Sendable {
  struct Entry {
    /// The load of a pool's thread; nil in a router. The first field, for `LockingBalancer.choose`.
    let load: EventLoad?
    let subscription: Unmanaged<LockingSubscription>
    let sink: Unmanaged<LockingSink>
    let generation: UInt32
    let timed: Bool

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
  /// What all of this refers to.
  private let kept: [AnyObject?]

  /// Retains subscriptions only with loads, which their targets keep. Otherwise a snapshot keeps nothing of the user's but
  /// the keys of a conflated subscription that was not removed, so that threads may remember it.
  init(_ entries: [Entry]) {
    let memory = UnsafeMutableBufferPointer<Entry>.allocate(capacity: entries.count)
    _ = memory.initialize(from: entries)
    self.entries = UnsafeBufferPointer(memory)
    let sinks = entries.map { $0.sink.takeUnretainedValue() }
    onlyInbox = (sinks.count == 1 ? sinks[0] as? LockingInbox : nil).map { .passUnretained($0) }
    isTimed = entries.contains { $0.timed }
    drop = entries.first.flatMap { $0.subscription._withUnsafeGuaranteedRef { $0.drop } }
    kept = sinks + entries.map { $0.load == nil ? nil : $0.subscription.takeUnretainedValue() }
  }

  deinit { entries.deallocate() }

  /// A snapshot with a new entry for a subscription, or without it; nil if that has no entries.
  static func changing(
    _ old: LockingSnapshot?, _ subscription: Subscription, to entry: Entry?, raising other: RaisedSubscription? = nil
  ) -> LockingSnapshot? {
    var entries = old.map { Array($0.entries) } ?? []
    if let other, let index = entries.firstIndex(where: { $0.subscription.toOpaque() == other.subscription.pointer }) {
      entries[index] = Entry(other.subscription, generation: other.generation, timed: entries[index].timed)
    }
    switch (entries.firstIndex { $0.subscription.toOpaque() == subscription.pointer }, entry) {
    case (let index?, let entry?): entries[index] = entry
    case (let index?, nil): entries.remove(at: index)
    case (nil, let entry?): entries.append(entry)
    case (nil, nil): break
    }
    return entries.isEmpty ? nil : LockingSnapshot(entries)
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
  /// Who is told of dispatches; nil for nobody.
  private let instruments = Atomic<Unmanaged<Instruments>?>(nil)
  /// Kept as long as the router, since a dispatch may be about to tell it. A central has one.
  private let kept = Guarded<Instruments?>(nil)
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
  private func note(_ key: UInt, _ snapshot: LockingSnapshot, _ events: Int) -> Instruments.Note {
    // Acquiring: pairs with `observe`, so that whoever dispatches after that is told.
    if let instruments = instruments.load(ordering: .acquiring) {
      return instruments._withUnsafeGuaranteedRef { $0.note(key, events, isTimed: snapshot.isTimed) }
    }
    return Instruments.Note(time: snapshot.isTimed ? clock?.now ?? monotonicNanoseconds() : 0)
  }

  func beginOne(key: UInt, lane: UInt8, size: Int, alignment: Int) -> UnsafeMutableRawPointer? {
    let thread = threads.kept(or: LockingThread.init)
    guard let route = route(key, thread), LockingRecord.holds(size, alignment) else { return nil }
    return route._withUnsafeGuaranteedRef { snapshot in
      guard let inbox = snapshot.onlyInbox else { return nil }
      let note = note(key, snapshot, 1)
      let payload = inbox._withUnsafeGuaranteedRef {
        $0.beginPost(snapshot.entries[0], lane: lane, length: LockingRecord.length(payload: size), note)
      }
      if payload == nil { thread._withUnsafeGuaranteedRef { $0.note = note } }
      return payload
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
    // Also if the receiver that refused has left the router meanwhile: it is this dispatch's, and no later one's.
    let told = thread._withUnsafeGuaranteedRef { $0.note.take() }
    guard let route = route(key, thread) else { return }
    // What the snapshot names is kept from `takeMemory` to `giveMemory`, also if a dispatch inside of this
    // one has the thread forget the route.
    let entries = route._withUnsafeGuaranteedRef { $0.entries }
    let receivers = entries.count
    let isBoxed = !LockingRecord.holds(size, alignment)
    let length = isBoxed ? LockingRecord.pointerLength : LockingRecord.length(payload: size)
    let first = thread._withUnsafeGuaranteedRef { $0.takeMemory(receivers * events * length) }
    let note = told ?? route._withUnsafeGuaranteedRef { self.note(key, $0, events) }
    for (receiver, entry) in entries.enumerated() {
      for event in 0..<events {
        let record = LockingRecord(address: first + (receiver * events + event) * length)
        record.initialize(
          entry.subscription, entry.generation | note.mark, link: record.address + length, lane: lane,
          length: length, time: note.time, flags: isBoxed ? EnvelopeLayout.boxed : 0)
        if isBoxed { record.pointer = LockingRecord.makeBox(size: size, alignment: alignment) }
      }
    }
    state.first = first
    state.payloads = UInt32(truncatingIfNeeded: events * receivers)
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
    let drop = snapshot._withUnsafeGuaranteedRef { $0.drop }
    var run = LockingRun(first: LockingRecord(address: first), count: Int(state.events))
    for entry in snapshot._withUnsafeGuaranteedRef({ $0.entries }) {
      if run.first.isSkipped {
        for index in 0..<run.count { run[index].end(drop) }
      } else {
        var post = LockingPost(drop: drop)
        entry.sink._withUnsafeGuaranteedRef { $0.post(run, &post) }
        // The address of a receiver that has ended may be another's by now: then it is nobody's.
        note(
          Subscription(pointer: post.outcome.ended == 0 ? entry.subscription.toOpaque() : opaque), post.outcome)
      }
      run.first = run[run.count]
    }
    threads.kept(or: LockingThread.init)._withUnsafeGuaranteedRef { $0.giveMemory(first) }
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

  func subscribe(
    _ key: UInt, _ subscription: Subscription, ordinal: Int, generation: UInt32, timed: Bool,
    raising other: RaisedSubscription?
  ) {
    change(key, subscription, to: .init(subscription, generation: generation, timed: timed), raising: other)
  }

  func unsubscribe(_ key: UInt, _ subscription: Subscription) {
    change(key, subscription, to: nil)
  }

  func observe(by instruments: Instruments?) {
    if let instruments { kept.withLock { $0 = instruments } }
    // Releasing: pairs with `note`.
    self.instruments.store(instruments.map { .passUnretained($0) }, ordering: .releasing)
  }

  private func change(
    _ key: UInt, _ subscription: Subscription, to entry: LockingSnapshot.Entry?, raising other: RaisedSubscription? = nil
  ) {
    let old = snapshots.withLock { snapshots in
      let old = snapshots[key]
      snapshots[key] = .changing(old, subscription, to: entry, raising: other)
      let next = Self.versions.wrappingAdd(1, ordering: .relaxed).newValue
      // Releasing: pairs with `route`, which then looks for the snapshot under the mutex.
      version.store(next, ordering: .releasing)
      return old
    }
    // The old snapshot ends after the unlock.
    withExtendedLifetime(old) {}
  }
}
