// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The balancer in pure Swift: an immutable snapshot of the threads under a mutex, held for a look-up.
final class LockingBalancer: BalancerCore, LockingSink, @unchecked Sendable {
  // `own` is constant from the end of the initialiser on; everything else is guarded or atomic.
  private let threads = Guarded<LockingSnapshot?>(nil)
  private let chooser: PoolChooser
  private let refusals = Atomic<UInt64>(0)
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
    guard let snapshot = threads.withLock({ $0 }) else {
      return refuse(count)
    }
    return withUnsafeTemporaryAllocation(of: Int.self, capacity: count) { choices in
      var envelope: Envelope? = first
      for index in 0..<count {
        choices.initializeElement(at: index, to: choose(envelope.unsafelyUnwrapped, snapshot))
        envelope = envelopeNext(envelope.unsafelyUnwrapped)
      }
      return place(first, UnsafeBufferPointer(choices), snapshot)
    }
  }

  /// Posts what was chosen; envelopes for one thread that follow each other stay together.
  private func place(
    _ first: Envelope, _ choices: UnsafeBufferPointer<Int>, _ snapshot: LockingSnapshot
  ) -> Bool {
    var returns = LockingReturns()
    var next: Envelope? = first
    var (done, isAnyPlaced) = (0, false)
    while let begin = next {
      var (end, length) = (begin, 1)
      while done + length < choices.count, choices[done + length] == choices[done] {
        end = envelopeNext(end).unsafelyUnwrapped
        length += 1
      }
      next = envelopeNext(end)
      setEnvelopeNext(end, nil)
      if post(run: begin, end, length, to: choices[done], snapshot) {
        isAnyPlaced = true
      } else if isAnyPlaced {
        drop(begin, length, &returns)
      } else {
        // All have closed, which does not change: the whole chain goes back.
        setEnvelopeNext(end, next)
        for choice in choices[(done + length)...] where choice < snapshot.entries.count {
          snapshot.entries[choice].load.unsafelyUnwrapped.withdraw(1)
        }
        return refuse(choices.count)
      }
      done += length
    }
    return true
  }

  /// The thread for an envelope, with a promise of one; the number of threads if none takes it. Runs the
  /// user's code.
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

  /// Posts a run that is promised to a thread, or to another if that one has closed. False if all have.
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

  private func refuse(_ count: Int) -> Bool {
    refusals.wrappingAdd(UInt64(count), ordering: .relaxed)
    return false
  }

  /// Ends envelopes of a chain whose others were placed (D4: counted).
  private func drop(_ first: Envelope, _ count: Int, _ returns: inout LockingReturns) {
    _ = refuse(count)
    var next: Envelope? = first
    while let envelope = next {
      next = envelopeNext(envelope)
      LockingEnvelope.end(envelope, payloadMoved: false, &returns)
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
}
