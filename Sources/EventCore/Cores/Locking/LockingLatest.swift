// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The way into an inbox for a subscription of which one event waits at most: the newest. The event
/// waits in here, and a token waits in the inbox. A token tells the consumer when to look in here;
/// there is one at most in each lane.
///
/// What changes is guarded by the inbox's mutex. The inbox retains this object until the
/// subscription is removed, and so do its tokens.
final class LockingLatest: LockingSink, @unchecked Sendable {
  let subscription: LockingSubscription
  private let gate = LockingGate()
  private let inbox: LockingInbox
  private let token: LockingRecord
  /// The event that waits, which lies in `buffer`.
  private var waiting: LockingRecord?
  private var buffer = LockingLane()
  private var otherBuffer = LockingLane()
  /// One bit for each lane whose token is in the inbox.
  private var tokens: UInt32 = 0
  private(set) var superseded: UInt64 = 0

  init(_ target: any LockingTarget, _ inbox: LockingInbox) {
    self.inbox = inbox
    subscription = LockingSubscription(target, drop: target.drop, gate)
    let length = LockingRecord.pointerLength
    token = LockingRecord(address: .allocate(byteCount: length, alignment: 16))
    super.init()
    token.header.initialize(
      to: LockingRecord.Header(
        link: nil, subscription: .passUnretained(subscription), time: 0, generation: 0, lane: 0,
        flags: EnvelopeLayout.token, steps: UInt16(length / LockingRecord.step)))
    token.pointer = Unmanaged.passUnretained(self).toOpaque()
    gate.sink = self
  }

  deinit {
    // No event is left: the token of one that waits would retain this object.
    token.address.deallocate()
    buffer.takeMemory(over: 0)?.deallocate()
    otherBuffer.takeMemory(over: 0)?.deallocate()
  }

  override func post(_ run: LockingRun) -> Int? {
    var left: Int?
    var sleeper: LockingSleeper?
    inbox.withLock {
      guard !inbox.hot.pointee.refuses else { return }
      let lane = run.first.lane
      let old = replace(by: run[run.count - 1])
      // The caller ends what was superseded, also the old event, which lies in the run now.
      let count = old == nil ? run.count - 1 : run.count
      left = count
      superseded += UInt64(count)
      inbox.superseded += UInt64(count)
      // What waits is counted in its own lane, whatever tokens there are.
      if old != lane {
        if let old { inbox.lanes[old].pointee.posted -= 1 }
        inbox.lanes[lane].pointee.posted += 1
      }
      guard tokens & 1 << lane == 0 else { return }
      tokens |= 1 << lane
      token.header.pointee.lane = UInt8(lane)
      // Balanced by whoever takes the token, after the event has ended.
      _ = Unmanaged.passRetained(self)
      sleeper = inbox.append(LockingRun(first: token, count: 1, length: token.length))
    }
    sleeper?.wake()
    return left
  }

  /// Takes an event over, and puts the one that waited in its place, whose lane is returned.
  private func replace(by newest: LockingRecord) -> Int? {
    let old = waiting
    waiting = otherBuffer.hold(newest)
    swap(&buffer, &otherBuffer)
    // Both have the same type, and so the same length.
    if let old { newest.address.copyMemory(from: old.address, byteCount: newest.length) }
    return old == nil ? nil : newest.lane
  }

  /// The consumer has taken the token of a lane. Returns the event that the token stands for, or nil.
  /// Locked.
  ///
  /// - Parameter anyLane: Whether that may also be an event of a later lane, which has a token of its
  ///   own.
  func take(
    _ lane: Int, _ anyLane: Bool, into buffer: inout LockingLane
  ) -> LockingRecord? {
    tokens &= ~(1 << lane)
    guard let event = waiting, anyLane || event.lane <= lane else { return nil }
    waiting = nil
    inbox.countTaken(event.lane)
    return buffer.hold(event)
  }
}
