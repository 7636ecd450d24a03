// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// Two counters that one thread at a time writes and any thread reads, on cache lines of their own: what the thread that
/// dispatches counts would otherwise lie beside what the one that handles counts, and each would slow the other down.
struct LineCounters: ~Copyable, @unchecked Sendable {
  // The pointer is constant. All is relaxed: the numbers publish nothing.
  private let memory: UnsafeMutablePointer<Atomic<UInt64>>

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

  /// Raises a counter. Its thread.
  @inline(__always)
  func add(_ more: UInt64, to index: Int) { set(self[index] &+ more, at: index) }

  @inline(__always)
  func set(_ value: UInt64, at index: Int) { memory[index].store(value, ordering: .relaxed) }

  @inline(__always)
  subscript(index: Int) -> UInt64 { memory[index].load(ordering: .relaxed) }
}
