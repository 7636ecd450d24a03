// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// Two counters that one thread at a time writes and any thread reads, on cache lines of their own: what the thread
/// that dispatches counts would otherwise lie beside what the one that handles counts, and each would slow the other
/// down.
@usableFromInline
struct LineCounters: ~Copyable, @unchecked Sendable {
  // The pointer is constant. All is relaxed: the numbers publish nothing.

  /// Lives as long as the counters.
  let memory: UnsafeMutablePointer<Atomic<UInt64>>

  init() {
    // Two lines, which processors fetch together.
    memory = UnsafeMutableRawPointer.allocate(byteCount: 128, alignment: 128)
      .bindMemory(to: Atomic<UInt64>.self, capacity: 2)
    for index in 0..<2 { (memory + index).initialize(to: Atomic(0)) }
  }

  deinit {
    memory.deinitialize(count: 2)
    UnsafeMutableRawPointer(memory).deallocate()
  }

  @inline(__always)
  subscript(index: Int) -> UInt64 {
    get { memory[index].load(ordering: .relaxed) }
    // Its thread.
    nonmutating set { memory[index].store(newValue, ordering: .relaxed) }
  }
}

/// How many events were taken by whose handlers: a copy of the address of two `LineCounters`, which outlive it.
@usableFromInline
struct HandledCounts {
  @usableFromInline let memory: UnsafeMutablePointer<Atomic<UInt64>>

  init(_ memory: UnsafeMutablePointer<Atomic<UInt64>>) { self.memory = memory }

  /// Events for which no handler was called.
  @inlinable @inline(__always) static var skipped: Int { 0 }
  /// Events for which one was.
  @inlinable @inline(__always) static var delivered: Int { 1 }

  /// Any thread.
  subscript(index: Int) -> UInt64 { memory[index].load(ordering: .relaxed) }

  /// Counts an event on the consumer's thread, which alone writes.
  @inlinable
  @inline(__always)
  func add(to index: Int) {
    memory[index].store(memory[index].load(ordering: .relaxed) &+ 1, ordering: .relaxed)
  }
}
