// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What can wait in a `TimerHeap`.
protocol HeapTimer: AnyObject {
  /// The place in the heap, -1 for none. Under its lock.
  var position: Int { get set }
}

/// Timers by deadline, and equal ones by the order in which they came: a heap with four children a node,
/// whose timers know their positions. Sources/CEventCore/scheduler/timer_heap.h says why it is a heap and no
/// wheel.
///
/// Retains its timers.
final class TimerHeap<Timer: HeapTimer>: @unchecked Sendable {
  // Its owner's lock is held for every member.

  private struct Entry {
    var deadline: UInt64
    /// The order among equal deadlines.
    var number: UInt64
    let timer: Unmanaged<Timer>

    func isBefore(_ other: Entry) -> Bool {
      deadline != other.deadline ? deadline < other.deadline : number < other.number
    }
  }

  private var entries: [Entry] = []
  private var number: UInt64 = 0

  deinit {
    for entry in entries { entry.timer.release() }
  }

  var count: Int { entries.count }

  /// The earliest deadline.
  var firstDeadline: UInt64? { entries.first?.deadline }

  /// Puts a timer behind all that have the same deadline.
  func insert(_ timer: Timer, at deadline: UInt64) {
    number += 1
    let entry = Entry(deadline: deadline, number: number, timer: .passRetained(timer))
    entries.append(entry)
    settle(entry, from: entries.count - 1)
  }

  /// Takes a timer out that is in here, the earliest at 0.
  @discardableResult
  func remove(at position: Int) -> Timer {
    let timer = entries[position].timer.takeRetainedValue()
    // The last entry fills the hole.
    let last = entries.removeLast()
    if position < entries.count { settle(last, from: position) }
    timer.position = -1
    return timer
  }

  /// Finds the place of an entry from a hole on: above it, or else below.
  private func settle(_ entry: Entry, from start: Int) {
    var hole = start
    entries.withUnsafeMutableBufferPointer { entries in
      func put(_ entry: Entry) {
        entries[hole] = entry
        entry.timer._withUnsafeGuaranteedRef { $0.position = hole }
      }
      while hole > 0, entry.isBefore(entries[(hole - 1) / 4]) {
        put(entries[(hole - 1) / 4])
        hole = (hole - 1) / 4
      }
      while 4 * hole + 1 < entries.count {
        let children = 4 * hole + 1..<min(4 * hole + 5, entries.count)
        var least = children.lowerBound
        for child in children.dropFirst() where entries[child].isBefore(entries[least]) {
          least = child
        }
        guard entries[least].isBefore(entry) else { break }
        put(entries[least])
        hole = least
      }
      put(entry)
    }
  }
}
