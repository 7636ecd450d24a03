// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The bound of an inbox: how many records wait that have a place, and what becomes of one that finds none.
/// Everything that changes is guarded by the inbox's mutex.
final class LockingBound: @unchecked Sendable {
  let capacity: Int
  let policy: EventOverflowPolicy
  /// Records that wait, without tokens and without those of unbounded subscriptions.
  private var waiting = 0
  /// These, of which nothing is displaced, in each lane.
  var placeless = Array(repeating: 0, count: Lane.count)
  private(set) var counts = OverflowCounts()
  /// How many threads wait for a place, and what they wait on.
  private var blocked = 0
  private let monitor: Monitor
  /// The threads that run the inbox's consumers, or have entered them (`MailboxCore.enter`), by their numbers: one
  /// that runs another consumer inside of its handler is still here.
  var consumers: [UInt] = []

  /// Nil for an unbounded inbox.
  init?(_ capacity: EventMailboxCapacity, _ mutex: SystemMutex) {
    guard let limit = capacity.limit else { return nil }
    self.capacity = limit
    policy = capacity.policy
    monitor = Monitor(mutex)
  }

  var isFull: Bool { waiting >= capacity }

  func count(_ fate: LockingFate) {
    switch fate {
    case .accepted:
      waiting += 1
      counts.highWaterMark = max(counts.highWaterMark, UInt64(waiting))
    case .displacing, .dropped: counts.dropped += 1
    case .refused: counts.refused += 1
    case .superseded, .ended: break
    }
  }

  func didTake(_ record: LockingRecord) {
    guard record.hasPlace else { return placeless[record.lane] -= 1 }
    waiting -= 1
    if blocked > 0 { monitor.wake() }
  }

  /// Lets every thread that waits look again, since the inbox refuses now.
  func wakeAll() { monitor.wakeAll() }

  /// Waits until something may have changed.
  func wait(until deadline: UInt64) {
    blocked += 1
    defer { blocked -= 1 }
    _ = monitor.wait(until: deadline == .max ? nil : deadline)
  }
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
        bound.wait(until: deadline)
      }
      guard hot.pointee.refuses else { return .accepted }
      // Of a batch that has begun the rest is refused, as on the other core.
      return post.outcome.accepted > 0 ? .refused : .ended
    }
  }

  /// Takes out an event that is not more urgent than `lane`: of the last such lane, of a queue the oldest, of a
  /// stack the newest, as the other core does. Nil if there is none.
  private func displace(_ lane: Int) -> LockingRecord? {
    for last in (lane..<Lane.count).reversed() {
      guard let victim = lanes[last].pointee.removeFirst(where: \.hasPlace) else { continue }
      _ = victim.header.pointee.subscription.retain()
      lanes[last].pointee.posted &-= 1
      if lanes[last].pointee.isEmpty { hot.pointee.occupied &= ~(1 << UInt16(last)) }
      return victim
    }
    return nil
  }
}

extension LockingInbox {
  /// Takes the first record of a lane that has no place, if the others of the lane may be displaced: on the other core,
  /// where those wait apart, it comes before them. Nil if there is none. Locked.
  func takeWithoutPlace(of lane: Int, into buffer: inout LockingLane) -> LockingRecord? {
    guard let bound, bound.policy == .dropOldest, bound.placeless[lane] > 0 else { return nil }
    guard let record = lanes[lane].pointee.removeFirst(where: { !$0.hasPlace }) else { return nil }
    defer { record.address.deallocate() }
    return buffer.hold(record)
  }
}

extension LockingRecord {
  /// Whether it counts in a bounded inbox.
  var hasPlace: Bool {
    !isToken && header.pointee.subscription._withUnsafeGuaranteedRef { !$0.isUnbounded }
  }
}
