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
  let isTimed: Bool
  /// Ends a payload of this key; nil for types without references.
  let drop: ((UnsafeMutableRawPointer) -> Void)?

  /// - Parameter keepsSubscriptions: Whether to retain subscriptions, and with them the loads. Without them a
  ///   snapshot keeps nothing of the user's, so that threads may remember it.
  private let keepsSubscriptions: Bool

  init(_ entries: [Entry], keepsSubscriptions: Bool) {
    let memory = UnsafeMutableBufferPointer<Entry>.allocate(capacity: entries.count)
    _ = memory.initialize(from: entries)
    self.entries = UnsafeBufferPointer(memory)
    self.keepsSubscriptions = keepsSubscriptions
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
  }

  /// A snapshot with a new entry for a subscription, or without it; nil if that has no entries.
  static func changing(
    _ old: LockingSnapshot?, _ subscription: Subscription, to entry: Entry?,
    keepsSubscriptions: Bool = false
  ) -> LockingSnapshot? {
    var entries = old.map { Array($0.entries) } ?? []
    let index = entries.firstIndex { $0.subscription.toOpaque() == subscription.pointer }
    let place = index ?? entries.count
    entries.replaceSubrange(place..<(index == nil ? place : place + 1), with: entry.map { [$0] } ?? [])
    return entries.isEmpty
      ? nil : LockingSnapshot(entries, keepsSubscriptions: keepsSubscriptions)
  }
}

/// The router in pure Swift: a dictionary of immutable snapshots under a mutex, and what each
/// thread remembers of it.
///
/// A dispatch writes its records into memory of the thread's, from where each sink copies them under its own
/// mutex. So nothing is locked while a payload is written, or while a balancer of the user's looks at it.
final class LockingRouter: RouterCore {
  private let snapshots = Guarded<[UInt: LockingSnapshot]>([:])
  /// Changes with each subscription, to a number that no other router has; 0 before the first. Written under
  /// the mutex.
  private let version = Atomic<UInt64>(0)
  private static let versions = Atomic<UInt64>(0)
  /// A copy of the global constant, each use of which would ask whether it has been made.
  private let threads = LockingThread.key

  func beginOne(key: UInt, lane: UInt8, size: Int, alignment: Int) -> UnsafeMutableRawPointer? {
    let thread = LockingThread.current(threads)
    // Acquiring: pairs with `change`, so that a subscription that happened before is seen.
    let version = version.load(ordering: .acquiring)
    let route = thread.pointee.route(key, version) { look(key) }
    let length = LockingRecord.length(payload: size)
    guard let only = route.pointee.only, LockingRecord.holds(size, alignment) else { return nil }
    let record = LockingRecord(address: thread.pointee.takeMemory(length))
    record.initialize(
      only, lane: lane, length: length, time: only.timed ? monotonicNanoseconds() : 0)
    // No other record follows, so the link tells `commitOne` the route.
    record.header.pointee.link = UnsafeMutableRawPointer(mutating: UnsafeRawPointer(route))
    return record.address + EnvelopeLayout.payload
  }

  func commitOne(_ payload: UnsafeMutableRawPointer) -> Int {
    let record = LockingRecord(address: payload - EnvelopeLayout.payload)
    let route = record.header.pointee.link.unsafelyUnwrapped
      .assumingMemoryBound(to: LockingThread.Route.self)
    // Read now: a balancer of the user's may dispatch, and have another route remembered here. What these two
    // name is kept until `giveMemory`.
    let (only, snapshot) = (route.pointee.only.unsafelyUnwrapped, route.pointee.snapshot)
    let run = LockingRun(first: record, count: 1, length: record.length)
    record.header.pointee.link = record.address + run.length
    let left = only.sink._withUnsafeGuaranteedRef { $0.post(run) }
    if left != 0, let snapshot {
      snapshot._withUnsafeGuaranteedRef { record.end(payloadMoved: false, $0.drop) }
    }
    LockingThread.current(threads).pointee.giveMemory(record.address)
    return left == nil ? 0 : 1
  }

  func begin(
    key: UInt, lane: UInt8, size: Int, alignment: Int, events: Int, _ state: inout DispatchState
  ) {
    let thread = LockingThread.current(threads)
    // Acquiring, as in `beginOne`.
    let version = version.load(ordering: .acquiring)
    let route = thread.pointee.route(key, version) { look(key) }
    guard let snapshot = route.pointee.snapshot else { return }
    snapshot._withUnsafeGuaranteedRef { begin(thread, $0, lane, size, alignment, events, &state) }
  }

  @inline(never)
  private func begin(
    _ thread: UnsafeMutablePointer<LockingThread>, _ snapshot: LockingSnapshot, _ lane: UInt8,
    _ size: Int, _ alignment: Int, _ events: Int, _ state: inout DispatchState
  ) {
    let receivers = snapshot.entries.count
    let isBoxed = !LockingRecord.holds(size, alignment)
    let length = isBoxed ? LockingRecord.boxedLength : LockingRecord.length(payload: size)
    let first = thread.pointee.takeMemory(receivers * events * length)
    let time = snapshot.isTimed ? monotonicNanoseconds() : 0
    var address = first
    for entry in snapshot.entries {
      for _ in 0..<events {
        LockingRecord(address: address).initialize(
          entry, lane: lane, length: length, time: time,
          flags: isBoxed ? EnvelopeLayout.boxed : 0)
        address += length
      }
    }
    if isBoxed { makeBoxes(size, alignment, events, receivers, length, first) }
    state.first = first
    state.receivers = UInt32(truncatingIfNeeded: receivers)
    state.payloads = UInt32(truncatingIfNeeded: isBoxed ? events : events * receivers)
    state.shared = isBoxed
    state.events = UInt16(truncatingIfNeeded: events)
    state.snapshot = Unmanaged.passUnretained(snapshot).toOpaque()
  }

  /// One box for each event, which its records share.
  private func makeBoxes(
    _ size: Int, _ alignment: Int, _ events: Int, _ receivers: Int, _ length: Int,
    _ first: UnsafeMutableRawPointer
  ) {
    for event in 0..<events {
      let box = LockingRecord.makeBox(size: size, alignment: alignment, references: receivers)
      for receiver in 0..<receivers {
        LockingRecord(address: first + (receiver * events + event) * length).pointer = box
      }
    }
  }

  func commit(_ state: inout DispatchState) -> Int {
    guard let first = state.first, let opaque = state.snapshot else { return 0 }
    let record = LockingRecord(address: first)
    let snapshot = Unmanaged<LockingSnapshot>.fromOpaque(opaque)
    var run = LockingRun(first: record, count: Int(state.events), length: record.length)
    var accepted = 0
    snapshot._withUnsafeGuaranteedRef { snapshot in
      for entry in snapshot.entries {
        let left = entry.sink._withUnsafeGuaranteedRef { $0.post(run) }
        if left != nil { accepted += 1 }
        if left != 0 { run.end(first: left ?? run.count, snapshot.drop) }
        run.first = run[run.count]
      }
    }
    LockingThread.current(threads).pointee.giveMemory(first)
    return accepted
  }

  private func look(_ key: UInt) -> (snapshot: LockingSnapshot?, version: UInt64) {
    // Relaxed: written under the mutex.
    snapshots.withLock { ($0[key], version.load(ordering: .relaxed)) }
  }

  func subscribe(_ key: UInt, _ subscription: Subscription, generation: UInt32, timed: Bool) {
    change(key, subscription, to: .init(subscription, generation: generation, timed: timed))
  }

  func unsubscribe(_ key: UInt, _ subscription: Subscription) {
    change(key, subscription, to: nil)
  }

  private func change(
    _ key: UInt, _ subscription: Subscription, to entry: LockingSnapshot.Entry?
  ) {
    // What the old snapshot held may end with it: after the unlock.
    let old = snapshots.withLock { snapshots in
      let old = snapshots[key]
      snapshots[key] = LockingSnapshot.changing(old, subscription, to: entry)
      let next = Self.versions.wrappingAdd(1, ordering: .relaxed).newValue
      // Releasing: pairs with `begin`, which then looks for the snapshot under the mutex.
      version.store(next, ordering: .releasing)
      return old
    }
    withExtendedLifetime(old) {}
  }
}
