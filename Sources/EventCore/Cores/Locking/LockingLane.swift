// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A lane: records side by side in a block of memory that grows with them. It has no lock of its own.
///
/// The next record to take is always the first one. A queue gets new records behind the others, and a stack
/// gets them in front. A mailbox has each queue twice: producers fill one, and the consumer works off the
/// other. When it has done so, the two are swapped, however much they hold.
struct LockingLane {
  // First what a post touches. For the lane that is used most, it lies on the mutex's cache line.

  /// The records lie from `begin` to `end`.
  private var end = Self.nowhere
  /// How much memory is free behind `end`, in steps of 16 bytes. Not for stacks, which grow the other way.
  private var room: UInt32 = 0
  /// How many events were ever put into the lane. Wraps around.
  var posted: UInt32 = 0
  private var begin = Self.nowhere
  private var memory: UnsafeMutableRawPointer?
  private(set) var size = 0

  /// Where no record is.
  private static var nowhere: UnsafeMutableRawPointer {
    UnsafeMutableRawPointer(bitPattern: line).unsafelyUnwrapped
  }
  private static let line = 64
  private static let smallest = 2048

  static func isStack(_ lane: Int) -> Bool { lane < Int(Lane.firstQueue) }

  @inline(__always)
  var isEmpty: Bool { begin == end }
  /// The bytes of the records.
  var used: Int { end - begin }

  /// The first usable byte. Most records have 64 bytes, so that each lies on one cache line.
  private var start: UnsafeMutableRawPointer {
    memory?.alignedUp(toMultipleOf: Self.line) ?? Self.nowhere
  }

  /// Adds room for new records, which the caller fills.
  @inline(__always)
  mutating func reserve(_ bytes: Int, isStack: Bool) -> UnsafeMutableRawPointer {
    if bytes > (isStack ? begin - start : Int(room) &* LockingRecord.step) {
      makeRoom(for: bytes, isStack)
    }
    guard !isStack else {
      begin -= bytes
      return begin
    }
    let place = end
    end = place + bytes
    room &-= UInt32(truncatingIfNeeded: bytes / LockingRecord.step)
    // The next lines are still in the consumer's cache. Without the prefetch, the next unlock would have to
    // wait for them.
    prefetchForWrite(end + 192)
    return place
  }

  /// Copies records into the lane. Of a stack the last one is the first to be taken.
  mutating func append(_ run: LockingRun, isStack: Bool) {
    let (pieces, length) = isStack ? (run.count, run.length) : (1, run.count &* run.length)
    for piece in 0..<pieces {
      reserve(length, isStack: isStack)
        .copyMemory(from: run.first.address + piece &* length, byteCount: length)
    }
  }

  @inline(never)
  private mutating func makeRoom(for bytes: Int, _ isStack: Bool) {
    let used = used
    var from = begin
    // If more bytes are free in front of the records than the records have, they move there; else the block
    // grows.
    if begin - start < used || size < used + bytes {
      let offset = memory.map { begin - $0 } ?? 0
      size = max(2 * size, used + bytes, Self.smallest)
      // For a large block, the system remaps its pages instead of copying them.
      guard let block = realloc(memory, size + Self.line) else {
        fatalError(
          """
          A mailbox keeps all events that wait, which takes \(size) bytes now, and the system gives it no more: \
          give the process more memory, or handle the events faster than they come.
          """)
      }
      from = block + offset
      memory = block
    }
    begin = isStack ? start + (size - used) : start
    end = begin + used
    room = UInt32(clamping: (start + size - end) / LockingRecord.step)
    begin.copyMemory(from: from, byteCount: used)
  }

  /// Makes all memory of an empty queue free.
  private mutating func rewind() {
    (begin, end, room) = (start, start, UInt32(clamping: size / LockingRecord.step))
  }

  /// The record that is next by D2 or D3. The lane must not be empty.
  @inline(__always)
  var next: LockingRecord { LockingRecord(address: begin) }

  /// Takes the next record out, which stays in place until new ones are added.
  @inline(__always)
  mutating func take() -> LockingRecord {
    defer { begin += next.length }
    return next
  }

  /// Copies a record that leaves a lane of producers', and returns the copy. This lane is an empty queue
  /// before and after.
  mutating func hold(_ record: LockingRecord) -> LockingRecord {
    // Always in the same lines, which are in this thread's cache.
    rewind()
    reserve(record.length, isStack: false)
      .copyMemory(from: record.address, byteCount: record.length)
    return take()
  }

  /// Takes all records of another queue over, which gets the memory of this empty one for them.
  mutating func takeAll(of other: inout LockingLane) {
    rewind()
    swap(&self, &other)
    swap(&posted, &other.posted)
  }

  /// Gives the memory of an empty lane away, to be freed, if it is more than so many bytes.
  mutating func takeMemory(over kept: Int) -> UnsafeMutableRawPointer? {
    guard isEmpty, size > kept else { return nil }
    let (block, posted) = (memory, posted)
    self = LockingLane()
    self.posted = posted
    return block
  }
}

/// The ten lanes of a mailbox, in memory of its owner's.
struct LockingLanes {
  static let size = Lane.count * MemoryLayout<LockingLane>.stride
  private let memory: UnsafeMutablePointer<LockingLane>

  init(at place: UnsafeMutableRawPointer) {
    memory = place.bindMemory(to: LockingLane.self, capacity: Lane.count)
    memory.initialize(repeating: LockingLane(), count: Lane.count)
  }

  /// The lane that most events use comes first in memory: the queue of normal priority.
  @inline(__always)
  subscript(lane: Int) -> UnsafeMutablePointer<LockingLane> {
    memory + (lane < 7 ? lane &+ 3 : lane &- 7)
  }

  func takeMemory(over kept: Int) -> [UnsafeMutableRawPointer] {
    (0..<Lane.count).compactMap { memory[$0].takeMemory(over: kept) }
  }

  func contains(over kept: Int) -> Bool { (0..<Lane.count).contains { memory[$0].size > kept } }
}
