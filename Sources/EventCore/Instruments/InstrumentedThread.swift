// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// How often one thread has dispatched events of one type, inside the handlers of one receiver or outside of all.
final class DispatchCount: @unchecked Sendable {
  // Constant, or written by the thread alone.

  let key: UInt
  /// Nil for dispatches outside of handlers.
  let source: ConsumerProbe?
  /// The events, and how many dispatches are not timed before the next one is; the C core knows it as a tally.
  private let counts = LineCounters()
  weak let instruments: Instruments?

  init(_ key: UInt, _ source: ConsumerProbe?, _ instruments: Instruments) {
    (self.key, self.source, self.instruments) = (key, source, instruments)
  }

  var value: UInt64 { counts[0] }

  /// Where a core may count dispatches itself, as long as some are left.
  var tally: UnsafeMutableRawPointer { UnsafeMutableRawPointer(counts.memory) }

  /// Counts a dispatch. Returns whether it is timed, as one of `every` dispatches is: the first one, to begin with.
  @inline(__always)
  func add(_ events: Int, _ every: UInt32) -> Bool {
    counts[0] = counts[0] &+ UInt64(truncatingIfNeeded: events)
    let left = counts[1]
    guard every != 0 else {
      // Without an end, in case the core asks how many are left.
      counts[1] = .max
      return false
    }
    let isDue = left == 0 || left >= UInt64(every)
    counts[1] = (isDue ? UInt64(every) : left) &- 1
    return isDue
  }
}

/// What a thread counts of its dispatches, and where it writes its part of a trace.
final class InstrumentedThread: @unchecked Sendable {
  // The thread's own, and its last release is by the thread as well.

  private struct Key: Hashable {
    let key: UInt
    let source: UInt
    let central: UInt64
  }

  private struct State {
    /// The last count and its key, for the next dispatch, which is most often for the same.
    var last = Key(key: 0, source: 0, central: 0)
    var lastCount: Unmanaged<DispatchCount>?
    var counts: [Key: DispatchCount] = [:]
    /// How many counts there are when the next look for those that are over is due.
    var mostCounts = 64
    /// Where the thread writes, and the trace of which that is a part.
    var chunk: TraceChunk?
    var trace: UInt64 = 0
    var clock = TickClock()
  }
  /// A pointer, since a class's property would be checked for exclusive access each time.
  private let state: UnsafeMutablePointer<State>

  static let all = ThreadLocal<InstrumentedThread>(keepsValues: true)
  private static let count = Atomic<UInt>(0)

  /// No other thread's, which the system's numbers may be of threads that have ended.
  let number = InstrumentedThread.count.wrappingAdd(1, ordering: .relaxed).newValue

  /// Has the thread tell of its next dispatches, before the memory goes where a core counts them.
  private let forgetTallies: @Sendable () -> Void

  init(_ forgetTallies: @escaping @Sendable () -> Void) {
    self.forgetTallies = forgetTallies
    state = .allocate(capacity: 1)
    state.initialize(to: State())
  }

  deinit {
    // The thread may dispatch once more while it ends.
    forgetTallies()
    for count in state.pointee.counts.values { count.instruments?.fold(count) }
    state.deinitialize(count: 1)
    state.deallocate()
  }

  /// The time as this thread measures it: not before one that has passed.
  @inline(__always)
  func now(after time: UInt64 = 0) -> UInt64 { state.pointee.clock.now(after: time) }

  /// The count for a type, a source and a central.
  @inline(__always)
  func count(
    _ key: UInt, _ source: Unmanaged<ConsumerProbe>?, _ instruments: Instruments
  ) -> Unmanaged<DispatchCount> {
    let key = Key(key: key, source: UInt(bitPattern: source?.toOpaque()), central: instruments.number)
    if key == state.pointee.last, let count = state.pointee.lastCount { return count }
    return find(key, source, instruments)
  }

  @inline(never)
  private func find(
    _ key: Key, _ source: Unmanaged<ConsumerProbe>?, _ instruments: Instruments
  ) -> Unmanaged<DispatchCount> {
    var found = state.pointee.counts[key]
    if found == nil {
      if state.pointee.counts.count >= state.pointee.mostCounts { foldOver() }
      let new = DispatchCount(key.key, source?.takeUnretainedValue(), instruments)
      instruments.add(new)
      state.pointee.counts[key] = new
      found = new
    }
    let count = Unmanaged.passUnretained(found.unsafelyUnwrapped)
    state.pointee.last = key
    state.pointee.lastCount = count
    return count
  }

  /// Lets go of the counts for receivers and centrals that are gone.
  private func foldOver() {
    forgetTallies()
    for (key, count) in state.pointee.counts where count.source?.isOver == true || count.instruments == nil {
      count.instruments?.fold(count)
      state.pointee.counts[key] = nil
    }
    state.pointee.mostCounts = max(64, 2 * state.pointee.counts.count)
  }

  /// Where the thread writes its part of a trace; nil if it has none, or has written to another trace since.
  @inline(__always)
  func chunk(of trace: UInt64) -> Unmanaged<TraceChunk>? {
    state.pointee.trace == trace ? state.pointee.chunk.map { .passUnretained($0) } : nil
  }

  /// Whether the trace is the last one that the thread has written to, or had no room in.
  func writes(to trace: UInt64) -> Bool { state.pointee.trace == trace }

  func setChunk(_ chunk: TraceChunk?, of trace: UInt64) {
    state.pointee.chunk = chunk
    state.pointee.trace = trace
  }
}
