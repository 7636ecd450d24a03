// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// How much one thread of a pool has to do: counters that the pool's balancer and the thread keep,
/// so that nobody has to walk a list.
///
/// A view; ``Memory`` owns what it points to. The first word is the load of the C core, and works
/// as Sources/CEventCore/balancer/load.h proves: adding to it promises an event, unless its highest bit is
/// set.
///
/// The words, with who writes them; on the second line those of the thread.
struct EventLoad: @unchecked Sendable {
  // Everything it points to is atomic or constant.
  let memory: UnsafeMutableRawPointer

  private enum Offset {
    /// Whoever posts.
    static let promised = 0
    /// Constant.
    static let index = 8
    /// The thread, as `since` and `superseded`.
    static let done = 64
    static let since = 72
    /// Whoever retires the thread.
    static let final = 80
    static let superseded = 88
    /// Of the memory: two lines.
    static let end = 128
  }

  private static let retired: UInt64 = 1 << 63

  @inline(__always)
  private func word(_ offset: Int) -> UnsafeMutablePointer<Atomic<UInt64>> {
    (memory + offset).assumingMemoryBound(to: Atomic<UInt64>.self)
  }

  /// The index of the thread in its pool.
  var index: Int { memory.load(fromByteOffset: Offset.index, as: Int.self) }

  // MARK: For balancers, any thread

  /// Counts events that are about to be posted. False if the thread takes no more.
  func promise(_ count: Int) -> Bool {
    // Sequentially consistent: for `PoolTicker`, which falls asleep when it sees nothing promised.
    let before = word(Offset.promised).pointee.wrappingAdd(UInt64(count), ordering: .sequentiallyConsistent)
      .oldValue
    guard before & Self.retired != 0 else { return true }
    withdraw(count)
    return false
  }

  func withdraw(_ count: Int) {
    // Relaxed: the order of changes of the word is all that counts.
    word(Offset.promised).pointee.wrappingSubtract(UInt64(count), ordering: .relaxed)
  }

  /// Events that wait or are handled now. Those of a latest-only callback that were superseded
  /// count until it is called next.
  @inline(__always)
  var pending: Int {
    // Done first: an event is promised before it is done, so that the difference is not negative
    // but for what a refused post took back.
    let done = word(Offset.done).pointee.load(ordering: .acquiring) &+ superseded
    return max(0, Int(bitPattern: UInt(promised &- done)))
  }

  /// Events of latest-only callbacks that a newer one superseded, as of their last calls.
  private var superseded: UInt64 { word(Offset.superseded).pointee.load(ordering: .relaxed) }

  /// Events promised so far.
  var promised: UInt64 { word(Offset.promised).pointee.load(ordering: .sequentiallyConsistent) & ~Self.retired }

  /// Events handled so far.
  var done: UInt64 { word(Offset.done).pointee.load(ordering: .acquiring) }

  /// When the handler that runs now began, on the scale of `coarseNanoseconds`; nil if none runs.
  var runningSince: UInt64? {
    let since = word(Offset.since).pointee.load(ordering: .sequentiallyConsistent)
    return since == 0 ? nil : since
  }

  // MARK: The thread itself

  /// A handler begins. `isWatched`: a `PoolTicker` falls asleep by what it sees here.
  @inline(__always)
  func begin(isWatched: Bool) {
    if isWatched {
      word(Offset.since).pointee.store(coarseNanoseconds() | 1, ordering: .sequentiallyConsistent)
    } else {
      // Relaxed: a momentary figure for those who look.
      word(Offset.since).pointee.store(coarseNanoseconds() | 1, ordering: .relaxed)
    }
  }

  /// It has returned.
  @inline(__always)
  func end() {
    word(Offset.since).pointee.store(0, ordering: .relaxed)
    // Only this thread writes it. Releasing: what the handler did, before a balancer sees it done.
    let done = word(Offset.done).pointee.load(ordering: .relaxed) &+ 1
    word(Offset.done).pointee.store(done, ordering: .releasing)
  }

  /// How many events were superseded so far, of all latest-only callbacks. Before `end` of such an
  /// event.
  func setSuperseded(_ count: UInt64) {
    // Relaxed: published by `end`.
    word(Offset.superseded).pointee.store(count, ordering: .relaxed)
  }

  /// Whether all that was promised before the retirement is done: after each event, and after the
  /// interrupt that follows `retire`. What supersedes another event is itself still to come.
  var isFinished: Bool {
    // Acquiring: pairs with `retire`.
    word(Offset.done).pointee.load(ordering: .relaxed) &+ superseded
      == word(Offset.final).pointee.load(ordering: .acquiring)
  }

  // MARK: The pool

  /// Ends the promises. The thread is then to be interrupted, and looks at `isFinished`.
  func retire() {
    let promised = word(Offset.promised).pointee.bitwiseOr(Self.retired, ordering: .sequentiallyConsistent)
      .oldValue
    // Pairs with `isFinished`.
    word(Offset.final).pointee.store(promised & ~Self.retired, ordering: .releasing)
  }

  /// The memory of a load, on cache lines of its own.
  final class Memory: Sendable {
    // Constant.
    let load: EventLoad

    init(index: Int) {
      let memory = UnsafeMutableRawPointer.allocate(byteCount: Offset.end, alignment: Offset.done)
      memory.initializeMemory(as: UInt64.self, repeating: 0, count: Offset.end / 8)
      memory.storeBytes(of: index, toByteOffset: Offset.index, as: Int.self)
      memory.storeBytes(of: .max, toByteOffset: Offset.final, as: UInt64.self)
      load = EventLoad(memory: memory)
    }

    deinit {
      load.memory.deallocate()
    }
  }
}
