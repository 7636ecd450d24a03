// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The balancer in pure Swift: an immutable snapshot of the threads under a mutex, held for a
/// look-up.
final class LockingBalancer: LockingSink, BalancerCore, @unchecked Sendable {
  // `own` is constant from the end of the initialiser on; everything else is guarded or atomic.
  private let threads = Guarded<LockingSnapshot?>(nil)
  private let chooser: PoolChooser
  private let refusals = Atomic<UInt64>(0)
  private let drops = Atomic<UInt64>(0)
  private let gate = LockingGate()
  private let own: LockingSubscription

  init(_ chooser: PoolChooser) {
    self.chooser = chooser
    own = LockingSubscription(nil, drop: chooser.drop, gate)
    super.init()
    gate.sink = self
  }

  var subscription: Subscription { own.name }

  // MARK: Posting

  override func post(_ run: LockingRun) -> Int? {
    var rest = run
    var isAnyPlaced = false
    while let snapshot = threads.withLock({ $0 }) {
      rest.count = place(rest, snapshot, &isAnyPlaced)
      if rest.count == 0 { return 0 }
      // All that this snapshot knew may have gone while others came: a thread is taken off before
      // it is retired, so that the current snapshot knows better.
      if threads.withLock({ $0 === snapshot }) { break }
    }
    // Relaxed, both: statistics.
    guard isAnyPlaced else {
      refusals.wrappingAdd(UInt64(rest.count), ordering: .relaxed)
      return nil
    }
    // Accepted, and the caller ends them (D4: counted).
    drops.wrappingAdd(UInt64(rest.count), ordering: .relaxed)
    return rest.count
  }

  /// Has a thread chosen for each record, and posts; those for one thread that follow each other
  /// stay together. Returns how many are left, which then are the first.
  private func place(
    _ run: LockingRun, _ snapshot: LockingSnapshot, _ isAnyPlaced: inout Bool
  ) -> Int {
    var left = 0
    var begin = 0
    var chosen = choose(run.first, snapshot)
    while begin < run.count {
      var end = begin + 1
      var next = chosen
      while end < run.count {
        next = choose(run[end], snapshot)
        if next != chosen { break }
        end += 1
      }
      let part = run[begin..<end]
      if post(part, to: chosen, snapshot) {
        isAnyPlaced = true
      } else {
        run[left].address.copyMemory(
          from: part.first.address, byteCount: part.count * run.length)
        left += part.count
      }
      begin = end
      chosen = next
    }
    return left
  }

  /// The thread for a record, with a promise of one; the number of threads if none takes it. Runs
  /// the user's code.
  private func choose(_ record: LockingRecord, _ snapshot: LockingSnapshot) -> Int {
    let entries = snapshot.entries
    guard entries.count > 1, let first = entries.baseAddress else {
      return promise(1, from: 0, snapshot)
    }
    // An optional pointer has the layout of a pointer, and a stored property an offset.
    let loads =
      UnsafeRawPointer(first)
      + MemoryLayout<LockingSnapshot.Entry>.offset(of: \.load).unsafelyUnwrapped
    let stride = MemoryLayout<LockingSnapshot.Entry>.stride
    let index = chooser.choose(record.address, loads, stride: stride, count: entries.count)
    return promise(1, from: index, snapshot)
  }

  /// The thread from `index` on that takes a promise; the number of threads if none does.
  private func promise(_ count: Int, from index: Int, _ snapshot: LockingSnapshot) -> Int {
    let threads = snapshot.entries.count
    for turn in 0..<threads {
      let candidate = (index + turn) % threads
      if snapshot.entries[candidate].load.unsafelyUnwrapped.promise(count) { return candidate }
    }
    return threads
  }

  /// Posts a run that is promised to a thread, or to another if that one has closed. False if all
  /// have.
  private func post(_ run: LockingRun, to chosen: Int, _ snapshot: LockingSnapshot) -> Bool {
    var index = chosen
    for _ in snapshot.entries {
      guard index < snapshot.entries.count else { return false }
      let entry = snapshot.entries[index]
      for number in 0..<run.count { readdress(run[number], entry) }
      if let left = entry.sink._withUnsafeGuaranteedRef({ $0.post(run) }) {
        run.end(first: left, chooser.drop)
        return true
      }
      entry.load.unsafelyUnwrapped.withdraw(run.count)
      index = promise(run.count, from: index + 1, snapshot)
    }
    if index < snapshot.entries.count {
      snapshot.entries[index].load.unsafelyUnwrapped.withdraw(run.count)
    }
    return false
  }

  private func readdress(_ record: LockingRecord, _ entry: LockingSnapshot.Entry) {
    record.header.pointee.subscription = entry.subscription
    record.header.pointee.generation = entry.generation
    // Nobody asked for the time when the dispatch began; it has not returned yet (D8).
    if entry.timed, record.header.pointee.time == 0 {
      record.header.pointee.time = monotonicNanoseconds()
    }
  }

  // MARK: Threads

  func add(_ subscription: Subscription, generation: UInt32, timed: Bool, load: EventLoad) {
    change(subscription, to: .init(generation: generation, timed: timed, load: load))
  }

  func remove(_ subscription: Subscription) {
    change(subscription, to: nil)
  }

  private func change(_ subscription: Subscription, to figures: LockingSnapshot.Figures?) {
    // What the old snapshot held may end with it: outside the mutex.
    let old = threads.withLock { threads in
      let old = threads
      threads = .changing(old, subscription, to: figures, keepsSubscriptions: true)
      return old
    }
    withExtendedLifetime(old) {}
  }

  var refused: UInt64 { refusals.load(ordering: .relaxed) }
  var dropped: UInt64 { drops.load(ordering: .relaxed) }
}
