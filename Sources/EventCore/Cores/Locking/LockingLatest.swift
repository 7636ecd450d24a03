// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The way into an inbox for a subscription of which one event waits at most: the newest. The event waits in
/// here, and a token waits in the inbox. A token tells the consumer when to look in here; there is one at
/// most in each lane.
///
/// What changes is guarded by the inbox's mutex. The inbox retains this object until the subscription is
/// removed, and so do its tokens.
final class LockingLatest: LockingSink, @unchecked Sendable {
  let subscription: LockingSubscription
  private let gate = LockingGate()
  private let inbox: LockingInbox
  private(set) var superseded: UInt64 = 0
  private var event = LockingBuffer()
  private var waits: LockingRecord?
  /// One bit for each lane whose token is in the inbox.
  private var posted: UInt32 = 0
  private let token: LockingRecord

  init(
    _ target: AnyObject, drop: ((UnsafeMutableRawPointer) -> Void)?, _ inbox: LockingInbox
  ) {
    self.inbox = inbox
    subscription = LockingSubscription(target, drop: drop, gate)
    let length = LockingRecord.boxedLength
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
  }

  override func post(_ run: LockingRun) -> Int? {
    var left: Int? = nil
    var sleeper: LockingSleeper?
    let lane = run.first.lane
    inbox.withLock {
      guard !inbox.hot.pointee.refuses else { return }
      let former = waits?.lane
      let count = replace(run)
      left = count
      superseded += UInt64(count)
      inbox.state.pointee.superseded += UInt64(count)
      // What waits is counted in its own lane, whatever tokens there are.
      if let former, former != lane { inbox.lanes[former].pointee.countPosted(-1) }
      guard posted & 1 << lane == 0 else {
        if former != lane { inbox.lanes[lane].pointee.countPosted(1) }
        return
      }
      posted |= 1 << lane
      token.header.pointee.lane = UInt8(lane)
      // Balanced by whoever takes the token, after the event has ended.
      _ = Unmanaged.passRetained(self)
      sleeper = inbox.append(
        LockingRun(first: token, count: 1, length: LockingRecord.boxedLength))
    }
    sleeper?.wake()
    return left
  }

  /// Takes the newest event over, and puts the one that waited, if there is one, in its place. Returns how
  /// many were superseded.
  private func replace(_ run: LockingRun) -> Int {
    let newest = run[run.count - 1]
    guard let old = waits else {
      waits = event.copy(newest)
      return run.count - 1
    }
    // Both have the same type, and so the same length.
    for offset in stride(from: 0, to: run.length, by: 8) {
      let word = newest.address.load(fromByteOffset: offset, as: UInt64.self)
      (newest.address + offset).copyMemory(from: old.address + offset, byteCount: 8)
      old.address.storeBytes(of: word, toByteOffset: offset, as: UInt64.self)
    }
    return run.count
  }

  /// The consumer has taken the token of a lane. Returns the event that the token stands for, or nil. Locked.
  ///
  /// - Parameter anyLane: Whether that may also be an event of a later lane, which has a token of its own.
  func take(
    _ lane: Int, _ anyLane: Bool, into buffer: inout LockingBuffer
  ) -> LockingRecord? {
    posted &= ~(1 << lane)
    guard let event = waits, anyLane || event.lane <= lane else { return nil }
    waits = nil
    inbox.countTaken(event.lane)
    return buffer.copy(event)
  }
}
