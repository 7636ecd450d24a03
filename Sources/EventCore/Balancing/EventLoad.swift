// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// How much one thread of a pool has to do, as counters: reading them takes no walk through a list.
///
/// This is a view; ``Memory`` owns what it points to. The C core shares the first two words, whose protocol
/// Sources/CEventCore/balancer/load.h proves: adding to the first promises an event, unless its highest bit is set;
/// adding to the second says that a promised event went for nothing, because the thread's mailbox was full or a newer
/// event has superseded it.
struct EventLoad: @unchecked Sendable {
  // Everything it points to is atomic or constant.
  let memory: UnsafeMutableRawPointer

  /// Two cache lines, so that the thread does not write to the line of those who post.
  private enum Offset {
    /// Written by every thread that posts.
    static let promised = 0
    /// The same.
    static let lost = 8
    /// Constant.
    static let index = 16
    /// Written by the pool's thread, as is `since`.
    static let done = 64
    static let since = 72
    /// Written by whoever retires the thread.
    static let final = 80
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

  /// Counts events that are about to be posted. False if the thread is retired and takes no more.
  func promise(_ count: Int) -> Bool {
    // Sequentially consistent: W1 of `PoolTicker`.
    let before = word(Offset.promised).pointee.wrappingAdd(UInt64(count), ordering: .sequentiallyConsistent)
      .oldValue
    guard before & Self.retired != 0 else { return true }
    withdraw(count)
    return false
  }

  /// Takes promises back whose post was refused.
  func withdraw(_ count: Int) {
    // Relaxed: only the order in which this one word changes matters.
    word(Offset.promised).pointee.wrappingSubtract(UInt64(count), ordering: .relaxed)
  }

  /// Counts promised events that the thread will not handle: the overflow policy of its mailbox has refused or dropped
  /// them, or a newer event has superseded them. True if the thread is retired, and has to look whether it has finished.
  func lose(_ count: Int) -> Bool {
    // Sequentially consistent, both: P1 and P2 of load.h.
    word(Offset.lost).pointee.wrappingAdd(UInt64(count), ordering: .sequentiallyConsistent)
    return word(Offset.promised).pointee.load(ordering: .sequentiallyConsistent) & Self.retired != 0
  }

  private var lost: UInt64 { word(Offset.lost).pointee.load(ordering: .sequentiallyConsistent) }

  /// Events that wait or are being handled.
  @inline(__always)
  var pending: Int {
    // `done` and what is lost are read first: each event is promised before, so only a promise that was taken
    // back can make the difference negative.
    let done = done
    return max(0, Int(bitPattern: UInt(promised &- done)))
  }

  /// Events promised so far that were not lost.
  var promised: UInt64 {
    let lost = lost
    return word(Offset.promised).pointee.load(ordering: .sequentiallyConsistent) & ~Self.retired &- lost
  }

  /// Events handled so far, and jobs.
  var done: UInt64 { word(Offset.done).pointee.load(ordering: .acquiring) }

  /// When the running handler began, on the clock of `coarseNanoseconds`; nil if none runs.
  var runningSince: UInt64? {
    let since = word(Offset.since).pointee.load(ordering: .sequentiallyConsistent)
    return since == 0 ? nil : since
  }

  // MARK: The pool's thread

  /// Notes that a handler begins. `isWatched`: the pool has a `PoolTicker`, which relies on this store.
  @inline(__always)
  func begin(isWatched: Bool) {
    if isWatched {
      // Sequentially consistent: W1 of `PoolTicker`.
      word(Offset.since).pointee.store(coarseNanoseconds() | 1, ordering: .sequentiallyConsistent)
    } else {
      // Relaxed: only momentary figures come from it.
      word(Offset.since).pointee.store(coarseNanoseconds() | 1, ordering: .relaxed)
    }
  }

  /// Notes that the handler has returned, and counts its event if it was promised.
  @inline(__always)
  func end(isPromised: Bool) {
    word(Offset.since).pointee.store(0, ordering: .relaxed)
    guard isPromised else { return }
    // Only this thread writes `done`. Releasing, pairs with `pending`: what the handler did comes first.
    let done = word(Offset.done).pointee.load(ordering: .relaxed) &+ 1
    word(Offset.done).pointee.store(done, ordering: .releasing)
  }

  /// Whether everything promised before the retirement is done or lost. Checked after each event, and after the
  /// interrupts that follow `retire` and `lose`.
  var isFinished: Bool {
    // Acquiring: pairs with `retire`. What is lost lies on the line of those who post: only a retired thread reads it.
    let final = word(Offset.final).pointee.load(ordering: .acquiring)
    return final != .max && word(Offset.done).pointee.load(ordering: .relaxed) &+ lost == final
  }

  // MARK: The pool

  /// Ends the promises. The caller then interrupts the thread, which checks `isFinished`.
  func retire() {
    // Sequentially consistent, as `promise`.
    let promised = word(Offset.promised).pointee.bitwiseOr(Self.retired, ordering: .sequentiallyConsistent)
      .oldValue
    // Releasing: pairs with `isFinished`.
    word(Offset.final).pointee.store(promised & ~Self.retired, ordering: .releasing)
  }

  /// The memory of a load.
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
