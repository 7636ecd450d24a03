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
///     byte  0  promised: whoever posts         64  done: the thread
///           8  index: constant                 72  since: the thread
///                                              80  final: whoever retires the thread
///                                              88  superseded: the thread
struct EventLoad: @unchecked Sendable {
  // Everything it points to is atomic or constant.
  let memory: UnsafeMutableRawPointer

  private static let retired: UInt64 = 1 << 63

  @inline(__always)
  private func word(_ offset: Int) -> UnsafeMutablePointer<Atomic<UInt64>> {
    (memory + offset).assumingMemoryBound(to: Atomic<UInt64>.self)
  }

  /// The place of the thread in its pool.
  var index: Int { memory.load(fromByteOffset: 8, as: Int.self) }

  // MARK: For balancers, any thread

  /// Counts events that are about to be posted. False if the thread takes no more.
  func promise(_ count: Int) -> Bool {
    // Sequentially consistent: for `PoolTicker`, which falls asleep when it sees nothing promised.
    let before = word(0).pointee.wrappingAdd(UInt64(count), ordering: .sequentiallyConsistent)
      .oldValue
    guard before & Self.retired != 0 else { return true }
    withdraw(count)
    return false
  }

  func withdraw(_ count: Int) {
    // Relaxed: the order of changes of the word is all that counts.
    word(0).pointee.wrappingSubtract(UInt64(count), ordering: .relaxed)
  }

  /// Events that wait or are handled now. Those of a latest-only callback that were superseded
  /// count until it is called next.
  @inline(__always)
  var pending: Int {
    // Done first: an event is promised before it is done, so that the difference is not negative
    // but for what a refused post took back.
    let done = word(64).pointee.load(ordering: .acquiring) &+ superseded
    return max(0, Int(bitPattern: UInt(promised &- done)))
  }

  /// Events of latest-only callbacks that a newer one took the place of, as of their last calls.
  private var superseded: UInt64 { word(88).pointee.load(ordering: .relaxed) }

  /// Events promised so far.
  var promised: UInt64 { word(0).pointee.load(ordering: .sequentiallyConsistent) & ~Self.retired }

  /// Events handled so far.
  var done: UInt64 { word(64).pointee.load(ordering: .acquiring) }

  /// When the handler that runs now began, on the scale of `coarseNanoseconds`; nil if none runs.
  var runningSince: UInt64? {
    let since = word(72).pointee.load(ordering: .sequentiallyConsistent)
    return since == 0 ? nil : since
  }

  // MARK: The thread itself

  /// A handler begins. `isWatched`: a `PoolTicker` falls asleep by what it sees here.
  @inline(__always)
  func begin(isWatched: Bool) {
    if isWatched {
      word(72).pointee.store(coarseNanoseconds() | 1, ordering: .sequentiallyConsistent)
    } else {
      // Relaxed: a momentary figure for those who look.
      word(72).pointee.store(coarseNanoseconds() | 1, ordering: .relaxed)
    }
  }

  /// It has returned.
  @inline(__always)
  func end() {
    word(72).pointee.store(0, ordering: .relaxed)
    // Only this thread writes it. Releasing: what the handler did, before a balancer sees it done.
    let done = word(64).pointee.load(ordering: .relaxed) &+ 1
    word(64).pointee.store(done, ordering: .releasing)
  }

  /// How many events were superseded so far, of all latest-only callbacks. Before `end` of such an
  /// event.
  func setSuperseded(_ count: UInt64) {
    // Relaxed: published by `end`.
    word(88).pointee.store(count, ordering: .relaxed)
  }

  /// Whether all that was promised before the retirement is done: after each event, and after the
  /// interrupt that follows `retire`. What supersedes another event is itself still to come.
  var isFinished: Bool {
    // Acquiring: pairs with `retire`.
    word(64).pointee.load(ordering: .relaxed) &+ superseded
      == word(80).pointee.load(ordering: .acquiring)
  }

  // MARK: The pool

  /// Ends the promises. The thread is then to be interrupted, and looks at `isFinished`.
  func retire() {
    let promised = word(0).pointee.bitwiseOr(Self.retired, ordering: .sequentiallyConsistent)
      .oldValue
    // Pairs with `isFinished`.
    word(80).pointee.store(promised & ~Self.retired, ordering: .releasing)
  }

  /// The memory of a load, on cache lines of its own.
  final class Memory: Sendable {
    // Constant.
    let load: EventLoad

    init(index: Int) {
      let memory = UnsafeMutableRawPointer.allocate(byteCount: 128, alignment: 64)
      memory.initializeMemory(as: UInt64.self, repeating: 0, count: 16)
      memory.storeBytes(of: index, toByteOffset: 8, as: Int.self)
      memory.storeBytes(of: .max, toByteOffset: 80, as: UInt64.self)
      load = EventLoad(memory: memory)
    }

    deinit {
      load.memory.deallocate()
    }
  }
}
