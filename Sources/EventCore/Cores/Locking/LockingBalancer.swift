// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The balancer in pure Swift: an immutable snapshot of the threads under a mutex, retained for each event.
final class LockingBalancer: LockingSink, BalancerCore, @unchecked Sendable {
  // `own` is constant; everything else is guarded or atomic.
  private let threads = Guarded<LockingSnapshot?>(nil)
  private let chooser: PoolChooser
  private let refusals = Atomic<UInt64>(0)
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

    override func place(_ record: LockingRecord, _ post: inout LockingPost) -> LockingFate {
      balancer?.place(record, &post) ?? .ended
    }

    override func post(_ run: LockingRun, _ post: inout LockingPost) {
      if let balancer { balancer.post(run, &post) } else { super.post(run, &post) }
    }
  }

  /// An event that was promised to a thread, and went for nothing.
  private struct Loss {
    let snapshot: LockingSnapshot
    let index: Int

    func count() {
      let entry = snapshot.entries[index]
      // As in `put`: every thread of a pool has a load.
      if entry.load.unsafelyUnwrapped.lose(1) { entry.sink._withUnsafeGuaranteedRef { $0.lookAgain() } }
    }
  }

  var subscription: Subscription { own.name }
  var refused: UInt64 { refusals.load(ordering: .relaxed) }

  // MARK: Posting

  override func place(_ record: LockingRecord, _ post: inout LockingPost) -> LockingFate {
    let (fate, loss) = put(record, &post)
    loss?.count()
    return fate
  }

  /// How many records behind the first, and how many threads, the other core handles at a time (SLICE of
  /// balancer_post.c).
  private static let slice = 63

  /// Threads are chosen as on the other core: for the first record, then for a slice before those for the first threads
  /// are posted. So what is lost of these counts afterwards.
  override func post(_ run: LockingRun, _ post: inout LockingPost) {
    var losses: [Loss] = []
    for index in 0..<run.count {
      if index % Self.slice == 1 {
        for loss in losses { loss.count() }
        losses.removeAll(keepingCapacity: true)
      }
      let (fate, loss) = put(run[index], &post)
      post.finish(run[index], fate)
      if let loss, loss.index < Self.slice { losses.append(loss) } else { loss?.count() }
    }
    for loss in losses { loss.count() }
  }

  /// Posts a record to the thread that is chosen for it, or to the next one that has not closed. If that is full, its
  /// overflow policy says what becomes of the record.
  private func put(_ record: LockingRecord, _ post: inout LockingPost) -> (LockingFate, Loss?) {
    while let snapshot = threads.withLock({ $0 }) {
      let entries = snapshot.entries
      let chosen = choose(record, entries)
      search: for turn in 0..<entries.count {
        let index = (chosen + turn) % entries.count
        let entry = entries[index]
        // Every thread of a pool has a load.
        let load = entry.load.unsafelyUnwrapped
        guard load.promise(1) else { continue }
        record.header.pointee.subscription = entry.subscription
        record.header.pointee.generation = entry.generation | record.header.pointee.generation & EnvelopeLayout.mark
        // Nobody asked for the time when the dispatch began; it has not returned yet (D8).
        if entry.timed, record.header.pointee.time == 0 {
          record.header.pointee.time = chooser.clock?.now ?? monotonicNanoseconds()
        }
        // A post of its own, in the time of the whole: that one thread is full says nothing about the next.
        var own = LockingPost(drop: post.drop)
        own.deadline = post.deadline
        let fate = entry.sink._withUnsafeGuaranteedRef { $0.place(record, &own) }
        post.deadline = own.deadline
        switch fate {
        case .accepted: return (fate, nil)
        case .superseded, .displacing, .dropped, .refused: return (fate, Loss(snapshot: snapshot, index: index))
        case .ended:
          load.withdraw(1)
          // Closed after `removeAll`, whose mutex orders the two (balancer_post.c, R1 to A3). To go on would break the
          // order of those that are chosen for this thread.
          if threads.withLock({ $0 == nil }) { break search }
        }
      }
      // All threads of this snapshot may have closed while others were added. A thread is removed before it
      // closes, so that the current snapshot knows.
      if threads.withLock({ $0 === snapshot }) { break }
    }
    // Relaxed: a statistic.
    refusals.wrappingAdd(1, ordering: .relaxed)
    return (.ended, nil)
  }

  /// The number of the thread for a record. Runs code of the user's.
  private func choose(
    _ record: LockingRecord, _ entries: UnsafeBufferPointer<LockingSnapshot.Entry>
  ) -> Int {
    guard entries.count > 1, let first = entries.baseAddress else { return 0 }
    // An entry begins with its load, and an optional reference has the layout of a pointer.
    let (loads, stride) = (UnsafeRawPointer(first), MemoryLayout<LockingSnapshot.Entry>.stride)
    return chooser.choose(record.address, loads, stride: stride, count: entries.count)
  }

  // MARK: Threads

  func add(_ subscription: Subscription, generation: UInt32, timed: Bool, load: EventLoad) {
    replace { .changing($0, subscription, to: .init(subscription, generation: generation, timed: timed, load: load)) }
  }

  func remove(_ subscription: Subscription) {
    replace { .changing($0, subscription, to: nil) }
  }

  func removeAll() {
    replace { _ in nil }
  }

  private func replace(by next: (LockingSnapshot?) -> LockingSnapshot?) {
    // What the old snapshot held may end with it: after the unlock.
    let old = threads.withLock { threads in
      let old = threads
      threads = next(old)
      return old
    }
    withExtendedLifetime(old) {}
  }
}
