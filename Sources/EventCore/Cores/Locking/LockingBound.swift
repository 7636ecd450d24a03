// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The bound of an inbox: how many records wait that have a place, and what becomes of one that finds none.
/// Everything that changes is guarded by the inbox's mutex.
final class LockingBound: @unchecked Sendable {
  let capacity: Int
  let policy: EventOverflowPolicy
  /// Records that wait, without tokens and without those of unbounded subscriptions.
  private(set) var waiting = 0
  private(set) var counts = OverflowCounts()
  /// How many threads wait for a place, and what they wait on.
  private var blocked = 0
  private let monitor: Monitor

  /// Nil for an unbounded inbox.
  init?(_ capacity: EventMailboxCapacity, _ mutex: SystemMutex) {
    guard let limit = capacity.limit else { return nil }
    self.capacity = limit
    policy = capacity.policy
    monitor = Monitor(mutex)
  }

  var isFull: Bool { waiting >= capacity }

  func didPost() {
    waiting += 1
    counts.highWaterMark = max(counts.highWaterMark, UInt64(waiting))
  }

  func didTake() {
    waiting -= 1
    if blocked > 0 { monitor.wake() }
  }

  /// A record was displaced, and the next one has its place.
  func didDisplace() { waiting -= 1 }

  func count(_ overflow: LockingThread.Overflow) {
    counts.refused += UInt64(overflow.refused)
    counts.dropped += UInt64(overflow.dropped + overflow.displaced)
  }

  /// Lets every thread that waits look again, since the inbox refuses now.
  func wakeAll() { monitor.wakeAll() }

  /// Waits until something may have changed. False if the time is over.
  func wait(until deadline: UInt64) -> Bool {
    blocked += 1
    defer { blocked -= 1 }
    return monitor.wait(until: deadline == .max ? nil : deadline)
  }
}

extension LockingInbox {
  /// The records that a post has displaced, to be ended after the unlock.
  private struct Victims: ~Copyable {
    var lane = LockingLane()
    /// Retained, since their mailbox may end meanwhile.
    var subscriptions: [Unmanaged<LockingSubscription>] = []

    mutating func add(_ record: LockingRecord) {
      subscriptions.append(record.header.pointee.subscription.retain())
      lane.append(LockingRun(first: record, count: 1), isStack: false)
    }

    consuming func end() {
      for subscription in subscriptions {
        let record = lane.take()
        record.end(payloadMoved: false, subscription._withUnsafeGuaranteedRef { $0.drop })
        subscription.release()
      }
      lane.takeMemory(over: 0)?.deallocate()
    }
  }

  /// `post` of a bounded inbox: record by record, as far as there are places. Locked, and unlocked afterwards.
  func post(_ run: LockingRun, _ bound: LockingBound) -> Int? {
    var overflow = LockingThread.Overflow()
    var victims = Victims()
    var sleepers: [LockingSleeper] = []
    var deadline: UInt64?
    // The caller ends the first ones of the run.
    var left = 0
    var next = 0
    while next < run.count {
      // Once one is refused, so are those behind it: what is accepted keeps its order.
      if hot.pointee.refuses || overflow.refused > 0 {
        if !hot.pointee.refuses || next > 0 { overflow.refused += 1 }
      } else if !bound.isFull || displace(run.first.lane, bound, &victims) {
        overflow.displaced = victims.subscriptions.count
        append(run[next], bound, &sleepers)
        next += 1
        continue
      } else {
        switch bound.policy {
        case .dropNewest, .dropOldest: overflow.dropped += 1
        case .refuse: overflow.refused += 1
        case .block(let limit):
          // Nobody else would make room.
          if isConsumedHere || deadline.map({ $0 <= monotonicNanoseconds() }) == true {
            overflow.refused += 1
            break
          }
          let end = deadline ?? Self.end(after: limit)
          deadline = end
          guard sleepers.isEmpty else {
            mutex.unlock()
            for sleeper in sleepers { sleeper.wake() }
            sleepers = []
            mutex.lock()
            continue
          }
          _ = bound.wait(until: end)
          continue
        }
      }
      if left != next { run[left].address.copyMemory(from: run[next].address, byteCount: run.length) }
      left += 1
      next += 1
    }
    let isRefused = left == run.count && overflow.dropped == 0
    bound.count(overflow)
    mutex.unlock()
    for sleeper in sleepers { sleeper.wake() }
    let thread = LockingThread.all.kept(or: LockingThread.init)
    let before = thread._withUnsafeGuaranteedRef { $0.overflow }
    // Code of the user's, whose own dispatches are not counted here.
    victims.end()
    thread._withUnsafeGuaranteedRef { $0.overflow = before + overflow }
    return isRefused ? nil : left
  }

  private static func end(after limit: Duration) -> UInt64 {
    let (end, isBeyond) = monotonicNanoseconds().addingReportingOverflow(limit.wholeNanoseconds)
    return isBeyond ? .max : end
  }

  private func append(_ record: LockingRecord, _ bound: LockingBound, _ sleepers: inout [LockingSleeper]) {
    let lane = record.lane
    lanes[lane].pointee.posted &+= 1
    lanes[lane].pointee.append(LockingRun(first: record, count: 1), isStack: LockingLane.isStack(lane))
    bound.didPost()
    if let sleeper = didPost(to: lane) { sleepers.append(sleeper) }
  }

  /// Takes out an event that is not more urgent than `lane`: of the last such lane, of a queue the oldest, of a
  /// stack the newest, as the other core does. False if there is none, or another policy.
  private func displace(_ lane: Int, _ bound: LockingBound, _ victims: inout Victims) -> Bool {
    guard bound.policy == .dropOldest else { return false }
    for last in (lane..<Lane.count).reversed() where !lanes[last].pointee.isEmpty {
      let isDisplaced = lanes[last].pointee.removeFirst(where: \.hasPlace) { victims.add($0) }
      guard isDisplaced else { continue }
      lanes[last].pointee.posted &-= 1
      if lanes[last].pointee.isEmpty { hot.pointee.occupied &= ~(1 << UInt16(last)) }
      bound.didDisplace()
      return true
    }
    return false
  }

  /// Whether the calling thread is a consumer of this inbox, in a handler or between two runs of its pump. Inside
  /// the handler it may run another mailbox.
  private var isConsumedHere: Bool {
    LockingThread.all.kept(or: LockingThread.init)._withUnsafeGuaranteedRef { thread in
      thread.consumed.contains { $0._withUnsafeGuaranteedRef { $0.consumes(self) } }
    }
  }
}

extension LockingRecord {
  /// Whether it counts in a bounded inbox.
  var hasPlace: Bool {
    !isToken && header.pointee.subscription._withUnsafeGuaranteedRef { !$0.isUnbounded }
  }
}
