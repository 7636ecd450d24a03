// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// A dispatch, or the handling of an event at one receiver. Four words, which are passed in registers.
struct TraceRecord {
  /// The event's key, or the address of a `ReceiverProbe` plus 1, which `TraceBuffer` retains. Both addresses are even.
  fileprivate let what: UInt
  let begin: UInt64
  /// Of a handling: for how long the event waited before, and for how long it was handled.
  let waited: UInt64
  let handled: UInt64

  static func dispatch(of key: UInt, at time: UInt64) -> Self {
    Self(what: key, begin: time, waited: 0, handled: 0)
  }

  static func handling(by probe: ReceiverProbe, from begin: UInt64, waited: UInt64, handled: UInt64) -> Self {
    Self(what: address(of: probe) + 1, begin: begin, waited: waited, handled: handled)
  }

  static func address(of probe: ReceiverProbe) -> UInt {
    UInt(bitPattern: Unmanaged.passUnretained(probe).toOpaque())
  }

  /// Nil for a handling.
  var key: UInt? { what & 1 == 0 ? what : nil }
  /// The address of the probe of a handling.
  var probe: UInt { what - 1 }
  /// When the event was dispatched, which ties the two together.
  var dispatched: UInt64 { begin - waited }
}

/// A part of what one thread has done, or one receiver of a deterministic central. The thread appends; any thread reads
/// what is complete.
///
/// Memory costs more than anything else here, since a new page takes a microsecond: a dispatch takes one word, and a
/// handling two. Another one comes where the type or the receiver is not that of the last record of its kind.
final class TraceChunk: @unchecked Sendable {
  // The thread alone touches `latest`, and writes `words` before `written`.
  /// How many records it may have.
  let capacity: Int
  /// Of each record: its head, which is when it began and the flags; what it is of, if that is new; then the two times
  /// of a handling in one word. If one of the times is too long for that, the head is the flags alone, and the three
  /// times have a word each.
  private let words: UnsafeMutablePointer<UInt64>
  /// What the last dispatch and the last handling were of. In the two words before the others.
  private let latest: UnsafeMutablePointer<UInt64>
  /// How many words are written, and 2^32 for each record.
  private let written = Atomic<UInt64>(0)
  private static let record: UInt64 = 1 << 32
  // The flags of a head.
  private static let isHandling: UInt64 = 1
  private static let isNew: UInt64 = 2
  private static let isLong: UInt64 = 4
  let thread: UInt
  let name: String

  init(thread: UInt, name: String, capacity: Int) {
    (self.thread, self.name, self.capacity) = (thread, name, capacity)
    latest = .allocate(capacity: 2 + 5 * capacity)
    latest.initialize(repeating: 0, count: 2)
    words = latest + 2
  }

  deinit {
    latest.deallocate()
  }

  /// False if it is full. The chunk's thread.
  @inline(__always)
  func append(_ record: TraceRecord) -> Bool {
    let written = written.load(ordering: .relaxed)
    guard written < UInt64(capacity) * Self.record else { return false }
    let first = words + Int(truncatingIfNeeded: written % Self.record)
    var next = first + 1
    let what = UInt64(record.what)
    var head = what & Self.isHandling
    if latest[Int(head)] != what {
      latest[Int(head)] = what
      next.pointee = what
      next += 1
      head |= Self.isNew
    }
    if record.begin >> 61 | (record.waited | record.handled) >> 32 != 0 {
      (next[0], next[1], next[2]) = (record.begin, record.waited, record.handled)
      next += 3
      head |= Self.isLong
    } else {
      head |= record.begin << 3
      if record.key == nil {
        next.pointee = record.waited << 32 | record.handled
        next += 1
      }
    }
    first.pointee = head
    // Releasing, pairs with `all`.
    self.written.store(written + Self.record + UInt64(next - first), ordering: .releasing)
    return true
  }

  var all: [TraceRecord] {
    // Acquiring: the records before their number.
    let count = Int(written.load(ordering: .acquiring) / Self.record)
    var (next, latest) = (words, [UInt64](repeating: 0, count: 2))
    func word() -> UInt64 {
      defer { next += 1 }
      return next.pointee
    }
    return (0..<count).map { _ in
      let head = word()
      let kind = Int(head & Self.isHandling)
      if head & Self.isNew != 0 { latest[kind] = word() }
      let isLong = head & Self.isLong != 0
      let begin = isLong ? word() : head >> 3
      // One word holds both times of a short handling.
      let times = isLong || kind != 0 ? word() : 0
      return TraceRecord(
        what: UInt(latest[kind]), begin: begin, waited: isLong ? times : times >> 32,
        handled: isLong ? word() : times % Self.record)
    }
  }
}

/// What a trace has collected, in chunks for each thread. It outlives its end, since a thread may be about to append.
///
/// In a deterministic central all runs on one thread, so there the chunks are the receivers', and nothing in them differs
/// from run to run.
final class TraceBuffer: Sendable {
  private struct State {
    var chunks: [TraceChunk] = []
    /// Where each thread writes, by its number, or each receiver of a deterministic central, by that of its probe; 0
    /// outside of handlers.
    var tracks: [UInt: TraceChunk] = [:]
    var probes: [ReceiverProbe] = []
    var isOver = false
    /// For how many more records there may be chunks.
    var room: Int

    /// Appends to the chunk of a track, or to a new one if that is full. Returns where it stands; nil if the trace is
    /// over or full.
    mutating func append(_ record: TraceRecord, to track: UInt, name: @autoclosure () -> String) -> TraceChunk? {
      let full = tracks[track]
      if full?.append(record) == true { return full }
      guard !isOver, room > 0 else { return nil }
      // Small at first, and by what is left: neither many threads nor a busy one take the room that others need.
      let wanted = max(16, min(2 * (full?.capacity ?? 0), room / 8, 1024))
      let chunk = TraceChunk(thread: track, name: full?.name ?? name(), capacity: min(wanted, room))
      room -= chunk.capacity
      chunks.append(chunk)
      tracks[track] = chunk
      return chunk.append(record) ? chunk : nil
    }
  }
  private let state: Guarded<State>
  let number: UInt64
  let start: UInt64
  /// That of a deterministic central; nil for others.
  let seed: UInt64?
  private let lost = Atomic<Int>(0)
  private let isFull = Atomic<Bool>(false)

  private static let count = Atomic<UInt64>(0)

  init(start: UInt64, limit: Int, seed: UInt64?) {
    number = Self.count.wrappingAdd(1, ordering: .relaxed).newValue
    (self.start, self.seed) = (start, seed)
    state = Guarded(State(room: limit))
  }

  /// Appends to the part of the calling thread; in a deterministic central to that of the receiver whose handler runs.
  ///
  /// `receiver` is an autoclosure, since a method that is passed as a closure would retain its object for each event.
  @inline(__always)
  func append(
    _ record: TraceRecord, _ thread: InstrumentedThread, _ receiver: @autoclosure () -> Unmanaged<ConsumerProbe>?
  ) {
    if seed != nil { return append(record, of: receiver()?.takeUnretainedValue()) }
    let isWritten = thread.chunk(of: number)?._withUnsafeGuaranteedRef { $0.append(record) }
    if isWritten != true { appendToNew(record, thread) }
  }

  @inline(never)
  private func appendToNew(_ record: TraceRecord, _ thread: InstrumentedThread) {
    // Relaxed: it only saves the mutex. A thread that has written to another trace meanwhile may have room here.
    if isFull.load(ordering: .relaxed), thread.writes(to: number) {
      lost.wrappingAdd(1, ordering: .relaxed)
      return
    }
    let chunk = state.withLock { $0.append(record, to: thread.number, name: currentThreadName()) }
    thread.setChunk(chunk, of: number)
    if chunk == nil {
      isFull.store(true, ordering: .relaxed)
      lost.wrappingAdd(1, ordering: .relaxed)
    }
  }

  private func append(_ record: TraceRecord, of receiver: ConsumerProbe?) {
    // The numbers begin with 1.
    let chunk = state.withLock {
      $0.append(record, to: UInt(receiver?.number ?? 0), name: receiver?.label ?? "outside")
    }
    if chunk == nil { lost.wrappingAdd(1, ordering: .relaxed) }
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
