// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The way into an inbox for a subscription of which only the newest event waits, or the newest of each key. The
/// events wait in here, each in a cell, and a token waits in the inbox. A token tells the consumer when to look into
/// its cell; a cell has one at most in each lane.
///
/// What changes is guarded by the inbox's mutex. Routes that threads remember keep this object for a while
/// after its subscription was removed. Then it keeps no event, and what is posted is superseded.
final class LockingLatest: LockingSink, @unchecked Sendable {
  /// Not retained, since the inbox keeps it until it is removed. Nil from then on.
  var subscription: Unmanaged<LockingSubscription>?
  /// The removed subscription, as long as tokens are left.
  private var removed: LockingSubscription?
  private let inbox: LockingInbox
  /// How many tokens are in the inbox.
  private var tokens = 0
  private(set) var superseded: UInt64 = 0

  /// The cell of a subscription without keys.
  private let only = LockingCell()
  /// Nil for one cell alone.
  private let keys: ConflationKeys?
  /// The cells by the numbers of their keys; `LockingCell.next` leads to others of the same number. A mutex of its
  /// own, since keys are compared under it, which is code of the user's. Before the inbox's in the lock order.
  private let cells = Guarded<[UInt64: LockingCell]>([:])

  init(_ inbox: LockingInbox, _ keys: ConflationKeys? = nil) {
    self.inbox = inbox
    self.keys = keys
  }

  deinit {
    guard let comparison = keys?.comparison else { return }
    let cells = cells.withLock { Array($0.values) }
    for first in cells {
      var cell: LockingCell? = first
      while let one = cell {
        if let key = one.key { comparison.letGo(key) }
        cell = one.next
        // Not one inside the other, however many there are.
        one.next = nil
      }
    }
  }

  override func post(_ run: LockingRun) -> Int? {
    guard let keys else { return post(run) { _ in only } }
    guard run.count > 1 else {
      let cell = cell(of: run.first, keys)
      return post(run) { _ in cell }
    }
    return withUnsafeTemporaryAllocation(of: Unmanaged<LockingCell>.self, capacity: run.count) { cells in
      for index in 0..<run.count {
        cells.initializeElement(at: index, to: .passUnretained(cell(of: run[index], keys)))
      }
      return post(run) { cells[$0].takeUnretainedValue() }
    }
  }

  /// The cell of a record's key, which is made with its first event.
  private func cell(of record: LockingRecord, _ keys: ConflationKeys) -> LockingCell {
    let payload = UnsafeRawPointer(envelopePayload(record.address))
    let number = keys.number(payload)
    return cells.withLock { cells in
      let first = cells[number]
      guard let comparison = keys.comparison else {
        let cell = first ?? LockingCell()
        if first == nil { cells[number] = cell }
        return cell
      }
      var cell = first
      while let one = cell {
        // Not nil: every cell of such keys has one.
        if comparison.isSame(one.key.unsafelyUnwrapped, payload) { return one }
        cell = one.next
      }
      let new = LockingCell(key: comparison.keep(payload))
      new.next = first
      cells[number] = new
      return new
    }
  }

  private func post(_ run: LockingRun, _ cell: (_ index: Int) -> LockingCell) -> Int? {
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
      let length = run.length
      let before = tokens
      var count = 0
      for index in 0..<run.count {
        let record = LockingRecord(address: run.first.address + index * length)
        let cell = cell(index)
        let old = cell.replace(by: record)
        // What waits is counted in its own lane, whatever tokens there are.
        if old != lane {
          if let old { inbox.lanes[old].pointee.posted &-= 1 }
          inbox.lanes[lane].pointee.posted &+= 1
        }
        if old != nil {
          // The caller ends what was superseded, from the front of the run; what was there has been taken over.
          if count < index {
            (run.first.address + count * length).copyMemory(from: record.address, byteCount: length)
          }
          count += 1
        }
        postToken(of: cell, lane, subscription)
      }
      left = count
      superseded += UInt64(count)
      if tokens > before { sleeper = inbox.didPost(to: lane) }
    }
    sleeper?.wake()
    return left
  }

  /// Posts the cell's token to a lane, unless it is there. Locked.
  private func postToken(
    of cell: LockingCell, _ lane: Int, _ subscription: Unmanaged<LockingSubscription>
  ) {
    guard cell.tokens & 1 << lane == 0 else { return }
    cell.tokens |= 1 << lane
    tokens += 1
    let token = inbox.reserve(LockingRecord.pointerLength, in: lane)
    token.initialize(
      subscription, lane: UInt8(lane), length: LockingRecord.pointerLength, flags: EnvelopeLayout.token)
    token.pointer = Unmanaged.passUnretained(cell).toOpaque()
  }

  /// The subscription is removed. Locked.
  func remove() {
    if tokens != 0 { removed = subscription?.takeUnretainedValue() }
    subscription = nil
  }

  /// The consumer has taken a token, and has retained the subscription. Returns the event that the token stands for,
  /// or nil. Locked.
  ///
  /// - Parameter anyLane: Whether that may also be an event of a later lane, which has a token of its own.
  func take(
    _ token: LockingRecord, _ anyLane: Bool, into buffer: inout LockingLane
  ) -> LockingRecord? {
    tokens -= 1
    if tokens == 0 { removed = nil }
    return Unmanaged<LockingCell>.fromOpaque(token.pointer)._withUnsafeGuaranteedRef { cell in
      cell.tokens &= ~(1 << token.lane)
      guard let event = cell.take(token.lane, anyLane) else { return nil }
      inbox.countTaken(event.lane)
      return buffer.hold(event)
    }
  }
}
