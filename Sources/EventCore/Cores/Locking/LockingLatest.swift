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
  /// The removed subscription, as long as tokens are left. They do not retain it themselves: its count would be
  /// written by both sides.
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
  private let cells = Guarded(Cells())

  private struct Cells {
    var keyed: [UInt64: [Keyed]] = [:]
    /// The subscription was removed, and the keys with it.
    var isOver = false
  }

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
    letKeysGo()
    LockingCell.free(only)
    for cell in cells.withLock({ $0.keyed.values.flatMap { $0.map(\.cell) } }) { LockingCell.free(cell) }
  }

  /// Ends the keys, which are the user's, when the subscription has been removed: threads remember routes for longer.
  func letKeysGo() {
    let ended = cells.withLock { cells in
      defer { cells.isOver = true }
      return cells.isOver ? [] : cells.keyed.values.flatMap(\.self)
    }
    // Nobody changes or compares them any more.
    for keyed in ended { if let key = keyed.key { keys?.comparison?.letGo(key) } }
  }

  override func place(_ record: LockingRecord, _ post: inout LockingPost) -> LockingFate {
    let cell = keys.map { self.cell(of: record, $0) } ?? only
    return inbox.whileOpen {
      guard let subscription else {
        // Not refused: a refusal says that the mailbox has closed, and a balancer relies on that.
        inbox.superseded += 1
        return (.superseded, nil)
      }
      return put(record, in: cell, subscription)
    }
  }

  override func lookAgain() { inbox.lookAgain() }

  /// Puts an event into its cell. Locked. Returns whom to wake after the unlock, too.
  private func put(
    _ record: LockingRecord, in cell: Cell, _ subscription: Unmanaged<LockingSubscription>
  ) -> (LockingFate, LockingSleeper?) {
    let lane = record.lane
    let old = cell.pointee.replace(by: record)
    // What waits is counted in its own lane, whatever tokens there are.
    if old != lane {
      if let old { inbox.lanes[old].pointee.posted &-= 1 }
      inbox.lanes[lane].pointee.posted &+= 1
    }
    if old != nil {
      superseded += 1
      inbox.superseded += 1
    }
    let isNew = cell.pointee.tokens & 1 << lane == 0
    if isNew { putToken(of: cell, lane, subscription) }
    return (old == nil ? .accepted : .superseded, isNew ? inbox.didPost(to: lane) : nil)
  }

  /// The cell of a record's key, which is made with its first event.
  private func cell(of record: LockingRecord, _ keys: ConflationKeys) -> Cell {
    let payload = UnsafeRawPointer(envelopePayload(record.address))
    let number = keys.number(payload)
    return cells.withLock { cells in
      // The event is superseded, and needs no cell.
      if cells.isOver { return only }
      if let found = cells.keyed[number] {
        // Not nil: every cell of keys that are compared has one.
        let same = found.first { keys.comparison?.isSame($0.key.unsafelyUnwrapped, payload) ?? true }
        if let same { return same.cell }
      }
      let new = Keyed(key: keys.comparison?.keep(payload), cell: LockingCell.make())
      cells.keyed[number, default: []].append(new)
      return new.cell
    }
  }

  /// Puts the cell's token into a lane. Locked.
  private func putToken(of cell: Cell, _ lane: Int, _ subscription: Unmanaged<LockingSubscription>) {
    cell.pointee.tokens |= 1 << lane
    tokens += 1
    let token = inbox.reserve(LockingRecord.pointerLength, in: inbox.apart, lane)
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

/// The place of one waiting event and of its tokens, in a `LockingLatest`.
///
/// A structure behind a pointer, since each property of a class would be checked for exclusive access, and each mention
/// of an object counted.
///
/// Synchronization: the mutex of the inbox.
struct LockingCell {
  /// The event that waits, or the last one that did, which leaves room for the next: all have the same type, and so the
  /// same length.
  private var event: LockingRecord?
  private var isWaiting = false
  /// One bit for each lane whose token is in the inbox.
  var tokens: UInt32 = 0

  static func make() -> UnsafeMutablePointer<LockingCell> {
    let cell = UnsafeMutablePointer<LockingCell>.allocate(capacity: 1)
    cell.initialize(to: LockingCell())
    return cell
  }

  /// Frees a cell. No event is left in it: a token would keep the subscription, and so its owner.
  static func free(_ cell: UnsafeMutablePointer<LockingCell>) {
    cell.pointee.event?.address.deallocate()
    cell.deallocate()
  }

  /// Takes an event over, and puts the one that waited in its place, whose lane is returned.
  mutating func replace(by newest: LockingRecord) -> Int? {
    guard isWaiting, let old = event else {
      isWaiting = true
      if let event {
        event.address.copyMemory(from: newest.address, byteCount: newest.length)
      } else {
        event = newest.copy()
      }
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

  /// Returns the event that waits, if it is of this lane or an earlier one, or if `anyLane`. It stays in its place until
  /// the next one comes.
  mutating func take(_ lane: Int, _ anyLane: Bool) -> LockingRecord? {
    guard isWaiting, let event, anyLane || event.lane <= lane else { return nil }
    isWaiting = false
    return event
  }
}
