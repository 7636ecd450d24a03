// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The place of one waiting event and of its tokens, in a `LockingLatest`, which makes and frees it.
///
/// A structure behind a pointer, since each property of a class would be checked for exclusive access, and each mention
/// of an object counted.
///
/// Synchronization: the mutex of the inbox.
struct LockingCell {
  /// Room for the event that waits. All its events have the same type, and so the same length.
  private var room: LockingRecord?
  /// The event in `room`, if one waits.
  private var waiting: LockingRecord?
  /// One bit for each lane whose token is in the inbox.
  var tokens: UInt32 = 0

  static func make() -> UnsafeMutablePointer<LockingCell> {
    let cell = UnsafeMutablePointer<LockingCell>.allocate(capacity: 1)
    cell.initialize(to: LockingCell())
    return cell
  }

  /// Frees a cell. No event is left in it: a token would keep the subscription, and so its owner.
  static func free(_ cell: UnsafeMutablePointer<LockingCell>) {
    cell.pointee.room?.address.deallocate()
    cell.deallocate()
  }

  /// Takes an event over, and puts the one that waited in its place, whose lane is returned.
  mutating func replace(by newest: LockingRecord) -> Int? {
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

  /// Returns the event that waits, if it is of this lane or an earlier one, or if `anyLane`. It stays in `room` until
  /// the next one comes.
  mutating func take(_ lane: Int, _ anyLane: Bool) -> LockingRecord? {
    guard let event = waiting, anyLane || event.lane <= lane else { return nil }
    waiting = nil
    return event
  }
}
