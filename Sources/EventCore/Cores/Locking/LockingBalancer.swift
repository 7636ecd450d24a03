// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The balancer in pure Swift: an immutable snapshot of the threads under a mutex, retained for each event.
final class LockingBalancer: LockingSink, BalancerCore, @unchecked Sendable {
  // `own` is constant; everything else is guarded or atomic.
  private let threads = Guarded<LockingSnapshot?>(nil)
  private let chooser: PoolChooser
  private let refusals = Atomic<UInt64>(0)
  private let drops = Atomic<UInt64>(0)
  private let gate = Gate()
  private let own: LockingSubscription

  init(_ chooser: PoolChooser) {
    self.chooser = chooser
    own = LockingSubscription(nil, drop: chooser.drop, gate)
    super.init()
    gate.balancer = self
  }

  /// The way in for routes, which threads remember: it keeps nothing alive.
  private final class Gate: LockingSink, @unchecked Sendable {
    // Written once, before anybody else knows the gate.
    weak var balancer: LockingBalancer?

    override func post(_ run: LockingRun) -> Int? { balancer.flatMap { $0.post(run) } }
  }

  var subscription: Subscription { own.name }
  var refused: UInt64 { refusals.load(ordering: .relaxed) }
  var dropped: UInt64 { drops.load(ordering: .relaxed) }

  // MARK: Posting

  /// What became of a record. One that is not accepted is the caller's to end.
  private enum Fate { case accepted, refused, unreceived }

  override func post(_ run: LockingRun) -> Int? {
    var (left, unreceived) = (0, 0)
    for index in 0..<run.count {
      let fate = place(run[index])
      guard fate != .accepted else { continue }
      // The caller ends the first ones.
      run[left].address.copyMemory(from: run[index].address, byteCount: run.length)
      left += 1
      if fate == .unreceived { unreceived += 1 }
    }
    // Relaxed, both: statistics.
    guard left < run.count else {
      refusals.wrappingAdd(UInt64(unreceived), ordering: .relaxed)
      return nil
    }
    // The run counts as accepted. What found no thread any more is dropped (D4: counted).
    if unreceived > 0 { drops.wrappingAdd(UInt64(unreceived), ordering: .relaxed) }
    return left
  }

  /// Posts a record to the thread that is chosen for it, or to the next one that has not closed. If that is full, its
  /// overflow policy says what becomes of the record.
  private func place(_ record: LockingRecord) -> Fate {
    let run = LockingRun(first: record, count: 1)
    while let snapshot = threads.withLock({ $0 }) {
      let entries = snapshot.entries
      let chosen = choose(record, entries)
      for turn in 0..<entries.count {
        let entry = entries[(chosen + turn) % entries.count]
        // Every thread of a pool has a load.
        let load = entry.load.unsafelyUnwrapped
        guard load.promise(1) else { continue }
        record.header.pointee.subscription = entry.subscription
        record.header.pointee.generation = entry.generation | record.header.pointee.generation & EnvelopeLayout.mark
        // Nobody asked for the time when the dispatch began; it has not returned yet (D8).
        if entry.timed, record.header.pointee.time == 0 {
          record.header.pointee.time = chooser.clock?.now ?? monotonicNanoseconds()
        }
        let (left, overflow) = post(run, to: entry)
        if overflow.count > 0, load.lose(overflow.count) { entry.sink._withUnsafeGuaranteedRef { $0.lookAgain() } }
        if left != nil { return .accepted }
        if overflow.refused > 0 { return .refused }
        load.withdraw(1)
      }
      // All threads of this snapshot may have closed while others were added. A thread is removed before it
      // closes, so that the current snapshot knows.
      if threads.withLock({ $0 === snapshot }) { break }
    }
    return .unreceived
  }

  /// Posts a run, and ends what the caller would have to. Returns what the sink did, and what the overflow policy did.
  private func post(
    _ run: LockingRun, to entry: LockingSnapshot.Entry
  ) -> (left: Int?, overflow: LockingThread.Overflow) {
    let thread = LockingThread.all.kept(or: LockingThread.init)
    let before = thread._withUnsafeGuaranteedRef { $0.overflow }
    let left = entry.sink._withUnsafeGuaranteedRef { $0.post(run) }
    let after = thread._withUnsafeGuaranteedRef { $0.overflow }
    if let left, left > 0 {
      // Code of the user's, whose own dispatches are not counted here.
      run.end(first: left, chooser.drop)
      thread._withUnsafeGuaranteedRef { $0.overflow = after }
    }
    return (left, after - before)
  }

  /// The number of the thread for a record. Runs code of the user's.
  private func choose(
    _ record: LockingRecord, _ entries: UnsafeBufferPointer<LockingSnapshot.Entry>
  ) -> Int {
    guard entries.count > 1, let first = entries.baseAddress else { return 0 }
    // An optional reference has the layout of a pointer, and a stored property has an offset.
    let loads =
      UnsafeRawPointer(first)
      + MemoryLayout<LockingSnapshot.Entry>.offset(of: \.load).unsafelyUnwrapped
    let stride = MemoryLayout<LockingSnapshot.Entry>.stride
    return chooser.choose(record.address, loads, stride: stride, count: entries.count)
  }

  // MARK: Threads

  func add(_ subscription: Subscription, generation: UInt32, timed: Bool, load: EventLoad) {
    change(
      subscription, to: .init(subscription, generation: generation, timed: timed, load: load))
  }

  func remove(_ subscription: Subscription) {
    change(subscription, to: nil)
  }

  private func change(_ subscription: Subscription, to entry: LockingSnapshot.Entry?) {
    // What the old snapshot held may end with it: after the unlock.
    let old = threads.withLock { threads in
      let old = threads
      threads = .changing(old, subscription, to: entry, keepsSubscriptions: true)
      return old
    }
    withExtendedLifetime(old) {}
  }
}
