// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

typealias LockingChunkPointer = UnsafeMutablePointer<LockingChunk>

/// A piece of a lane: this header, and records one behind the other.
struct LockingChunk {
  var next: LockingChunkPointer?
  /// The records: of a queue from the first that was not taken, of a stack up to the last.
  var begin: UnsafeMutableRawPointer
  var end: UnsafeMutableRawPointer
  /// Of a stack: the record that ends at `end`.
  var last: UnsafeMutableRawPointer?

  static let size = 8192
  private static let header = 64

  /// Makes one, with records to come in it.
  static func allocate() -> LockingChunkPointer {
    // On lines of its own, as the records in it: others write and read the chunks beside it.
    let memory = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: header)
    return memory.bindMemory(to: LockingChunk.self, capacity: 1)
  }

  static func empty(_ chunk: LockingChunkPointer) {
    let records = UnsafeMutableRawPointer(chunk) + header
    chunk.initialize(to: LockingChunk(next: nil, begin: records, end: records))
  }
}

/// Chunks one behind the other: of a lane, or without a use.
struct LockingChunkList {
  private(set) var first: LockingChunkPointer?
  private(set) var last: LockingChunkPointer?
  private(set) var count = 0

  mutating func append(_ chunk: LockingChunkPointer) {
    if let last { last.pointee.next = chunk } else { first = chunk }
    last = chunk
    count += 1
  }

  mutating func prepend(_ chunk: LockingChunkPointer) {
    chunk.pointee.next = first
    first = chunk
    if last == nil { last = chunk }
    count += 1
  }

  /// Takes all of another list over, before those that are here.
  mutating func prependAll(of other: inout LockingChunkList) {
    guard let end = other.last else { return }
    end.pointee.next = first
    first = other.first
    if last == nil { last = end }
    count += other.count
    other = LockingChunkList()
  }

  mutating func removeFirst() -> LockingChunkPointer? {
    guard let chunk = first else { return nil }
    first = chunk.pointee.next
    if first == nil { last = nil }
    count -= 1
    return chunk
  }

  /// Takes all but so many out.
  mutating func removeAll(but kept: Int) -> LockingChunkList {
    var keep = LockingChunkList()
    while keep.count < kept, let chunk = removeFirst() { keep.prepend(chunk) }
    defer { self = keep }
    return self
  }

  /// Gives the memory back to the system.
  mutating func deallocateAll() {
    while let chunk = removeFirst() { chunk.deallocate() }
  }
}

/// Ten lanes, each a list of chunks. No lock of its own.
///
/// A queue is filled in its last chunk and taken from in its first; a stack's first chunk is both.
/// So a lane is one buffer that can change hands whole, however much it holds.
struct LockingLanes: ~Copyable {
  /// All that a post touches beside its record, if it follows one to the same queue: each line more
  /// would have to come over from the consumer after each of its looks.
  struct Hot {
    /// Where the next record of `lane` goes, and how many bytes are left there.
    var end = UnsafeMutableRawPointer(bitPattern: 64).unsafelyUnwrapped
    var room: UInt16 = 0
    /// How many have come there that its lane does not count yet: no more than a chunk has.
    var posted: UInt16 = 0
    /// One bit for each lane that holds something.
    var occupied: UInt16 = 0
    /// The queue whose last chunk is being filled here, or `Lane.count`.
    var lane = UInt8(EventCore.Lane.count)
    /// A post to a lane before this one, or to this one if it is a stack, concerns who takes.
    var first = UInt8(EventCore.Lane.count)
    /// Whether those who take have been told so.
    var isTold = false
    var refuses = false
    /// Whether somebody is asleep.
    var hasSleepers = false
  }

  private struct Lane {
    var chunks = LockingChunkList()
    var posted = 0
  }

  /// Not owned.
  let hot: UnsafeMutablePointer<Hot>
  private let lanes: UnsafeMutablePointer<Lane>
  var free = LockingChunkList()

  init(_ hot: UnsafeMutablePointer<Hot>) {
    self.hot = hot
    hot.initialize(to: Hot())
    lanes = .allocate(capacity: EventCore.Lane.count)
    lanes.initialize(repeating: Lane(), count: EventCore.Lane.count)
  }

  deinit {
    for lane in 0..<EventCore.Lane.count { lanes[lane].chunks.deallocateAll() }
    lanes.deallocate()
    var free = free
    free.deallocateAll()
  }

  private static func isStack(_ lane: Int) -> Bool { lane < Int(EventCore.Lane.firstQueue) }

  /// The first lane that holds something, or `Lane.count`.
  var firstLane: Int {
    let occupied = hot.pointee.occupied
    return occupied == 0 ? EventCore.Lane.count : occupied.trailingZeroBitCount
  }

  /// How many records were ever put into a lane.
  func posted(_ lane: Int) -> Int {
    lanes[lane].posted + (hot.pointee.lane == lane ? Int(hot.pointee.posted) : 0)
  }

  // MARK: Filling

  /// Copies records into their lane.
  @inline(__always)
  mutating func append(_ run: LockingRun, _ lane: UInt8) {
    let bytes = run.count &* run.length
    guard hot.pointee.lane == lane, bytes <= Int(hot.pointee.room) else {
      return appendAnywhere(run, Int(lane))
    }
    let end = hot.pointee.end
    // Most are of 64 bytes: a few moves in place of a call.
    if bytes == 64 {
      end.copyMemory(from: run.first.address, byteCount: 64)
    } else {
      end.copyMemory(from: run.first.address, byteCount: bytes)
    }
    hot.pointee.end = end + bytes
    hot.pointee.room &-= UInt16(truncatingIfNeeded: bytes)
    hot.pointee.posted &+= UInt16(truncatingIfNeeded: run.count)
    hot.pointee.occupied |= 1 << UInt16(lane)
    // The consumer has had the lines of this chunk: each would hold up the next unlock until it has
    // come over.
    prefetchForWrite(end + (bytes &+ 192))
  }

  @inline(never)
  private mutating func appendAnywhere(_ run: LockingRun, _ lane: Int) {
    let isStack = Self.isStack(lane)
    if !isStack { closeLane() }
    var done = 0
    repeat {
      let chunk = chunk(for: run.length, lane)
      let end = chunk.pointee.end
      let limit = UnsafeMutableRawPointer(chunk) + LockingChunk.size
      let count = min(run.count - done, (limit - end) / run.length)
      end.copyMemory(from: run[done].address, byteCount: count * run.length)
      if isStack {
        for index in 0..<count {
          let record = LockingRecord(address: end + index * run.length)
          record.header.pointee.link = chunk.pointee.last
          chunk.pointee.last = record.address
        }
      }
      chunk.pointee.end = end + count * run.length
      done += count
    } while done < run.count
    lanes[lane].posted += run.count
    hot.pointee.occupied |= 1 << UInt16(lane)
    if !isStack { openLane(lane) }
  }

  /// Where a lane is filled, with room for one record at least.
  private mutating func chunk(for length: Int, _ lane: Int) -> LockingChunkPointer {
    let isStack = Self.isStack(lane)
    let last = isStack ? lanes[lane].chunks.first : lanes[lane].chunks.last
    if let last, last.pointee.end + length <= UnsafeMutableRawPointer(last) + LockingChunk.size {
      return last
    }
    let chunk = free.removeFirst() ?? LockingChunk.allocate()
    LockingChunk.empty(chunk)
    if isStack { lanes[lane].chunks.prepend(chunk) } else { lanes[lane].chunks.append(chunk) }
    return chunk
  }

  /// Has the posts to a queue follow each other in its last chunk, which it has.
  private func openLane(_ lane: Int) {
    let chunk = lanes[lane].chunks.last.unsafelyUnwrapped
    hot.pointee.end = chunk.pointee.end
    hot.pointee.room = UInt16(
      UnsafeMutableRawPointer(chunk) + LockingChunk.size - chunk.pointee.end)
    hot.pointee.lane = UInt8(lane)
  }

  /// Ends that, so that the lane has all that is in it.
  private mutating func closeLane() {
    let lane = Int(hot.pointee.lane)
    guard lane < EventCore.Lane.count else { return }
    let chunk = lanes[lane].chunks.last.unsafelyUnwrapped
    chunk.pointee.end = hot.pointee.end
    lanes[lane].posted += Int(hot.pointee.posted)
    hot.pointee.posted = 0
    hot.pointee.room = 0
    hot.pointee.lane = UInt8(EventCore.Lane.count)
    // It was made ready, and nothing came.
    if chunk.pointee.begin == chunk.pointee.end {
      free.prepend(lanes[lane].chunks.removeFirst().unsafelyUnwrapped)
    }
  }

  // MARK: Taking

  /// Takes the record of a lane out that is next by D2 or D3; there is one.
  mutating func take(_ lane: Int, into buffer: inout LockingBuffer) -> LockingRecord {
    closeLane()
    let chunk = lanes[lane].chunks.first.unsafelyUnwrapped
    let record: LockingRecord
    if Self.isStack(lane) {
      record = LockingRecord(address: chunk.pointee.last.unsafelyUnwrapped)
      chunk.pointee.last = record.header.pointee.link
      chunk.pointee.end = record.address
    } else {
      record = LockingRecord(address: chunk.pointee.begin)
      chunk.pointee.begin = record.address + record.length
    }
    let copy = buffer.copy(record)
    if chunk.pointee.begin == chunk.pointee.end {
      free.prepend(lanes[lane].chunks.removeFirst().unsafelyUnwrapped)
      if lanes[lane].chunks.first == nil { hot.pointee.occupied &= ~(1 << UInt16(lane)) }
    }
    return copy
  }

  /// Takes all of a queue out; there is something in it.
  mutating func takeAll(_ lane: Int) -> LockingChunkList {
    closeLane()
    hot.pointee.occupied &= ~(1 << UInt16(lane))
    let all = lanes[lane].chunks
    lanes[lane].chunks = LockingChunkList()
    // A chunk for what comes next, by the hand that has these lines.
    if let chunk = free.removeFirst() {
      LockingChunk.empty(chunk)
      lanes[lane].chunks.append(chunk)
      openLane(lane)
    }
    return all
  }

  /// Takes back what `takeAll` gave and what was not needed.
  mutating func putBack(_ chunks: inout LockingChunkList, _ lane: Int) {
    closeLane()
    lanes[lane].chunks.prependAll(of: &chunks)
    hot.pointee.occupied |= 1 << UInt16(lane)
  }
}
