// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The way into an inbox for a subscription of which one event waits at most: the newest. The event waits in
/// here, and a token waits in the inbox. A token tells the consumer when to look in here; there is one at
/// most in each lane.
///
/// What changes is guarded by the inbox's mutex. Routes that threads remember keep this object for a while
/// after its subscription was removed. Then it keeps nothing of the user's, and what is posted is superseded.
final class LockingLatest: LockingSink, @unchecked Sendable {
  /// Not retained, since the inbox keeps it until it is removed. Nil from then on.
  var subscription: Unmanaged<LockingSubscription>?
  /// The removed subscription, as long as tokens are left.
  private var removed: LockingSubscription?
  private let inbox: LockingInbox
  /// Room for the event that waits. All its events have the same type, and so the same length.
  private var room: LockingRecord?
  /// The event in `room`, if one waits.
  private var waiting: LockingRecord?
  /// One bit for each lane whose token is in the inbox.
  private var tokens: UInt32 = 0
  private(set) var superseded: UInt64 = 0

  init(_ inbox: LockingInbox) {
    self.inbox = inbox
  }

  deinit {
    // No event is left: the subscription, which retains this object, is there as long as a token is.
    room?.address.deallocate()
  }

  override func post(_ run: LockingRun) -> Int? {
    var left: Int?
    var sleeper: LockingSleeper?
    inbox.withLock {
      guard !inbox.hot.pointee.refuses else { return }
      guard let subscription else {
        // Not refused: a refusal says that the mailbox has closed, and a balancer relies on that. The caller
        // ends the events, and the consumer looks whether it waited for them.
        left = run.count
        inbox.superseded += UInt64(run.count)
        sleeper = inbox.interruptNow()
        return
      }
      let lane = run.first.lane
      let old = replace(by: run[run.count - 1])
      // The caller ends what was superseded, also the old event, which lies in the run now.
      let count = old == nil ? run.count - 1 : run.count
      left = count
      superseded += UInt64(count)
      // What waits is counted in its own lane, whatever tokens there are.
      if old != lane {
        if let old { inbox.lanes[old].pointee.posted &-= 1 }
        inbox.lanes[lane].pointee.posted &+= 1
      }
      guard tokens & 1 << lane == 0 else { return }
      tokens |= 1 << lane
      inbox.reserve(LockingRecord.headerLength, in: lane).initialize(
        subscription, lane: UInt8(lane), length: LockingRecord.headerLength,
        flags: EnvelopeLayout.token)
      sleeper = inbox.didPost(to: lane)
    }
    sleeper?.wake()
    return left
  }

  /// Takes an event over, and puts the one that waited in its place, whose lane is returned.
  private func replace(by newest: LockingRecord) -> Int? {
    guard let old = waiting else {
      let room = room ?? LockingRecord(address: .allocate(byteCount: newest.length, alignment: 64))
      room.address.copyMemory(from: newest.address, byteCount: newest.length)
      (self.room, waiting) = (room, room)
      return nil
    }
    for offset in stride(from: 0, to: newest.length, by: LockingRecord.step) {
      let part = newest.address.load(fromByteOffset: offset, as: SIMD2<UInt64>.self)
      (newest.address + offset).copyMemory(
        from: old.address + offset, byteCount: LockingRecord.step)
      old.address.storeBytes(of: part, toByteOffset: offset, as: SIMD2<UInt64>.self)
    }
    return newest.lane
  }

  /// The subscription is removed. Locked.
  func remove() {
    if tokens != 0 { removed = subscription?.takeUnretainedValue() }
    subscription = nil
  }

  /// The consumer has taken the token of a lane, and has retained the subscription. Returns the event that
  /// the token stands for, or nil. Locked.
  ///
  /// - Parameter anyLane: Whether that may also be an event of a later lane, which has a token of its own.
  func take(
    _ lane: Int, _ anyLane: Bool, into buffer: inout LockingLane
  ) -> LockingRecord? {
    tokens &= ~(1 << lane)
    if tokens == 0 { removed = nil }
    guard let event = waiting, anyLane || event.lane <= lane else { return nil }
    waiting = nil
    inbox.countTaken(event.lane)
    return buffer.hold(event)
  }
}
