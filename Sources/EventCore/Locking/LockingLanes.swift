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
    return empty(memory.bindMemory(to: LockingChunk.self, capacity: 1))
  }

  @discardableResult
  static func empty(_ chunk: LockingChunkPointer) -> LockingChunkPointer {
    let records = UnsafeMutableRawPointer(chunk) + header
    chunk.initialize(to: LockingChunk(next: nil, begin: records, end: records))
    return chunk
  }

  /// Frees a chunk, and those that follow it.
  static func deallocate(_ first: LockingChunkPointer?) {
    var next = first
    while let chunk = next {
      next = chunk.pointee.next
      chunk.deallocate()
    }
  }
}

/// Chunks that hold nothing.
struct LockingFreeChunks {
  private var first: LockingChunkPointer?
  private var last: LockingChunkPointer?
  private(set) var count = 0

  mutating func take() -> LockingChunkPointer {
    guard let chunk = first else { return LockingChunk.allocate() }
    first = chunk.pointee.next
    count -= 1
    return LockingChunk.empty(chunk)
  }

  mutating func give(_ chunk: LockingChunkPointer) {
    chunk.pointee.next = first
    if first == nil { last = chunk }
    first = chunk
    count += 1
  }

  /// Moves all of them over to another list.
  mutating func moveAll(to other: inout LockingFreeChunks) {
    guard let first, let last else { return }
    last.pointee.next = other.first
    if other.first == nil { other.last = last }
    other.first = first
    other.count += count
    self = LockingFreeChunks()
  }

  /// Takes all but so many out, for `LockingChunk.deallocate`.
  mutating func removeAll(but kept: Int) -> LockingChunkPointer? {
    guard count > kept else { return nil }
    var keep = LockingFreeChunks()
    for _ in 0..<kept {
      let chunk = first.unsafelyUnwrapped
      first = chunk.pointee.next
      keep.give(chunk)
    }
    defer { self = keep }
    return first
  }
}

/// Ten lanes, each a list of chunks. No lock of its own.
///
/// A queue is filled in its last chunk and taken from in its first; a stack's first chunk is both.
/// So a lane is one buffer that can change hands whole, however much it holds.
struct LockingLanes: ~Copyable {
  private struct Lane {
    var first: LockingChunkPointer?
    var last: LockingChunkPointer?
    var posted = 0
  }

  private let lanes: UnsafeMutablePointer<Lane>
  /// One bit for each lane that holds something.
  private(set) var occupied: UInt32 = 0
  var free = LockingFreeChunks()

  init() {
    lanes = .allocate(capacity: EventCore.Lane.count)
    lanes.initialize(repeating: Lane(), count: EventCore.Lane.count)
  }

  deinit {
    for lane in 0..<EventCore.Lane.count { LockingChunk.deallocate(lanes[lane].first) }
    lanes.deallocate()
    var free = free
    LockingChunk.deallocate(free.removeAll(but: 0))
  }

  private static func isStack(_ lane: Int) -> Bool { lane < Int(EventCore.Lane.firstQueue) }

  /// How many records were ever put into a lane.
  func posted(_ lane: Int) -> Int { lanes[lane].posted }

  /// Copies records into their lane.
  @inline(__always)
  mutating func append(_ run: LockingRun, _ lane: Int) {
    var done = 0
    repeat {
      let chunk = chunk(for: run.length, lane)
      let end = chunk.pointee.end
      let limit = UnsafeMutableRawPointer(chunk) + LockingChunk.size
      let count = run.count == 1 ? 1 : min(run.count - done, (limit - end) / run.length)
      end.copyMemory(from: run[done].address, byteCount: count * run.length)
      if Self.isStack(lane) {
        for index in 0..<count {
          let record = LockingRecord(address: end + index * run.length)
          record.header.pointee.link = chunk.pointee.last
          chunk.pointee.last = record.address
        }
      }
      chunk.pointee.end = end + count * run.length
      // The consumer has had the lines of this chunk: each would hold up the next unlock until it
      // has come over.
      prefetchForWrite(end + (count * run.length + 192))
      done += count
    } while done < run.count
    lanes[lane].posted += run.count
    occupied |= 1 << UInt32(lane)
  }

  /// Where a lane is filled, with room for one record at least.
  @inline(__always)
  private mutating func chunk(for length: Int, _ lane: Int) -> LockingChunkPointer {
    let isStack = Self.isStack(lane)
    if let chunk = isStack ? lanes[lane].first : lanes[lane].last,
      chunk.pointee.end + length <= UnsafeMutableRawPointer(chunk) + LockingChunk.size
    {
      return chunk
    }
    let chunk = free.take()
    if isStack {
      chunk.pointee.next = lanes[lane].first
      lanes[lane].first = chunk
    } else if let last = lanes[lane].last {
      last.pointee.next = chunk
      lanes[lane].last = chunk
    } else {
      lanes[lane].first = chunk
      lanes[lane].last = chunk
    }
    return chunk
  }

  /// Takes the record of a lane that is next by D2 or D3; there is one. It stays where it is until
  /// `settle`, which is to come before the next.
  @inline(__always)
  mutating func take(_ lane: Int) -> LockingRecord {
    let chunk = lanes[lane].first.unsafelyUnwrapped
    let record: LockingRecord
    if Self.isStack(lane) {
      record = LockingRecord(address: chunk.pointee.last.unsafelyUnwrapped)
      chunk.pointee.last = record.header.pointee.link
      chunk.pointee.end = record.address
    } else {
      record = LockingRecord(address: chunk.pointee.begin)
      chunk.pointee.begin = record.address + record.length
    }
    if chunk.pointee.begin == chunk.pointee.end, chunk.pointee.next == nil {
      occupied &= ~(1 << UInt32(lane))
    }
    return record
  }

  /// Nobody needs the record that was taken from a lane last.
  @inline(__always)
  mutating func settle(_ lane: Int) {
    guard let chunk = lanes[lane].first, chunk.pointee.begin == chunk.pointee.end else { return }
    lanes[lane].first = chunk.pointee.next
    if lanes[lane].first == nil { lanes[lane].last = nil }
    free.give(chunk)
  }

  /// Takes all of a lane's chunks over from `other`; puts them before those that it has itself.
  mutating func takeAll(_ lane: Int, from other: inout LockingLanes) {
    guard let first = other.lanes[lane].first else { return }
    if lanes[lane].first == nil { lanes[lane].last = other.lanes[lane].last }
    other.lanes[lane].last?.pointee.next = lanes[lane].first
    lanes[lane].first = first
    other.lanes[lane].first = nil
    other.lanes[lane].last = nil
    occupied |= other.occupied & 1 << UInt32(lane)
    other.occupied &= ~(1 << UInt32(lane))
  }
}

extension UInt32 {
  /// Of lanes, one bit each: the first of them, or `Lane.count`.
  var firstLane: Int { self == 0 ? Lane.count : trailingZeroBitCount }
}
