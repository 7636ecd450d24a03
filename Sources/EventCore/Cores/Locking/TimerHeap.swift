// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Timers by deadline, equal ones by the order in which they came: a heap of four children a node,
/// whose timers know their positions. Sources/CEventCore/scheduler/timer.heap.h says why a heap and no wheel.
///
/// Retains its timers. The scheduler's lock is held for every member.
struct TimerHeap: ~Copyable {
  private struct Entry {
    var deadline: UInt64
    /// The order among equal deadlines.
    var number: UInt64
    let timer: Unmanaged<EventScheduleHandle>

    func isBefore(_ other: Entry) -> Bool {
      deadline != other.deadline ? deadline < other.deadline : number < other.number
    }
  }

  private var entries: [Entry] = []
  private var number: UInt64 = 0

  init() {}

  deinit {
    for entry in entries { entry.timer.release() }
  }

  var count: Int { entries.count }
  /// The earliest deadline.
  var firstDeadline: UInt64? { entries.first?.deadline }

  /// Puts a timer behind all that have the same deadline.
  mutating func insert(_ timer: EventScheduleHandle, at deadline: UInt64) {
    number += 1
    let entry = Entry(deadline: deadline, number: number, timer: .passRetained(timer))
    entries.append(entry)
    settle(entry, from: entries.count - 1)
  }

  /// Takes a timer out that is in here, the earliest at 0.
  @discardableResult
  mutating func remove(at position: Int) -> EventScheduleHandle {
    let timer = entries[position].timer.takeRetainedValue()
    // The last entry fills the hole.
    let last = entries.removeLast()
    if position < entries.count { settle(last, from: position) }
    timer.position = -1
    return timer
  }

  private mutating func put(_ entry: Entry, at position: Int) {
    entries[position] = entry
    entry.timer._withUnsafeGuaranteedRef { $0.position = position }
  }

  /// Finds the place of an entry from a hole on: above it, or else below.
  private mutating func settle(_ entry: Entry, from hole: Int) {
    var hole = hole
    while hole > 0, entry.isBefore(entries[(hole - 1) / 4]) {
      put(entries[(hole - 1) / 4], at: hole)
      hole = (hole - 1) / 4
    }
    while 4 * hole + 1 < entries.count {
      var least = 4 * hole + 1
      for child in least + 1..<max(least + 1, min(least + 4, entries.count))
      where entries[child].isBefore(entries[least]) {
        least = child
      }
      guard entries[least].isBefore(entry) else { break }
      put(entries[least], at: hole)
      hole = least
    }
    put(entry, at: hole)
  }
}

extension EventScheduleHandle {
  /// The place in the heap of the locking core, -1 for none. Under its lock.
  fileprivate(set) final var position: Int {
    get { Int(truncatingIfNeeded: ticket) }
    set { ticket = UInt64(truncatingIfNeeded: newValue) }
  }
}
