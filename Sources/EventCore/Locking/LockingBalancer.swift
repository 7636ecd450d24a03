// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The balancer in pure Swift: an immutable snapshot of the threads under a mutex, held for a
/// look-up.
final class LockingBalancer: BalancerCore, LockingSink, @unchecked Sendable {
  // `own` is constant from the end of the initialiser on; everything else is guarded or atomic.
  private let threads = Guarded<LockingSnapshot?>(nil)
  private let chooser: PoolChooser
  private let refusals = Atomic<UInt64>(0)
  private let drops = Atomic<UInt64>(0)
  private var own: LockingSubscription!

  private typealias Envelope = UnsafeMutableRawPointer

  init(_ chooser: PoolChooser) {
    self.chooser = chooser
    own = LockingSubscription(drop: chooser.drop, self)
  }

  var subscription: Subscription {
    Subscription(pointer: Unmanaged.passUnretained(own).toOpaque())
  }

  // MARK: Posting

  func post(_ first: UnsafeMutableRawPointer, _ last: UnsafeMutableRawPointer, count: Int) -> Bool {
    var rest = Rest(first: first, count: count)
    while let snapshot = threads.withLock({ $0 }) {
      place(&rest, snapshot)
      if rest.count == 0 { return true }
      // All that this snapshot knew may have gone while others came: a thread is taken off before
      // it is retired, so that the current snapshot knows better.
      if threads.withLock({ $0 === snapshot }) { break }
    }
    guard rest.isAnyPlaced else {
      refusals.wrappingAdd(UInt64(rest.count), ordering: .relaxed)
      return false
    }
    // The chain is the balancer's, and what is left ends here (D4: counted).
    drops.wrappingAdd(UInt64(rest.count), ordering: .relaxed)
    var returns = LockingReturns()
    var next: Envelope? = rest.first
    while let envelope = next {
      next = envelopeNext(envelope)
      LockingEnvelope.end(envelope, payloadMoved: false, &returns)
    }
    return true
  }

  /// What is to be placed still, addressed to the balancer. As long as nothing was placed, that is
  /// the whole chain as it came.
  private struct Rest {
    var first: Envelope
    var count: Int
    var isAnyPlaced = false
  }

  /// Has a thread chosen for each envelope, and posts; those for one thread that follow each other
  /// stay together.
  private func place(_ rest: inout Rest, _ snapshot: LockingSnapshot) {
    withUnsafeTemporaryAllocation(of: Int.self, capacity: rest.count) { choices in
      var envelope = rest.first
      for index in choices.indices {
        choices.initializeElement(at: index, to: choose(envelope, snapshot))
        envelope = envelopeNext(envelope) ?? envelope
      }
      place(&rest, UnsafeBufferPointer(choices), snapshot)
    }
  }

  private func place(
    _ rest: inout Rest, _ choices: UnsafeBufferPointer<Int>, _ snapshot: LockingSnapshot
  ) {
    var left: (first: Envelope, last: Envelope, count: Int)?
    var next: Envelope? = rest.first
    var done = 0
    while let begin = next {
      var (end, length) = (begin, 1)
      while done + length < choices.count, choices[done + length] == choices[done] {
        end = envelopeNext(end).unsafelyUnwrapped
        length += 1
      }
      next = envelopeNext(end)
      setEnvelopeNext(end, nil)
      if post(run: begin, end, length, to: choices[done], snapshot) {
        rest.isAnyPlaced = true
      } else if let before = left {
        setEnvelopeNext(before.last, begin)
        left = (before.first, end, before.count + length)
      } else {
        left = (begin, end, length)
      }
      done += length
      if !rest.isAnyPlaced {
        // All of these threads have ended, which does not change.
        setEnvelopeNext(end, next)
        for choice in choices[done...] where choice < snapshot.entries.count {
          snapshot.entries[choice].load.unsafelyUnwrapped.withdraw(1)
        }
        return
      }
    }
    rest.count = left?.count ?? 0
    rest.first = left?.first ?? rest.first
  }

  /// The thread for an envelope, with a promise of one; the number of threads if none takes it.
  /// Runs the user's code.
  private func choose(_ envelope: Envelope, _ snapshot: LockingSnapshot) -> Int {
    let count = snapshot.entries.count
    let index =
      count == 1
      ? 0
      : snapshot.withLoads { loads, stride in
        chooser.choose(envelope, loads, stride: stride, count: count)
      }
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
  private func post(
    run first: Envelope, _ last: Envelope, _ length: Int, to chosen: Int,
    _ snapshot: LockingSnapshot
  ) -> Bool {
    var index = chosen
    for _ in snapshot.entries {
      guard index < snapshot.entries.count else { break }
      let entry = snapshot.entries[index]
      readdress(first, entry.subscription, entry.generation, timed: entry.timed)
      if entry.sink.post(first, last, count: length) { return true }
      entry.load.unsafelyUnwrapped.withdraw(length)
      index = promise(length, from: index + 1, snapshot)
    }
    if index < snapshot.entries.count {
      snapshot.entries[index].load.unsafelyUnwrapped.withdraw(length)
    }
    // What holds the envelopes now may not hold a thread.
    readdress(first, own, 0, timed: false)
    return false
  }

  private func readdress(
    _ first: Envelope, _ subscription: LockingSubscription, _ generation: UInt32, timed: Bool
  ) {
    var next: Envelope? = first
    while let envelope = next {
      LockingEnvelope.readdress(envelope, subscription, generation, timed: timed)
      next = envelopeNext(envelope)
    }
  }

  // MARK: Threads

  func add(_ subscription: Subscription, generation: UInt32, timed: Bool, load: EventLoad) {
    let subscription = LockingSubscription.of(subscription)
    let entry = LockingSnapshot.Entry(
      subscription: subscription, sink: subscription.sink, generation: generation, timed: timed,
      load: load)
    replace { entries in
      if let index = entries.firstIndex(where: { $0.subscription === subscription }) {
        entries[index] = entry
      } else {
        entries.append(entry)
      }
    }
  }

  func remove(_ subscription: Subscription) {
    let subscription = LockingSubscription.of(subscription)
    replace { entries in
      entries.removeAll { $0.subscription === subscription }
    }
  }

  private func replace(_ change: (inout [LockingSnapshot.Entry]) -> Void) {
    // What the old snapshot held may end with it: outside the mutex.
    let old = threads.withLock { threads in
      let old = threads
      var entries = old?.entries ?? []
      change(&entries)
      threads = entries.isEmpty ? nil : LockingSnapshot(entries)
      return old
    }
    withExtendedLifetime(old) {}
  }

  // Relaxed: a statistic.
  var refused: UInt64 { refusals.load(ordering: .relaxed) }
  var dropped: UInt64 { drops.load(ordering: .relaxed) }
}
