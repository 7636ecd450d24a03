// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// A dispatch, or the handling of an event at one receiver.
struct TraceRecord {
  let key: UInt
  /// Nil for a dispatch. `TraceBuffer` retains it.
  let probe: Unmanaged<ReceiverProbe>?
  let begin: UInt64
  let end: UInt64
  /// When the event was dispatched, which ties the two together.
  let dispatched: UInt64
}

/// A part of what one thread has done, or one receiver of a deterministic central. The thread appends; any thread reads
/// what is complete.
final class TraceChunk: @unchecked Sendable {
  // `records` is written before `count`.
  static let capacity = 1024
  private let records = UnsafeMutablePointer<TraceRecord>.allocate(capacity: TraceChunk.capacity)
  private let count = Atomic<Int>(0)
  let thread: UInt
  let name: String

  init(thread: UInt = currentThreadNumber(), name: String = currentThreadName()) {
    (self.thread, self.name) = (thread, name)
  }

  deinit {
    records.deallocate()
  }

  /// False if it is full. The chunk's thread.
  @inline(__always)
  func append(_ record: TraceRecord) -> Bool {
    let count = count.load(ordering: .relaxed)
    guard count < Self.capacity else { return false }
    (records + count).initialize(to: record)
    // Releasing, pairs with `all`.
    self.count.store(count + 1, ordering: .releasing)
    return true
  }

  var all: UnsafeBufferPointer<TraceRecord> {
    // Acquiring: the records before their number.
    UnsafeBufferPointer(start: records, count: count.load(ordering: .acquiring))
  }
}

/// What a trace has collected, in chunks for each thread. It outlives its end, since a thread may be about to append.
///
/// In a deterministic central all runs on one thread, so there the chunks are the receivers', and nothing in them differs
/// from run to run.
final class TraceBuffer: Sendable {
  private struct State {
    var chunks: [TraceChunk] = []
    /// Of a deterministic central: where each receiver writes, by the numbers of their probes; 0 outside of handlers.
    var tracks: [UInt: TraceChunk] = [:]
    var probes: [ReceiverProbe] = []
    var isOver = false
  }
  private let state = Guarded(State())
  let number: UInt64
  let start: UInt64
  /// That of a deterministic central; nil for others.
  let seed: UInt64?
  private let mostChunks: Int
  private let lost = Atomic<Int>(0)
  private let isFull = Atomic<Bool>(false)

  private static let count = Atomic<UInt64>(0)

  init(start: UInt64, limit: Int, seed: UInt64?) {
    number = Self.count.wrappingAdd(1, ordering: .relaxed).newValue
    (self.start, self.seed) = (start, seed)
    mostChunks = max(1, limit / TraceChunk.capacity)
  }

  /// Appends to the part of the calling thread; in a deterministic central to that of the receiver whose handler runs.
  @inline(__always)
  func append(_ record: TraceRecord, _ thread: InstrumentedThread, _ receiver: () -> Unmanaged<ConsumerProbe>?) {
    if seed != nil { return append(record, of: receiver()?.takeUnretainedValue()) }
    let isWritten = thread.chunk(of: number)?._withUnsafeGuaranteedRef { $0.append(record) }
    if isWritten != true { appendToNew(record, thread) }
  }

  @inline(never)
  private func appendToNew(_ record: TraceRecord, _ thread: InstrumentedThread) {
    // Relaxed: it only saves the making of a chunk.
    if isFull.load(ordering: .relaxed) {
      lost.wrappingAdd(1, ordering: .relaxed)
      return
    }
    let chunk = TraceChunk()
    _ = chunk.append(record)
    let hasRoom = state.withLock { state in
      guard !state.isOver, state.chunks.count < mostChunks else { return false }
      state.chunks.append(chunk)
      return true
    }
    if hasRoom {
      thread.setChunk(chunk, of: number)
    } else {
      isFull.store(true, ordering: .relaxed)
      lost.wrappingAdd(1, ordering: .relaxed)
    }
  }

  private func append(_ record: TraceRecord, of receiver: ConsumerProbe?) {
    // The numbers begin with 1.
    let track = UInt(receiver?.number ?? 0)
    let isWritten = state.withLock { state in
      if state.tracks[track]?.append(record) == true { return true }
      guard !state.isOver, state.chunks.count < mostChunks else { return false }
      let chunk = TraceChunk(thread: track, name: receiver?.label ?? "outside")
      state.tracks[track] = chunk
      state.chunks.append(chunk)
      return chunk.append(record)
    }
    if !isWritten { lost.wrappingAdd(1, ordering: .relaxed) }
  }

  /// Keeps a probe for the records that name it. Its consumer's thread.
  @inline(__always)
  func keep(_ probe: ReceiverProbe) {
    if probe.keptBy != number { keepNew(probe) }
  }

  @inline(never)
  private func keepNew(_ probe: ReceiverProbe) {
    let isKept = state.withLock { state in
      if !state.isOver { state.probes.append(probe) }
      return !state.isOver
    }
    if isKept { probe.keptBy = number }
  }

  /// Ends it. Returns what it has collected, and how many records had no room; nothing the second time.
  func end() -> (chunks: [TraceChunk], probes: [ReceiverProbe], lost: Int) {
    let (chunks, probes) = state.withLock { state in
      state.isOver = true
      defer { (state.chunks, state.tracks, state.probes) = ([], [:], []) }
      return (state.chunks, state.probes)
    }
    return (chunks, probes, lost.load(ordering: .relaxed))
  }
}
