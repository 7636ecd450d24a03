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
/// From a queue the first record is taken, from a stack the last. A mailbox has each queue twice: producers
/// fill one, and the consumer works off the other. When it has done so, the two are swapped, however much
/// they hold.
struct LockingLane {
  // First what a post touches. For the lane that is used most, it lies beside the mutex.

  /// Where the next record goes, and how many bytes are free there.
  private var end = Self.nowhere
  private var room: UInt32 = 0
  /// How many events were put in since the last `setPlace`, and how many before.
  private var count: UInt32 = 0
  private var earlier = 0
  /// The next record to take from a queue.
  private var begin = Self.nowhere
  private var memory: UnsafeMutableRawPointer?
  private(set) var size = 0
  /// The length of a stack's last record. Each record has the length of the one before it as its link, and
  /// not its address, since the memory may move.
  private var lastLength = 0
  private var padding = 0

  /// Where no record is.
  private static var nowhere: UnsafeMutableRawPointer {
    UnsafeMutableRawPointer(bitPattern: line).unsafelyUnwrapped
  }
  private static let line = 64
  private static let smallest = 2048

  static func isStack(_ lane: Int) -> Bool { lane < Int(Lane.firstQueue) }

  @inline(__always)
  var isEmpty: Bool { begin == end }
  /// How many events were ever put in.
  var posted: Int { earlier + Int(count) }

  /// The first usable byte. Most records have 64 bytes, so that each lies on one cache line.
  private var start: UnsafeMutableRawPointer {
    memory?.alignedUp(toMultipleOf: Self.line) ?? Self.nowhere
  }

  /// Copies records into the lane.
  @inline(__always)
  mutating func append(_ run: LockingRun, isStack: Bool) {
    let bytes = run.count &* run.length
    if bytes > Int(room) { makeRoom(for: bytes) }
    let place = end
    // For most records, a few instructions instead of a call.
    if bytes == 64 {
      place.copyMemory(from: run.first.address, byteCount: 64)
    } else {
      place.copyMemory(from: run.first.address, byteCount: bytes)
    }
    end = place + bytes
    room &-= UInt32(truncatingIfNeeded: bytes)
    count &+= UInt32(truncatingIfNeeded: run.count)
    if isStack { chain(run, at: place) }
    // The next lines are still in the consumer's cache. Without the prefetch, the next unlock would have to
    // wait for them.
    prefetchForWrite(place + (bytes &+ 192))
  }

  private mutating func chain(_ run: LockingRun, at place: UnsafeMutableRawPointer) {
    for index in 0..<run.count {
      LockingRecord(address: place + index * run.length).header.pointee.link =
        UnsafeMutableRawPointer(bitPattern: lastLength)
      lastLength = run.length
    }
  }

  @inline(never)
  private mutating func makeRoom(for bytes: Int) {
    let used = end - begin
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
    start.copyMemory(from: from, byteCount: used)
    setPlace(begin: start, end: start + used)
  }

  private mutating func setPlace(begin: UnsafeMutableRawPointer, end: UnsafeMutableRawPointer) {
    (self.begin, self.end) = (begin, end)
    (earlier, count) = (posted, 0)
    room = UInt32(clamping: start + size - end)
  }

  /// Counts an event that waits elsewhere in place of a record, or, with -1, that it waits no more.
  mutating func countPosted(_ change: Int) { earlier += change }

  /// Takes the record out that is next by D2 or D3. The lane must not be empty. The record stays in place
  /// until the next `append`.
  @inline(__always)
  mutating func take(isStack: Bool) -> LockingRecord {
    let record = LockingRecord(address: isStack ? end - lastLength : begin)
    if isStack {
      lastLength = Int(bitPattern: record.header.pointee.link)
      setPlace(begin: begin, end: record.address)
    } else {
      begin = record.address + record.length
    }
    return record
  }

  /// Takes all records of another queue over, which gets the memory of this empty one for them.
  mutating func takeAll(of other: inout LockingLane) {
    let posted = other.posted
    setPlace(begin: start, end: start)
    swap(&self, &other)
    (other.earlier, other.count) = (posted, 0)
  }

  /// Gives the memory of an empty lane away, to be freed, if it is more than so many bytes.
  mutating func takeMemory(over kept: Int) -> UnsafeMutableRawPointer? {
    guard isEmpty, size > kept else { return nil }
    let block = memory
    (memory, size) = (nil, 0)
    setPlace(begin: Self.nowhere, end: Self.nowhere)
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

/// Memory for a record that was taken out of a lane while producers fill it.
struct LockingBuffer: ~Copyable {
  private var memory: UnsafeMutableRawPointer?
  private var size = 0

  deinit { memory?.deallocate() }

  mutating func copy(_ record: LockingRecord) -> LockingRecord {
    let length = record.length
    if length > size {
      memory?.deallocate()
      memory = .allocate(byteCount: length, alignment: 64)
      size = length
    }
    let place = memory.unsafelyUnwrapped
    place.copyMemory(from: record.address, byteCount: length)
    return LockingRecord(address: place)
  }
}
