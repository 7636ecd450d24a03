// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The bound of an inbox: how many records wait that have a place, and what becomes of one that finds none.
///
/// Synchronization: the inbox's mutex guards everything that changes, except that the consumer counts what it takes
/// out of the lanes that it has taken over without the mutex. A producer that reads this count too early finds too few
/// places, and never too many. If it waits for a place then, it has the consumer look, which holds the mutex
/// for that and therefore sees that somebody waits.
final class LockingBound: @unchecked Sendable {
  let capacity: Int
  let policy: EventOverflowPolicy
  /// Whether producers take out what waits, which therefore stays in their lanes, apart from what has no place.
  let displaces: Bool
  /// How many places were ever given. Tokens and the records of unbounded subscriptions have none.
  @exclusivity(unchecked) private var given = 0
  /// How many places were given back, on a line of the consumer's. Written by one thread at a time: the consumer, or
  /// any thread with the mutex held.
  private let givenBack: UnsafeMutablePointer<Atomic<Int>>
  /// Up to here `given` needs no look at `givenBack`, whose line the consumer writes: what was once given back, plus
  /// the high-water mark. Within this limit there is room, and no new mark.
  @exclusivity(unchecked) private var limit = 0
  @exclusivity(unchecked) private(set) var counts = OverflowCounts()
  /// Whether threads have begun to wait for a place since all were woken, and what they wait on.
  private var isAwaited = false
  private let monitor: Monitor
  /// The threads that run the inbox's consumers, or have entered them (`MailboxCore.enter`), by their numbers: one
  /// that runs another consumer inside of its handler is still here.
  var consumers: [UInt] = []

  /// Nil for an unbounded inbox.
  init?(_ capacity: EventMailboxCapacity, _ mutex: SystemMutex, givenBack: UnsafeMutablePointer<Atomic<Int>>) {
    guard let limit = capacity.limit else { return nil }
    self.capacity = limit
    self.givenBack = givenBack
    policy = capacity.policy
    displaces = policy == .dropOldest
    monitor = Monitor(mutex)
  }

  /// How many places are in use. Relaxed: see above.
  private var used: Int { given - givenBack.pointee.load(ordering: .relaxed) }
  var isFull: Bool { given >= limit && used >= capacity }

  /// Counts the next record for a subscription, unless there is no place for it. Locked.
  @inline(__always)
  func accept(_ subscription: Unmanaged<LockingSubscription>) -> Bool {
    if subscription._withUnsafeGuaranteedRef({ $0.isUnbounded }) { return true }
    guard !isFull else { return false }
    give()
    return true
  }

  @inline(__always)
  private func give() {
    if given >= limit { raiseLimit() }
    given += 1
  }

  /// Marks the high water, if the next place reaches it.
  @inline(never)
  private func raiseLimit() {
    let used = used
    counts.highWaterMark = max(counts.highWaterMark, UInt64(used + 1))
    limit = given - used + Int(counts.highWaterMark)
  }

  func count(_ fate: LockingFate) {
    switch fate {
    case .accepted: give()
    case .displacing, .dropped: counts.dropped += 1
    case .refused: counts.refused += 1
    case .superseded, .ended: break
    }
  }

  /// A record leaves its lane. The consumer, or locked.
  @inline(__always)
  func didTake(_ record: LockingRecord) {
    guard record.hasPlace else { return }
    // Relaxed: see above.
    givenBack.pointee.store(givenBack.pointee.load(ordering: .relaxed) + 1, ordering: .relaxed)
  }

  /// Wakes the threads that wait for a place, if so many are free, or half of all if that is less: one wake-up for
  /// several events, as on the other core. Returns whether threads wait on. Locked.
  func wake(for places: Int) -> Bool {
    if isAwaited, capacity - used >= min(places, (capacity + 1) / 2) { wakeAll() }
    return isAwaited
  }

  /// Lets every thread that waits look again. Locked.
  func wakeAll() {
    isAwaited = false
    monitor.wakeAll()
  }

  /// Waits until something may have changed. Locked.
  func wait(until deadline: UInt64) {
    isAwaited = true
    _ = monitor.wait(until: deadline == .max ? nil : deadline)
  }

  /// How many places are free before a consumer at work wakes those who wait.
  static let places = 16
}

extension LockingInbox {
  /// Finds a place for a record in the open inbox, or says what becomes of it. Locked.
  ///
  /// - Parameter victim: What the record displaces, to be ended after the unlock. Its subscription is retained, since
  ///   the mailbox may end meanwhile.
  func findPlace(
    for record: LockingRecord, _ bound: LockingBound, _ post: inout LockingPost, _ victim: inout LockingRecord?
  ) -> LockingFate {
    // Once one is refused, so are those behind it: what is accepted keeps its order.
    guard post.outcome.refused == 0 else { return .refused }
    guard bound.isFull else { return .accepted }
    switch bound.policy {
    case .refuse: return .refused
    case .dropNewest: return .dropped
    case .dropOldest:
      victim = displace(record.lane)
      return victim == nil ? .dropped : .displacing
    case .block(let limit):
      // Nobody else would make room.
      guard !bound.consumers.contains(currentThreadNumber()) else { return .refused }
      let deadline = post.deadline ?? later(monotonicNanoseconds(), by: limit)
      post.deadline = deadline
      while bound.isFull, !hot.pointee.refuses {
        guard monotonicNanoseconds() < deadline else { return .refused }
        setUrgent(true)
        bound.wait(until: deadline)
      }
      return hot.pointee.refuses ? .ended : .accepted
    }
  }

  /// Takes out an event that is not more urgent than `lane`: of the last such lane, of a queue the oldest, of a
  /// stack the newest, as the other core does. Nil if there is none.
  private func displace(_ lane: Int) -> LockingRecord? {
    guard let last = (lane..<Lane.count).last(where: { !lanes[$0].pointee.isEmpty }) else { return nil }
    let victim = lanes[last].pointee.take().copy()
    _ = victim.header.pointee.subscription.retain()
    lanes[last].pointee.posted &-= 1
    didTake(from: last)
    return victim
  }
}

/// Both sets of lanes. Locked, all of them.
extension LockingInbox {
  /// Where the next record of a lane comes from. Empty if none waits there.
  func next(_ lane: Int) -> UnsafeMutablePointer<LockingLane> {
    apart[lane].pointee.isEmpty ? lanes[lane] : apart[lane]
  }

  func didTake(from lane: Int) {
    if next(lane).pointee.isEmpty { hot.pointee.occupied &= ~(1 << UInt16(lane)) }
  }

  func takeMemory(over kept: Int) -> [UnsafeMutableRawPointer] {
    lanes.takeMemory(over: kept) + apart.takeMemory(over: kept)
  }

  func contains(over kept: Int) -> Bool { lanes.contains(over: kept) || apart.contains(over: kept) }
}

extension LockingRecord {
  /// Whether it counts in a bounded inbox.
  var hasPlace: Bool {
    !isToken && header.pointee.subscription._withUnsafeGuaranteedRef { !$0.isUnbounded }
  }
}
