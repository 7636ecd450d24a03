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

  private typealias Cell = UnsafeMutablePointer<LockingCell>

  /// The cell of a subscription without keys.
  private let only: Cell = LockingCell.make()
  /// Nil for one cell alone.
  private let keys: ConflationKeys?
  /// The cells by the numbers of their keys; keys that are not numbers may have a number in common. A mutex of its
  /// own, since keys are compared under it, which is code of the user's. It is released before the inbox's is taken.
  private let cells = Guarded<[UInt64: [Keyed]]>([:])

  private struct Keyed {
    /// What was kept of the key (`ConflationKeys.Comparison`); nil if the number is the key.
    let key: UnsafeMutableRawPointer?
    let cell: Cell
  }

  init(_ inbox: LockingInbox, _ keys: ConflationKeys? = nil) {
    self.inbox = inbox
    self.keys = keys
  }

  deinit {
    LockingCell.free(only)
    for keyed in cells.withLock({ $0.values.flatMap(\.self) }) {
      if let key = keyed.key { keys?.comparison?.letGo(key) }
      LockingCell.free(keyed.cell)
    }
  }

  override func post(_ run: LockingRun) -> Int? {
    guard let keys else { return post(run, only, nil) }
    guard run.count > 1 else { return post(run, cell(of: run.first, keys), nil) }
    return withUnsafeTemporaryAllocation(of: Cell.self, capacity: run.count) { cells in
      for index in 0..<run.count {
        cells.initializeElement(at: index, to: cell(of: run[index], keys))
      }
      return post(run, cells[0], cells.baseAddress)
    }
  }

  /// The cell of a record's key, which is made with its first event.
  private func cell(of record: LockingRecord, _ keys: ConflationKeys) -> Cell {
    let payload = UnsafeRawPointer(envelopePayload(record.address))
    let number = keys.number(payload)
    return cells.withLock { cells in
      if let found = cells[number] {
        // Not nil: every cell of keys that are compared has one.
        let same = found.first { keys.comparison?.isSame($0.key.unsafelyUnwrapped, payload) ?? true }
        if let same { return same.cell }
      }
      let new = Keyed(key: keys.comparison?.keep(payload), cell: LockingCell.make())
      cells[number, default: []].append(new)
      return new.cell
    }
  }

  /// Posts each record to its cell of `cells`; to `first` if that is nil.
  @inline(__always)
  private func post(_ run: LockingRun, _ first: Cell, _ cells: UnsafeMutablePointer<Cell>?) -> Int? {
    inbox.mutex.lock()
    guard !inbox.hot.pointee.refuses else {
      inbox.mutex.unlock()
      return nil
    }
    guard let subscription else {
      // Not refused: a refusal says that the mailbox has closed, and a balancer relies on that. The caller
      // ends the events, and the consumer looks whether it waited for them.
      inbox.superseded += UInt64(run.count)
      let sleeper = inbox.interruptNow()
      inbox.mutex.unlock()
      sleeper?.wake()
      return run.count
    }
    let (lane, length) = (run.first.lane, run.length)
    var left = 0
    var hasPosted = false
    for index in 0..<run.count {
      let record = LockingRecord(address: run.first.address + index * length)
      let cell = cells?[index] ?? first
      let old = cell.pointee.replace(by: record)
      // What waits is counted in its own lane, whatever tokens there are.
      if old != lane {
        if let old { inbox.lanes[old].pointee.posted &-= 1 }
        inbox.lanes[lane].pointee.posted &+= 1
      }
      if old != nil {
        // The caller ends what was superseded, from the front of the run; what was there has been taken over.
        if left < index {
          (run.first.address + left * length).copyMemory(from: record.address, byteCount: length)
        }
        left += 1
      }
      guard cell.pointee.tokens & 1 << lane == 0 else { continue }
      postToken(of: cell, lane, subscription)
      hasPosted = true
    }
    superseded += UInt64(left)
    let sleeper = hasPosted ? inbox.didPost(to: lane) : nil
    inbox.mutex.unlock()
    sleeper?.wake()
    return left
  }

  /// Posts the cell's token to a lane. Locked.
  private func postToken(of cell: Cell, _ lane: Int, _ subscription: Unmanaged<LockingSubscription>) {
    cell.pointee.tokens |= 1 << lane
    tokens += 1
    let token = inbox.reserve(LockingRecord.pointerLength, in: lane)
    token.initialize(
      subscription, lane: UInt8(lane), length: LockingRecord.pointerLength, flags: EnvelopeLayout.token)
    token.pointer = UnsafeMutableRawPointer(cell)
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
    let cell = token.pointer.assumingMemoryBound(to: LockingCell.self)
    cell.pointee.tokens &= ~(1 << token.lane)
    guard let event = cell.pointee.take(token.lane, anyLane) else { return nil }
    inbox.countTaken(event.lane)
    return buffer.hold(event)
  }
}
