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

  // Memory of its own: an array costs a check of uniqueness for each step.
  private var entries = UnsafeMutablePointer<Entry>.allocate(capacity: 16)
  private var capacity = 16
  private(set) var count = 0
  private var number: UInt64 = 0

  init() {}

  deinit {
    for index in 0..<count {
      entries[index].timer.release()
    }
    entries.deallocate()
  }

  /// The earliest deadline.
  var firstDeadline: UInt64? { count > 0 ? entries[0].deadline : nil }

  /// Puts a timer behind all that have the same deadline.
  mutating func insert(_ timer: EventScheduleHandle, at deadline: UInt64) {
    if count == capacity { grow() }
    number += 1
    count += 1
    siftUp(
      count - 1,
      Entry(deadline: deadline, number: number, timer: Unmanaged.passRetained(timer)))
  }

  /// Takes the earliest timer out; there is one.
  mutating func removeFirst() -> EventScheduleHandle { remove(at: 0) }

  /// Takes a timer out that is in here.
  @discardableResult
  mutating func remove(at position: Int) -> EventScheduleHandle {
    let removed = entries[position]
    count -= 1
    if position < count {
      // The last entry fills the hole; it may be earlier than the hole's parent, or later than a
      // child.
      let last = entries[count]
      if position > 0, last.isBefore(entries[(position - 1) / 4]) {
        siftUp(position, last)
      } else {
        siftDown(position, last)
      }
    }
    let timer = removed.timer.takeRetainedValue()
    timer.position = -1
    return timer
  }

  private mutating func grow() {
    let larger = UnsafeMutablePointer<Entry>.allocate(capacity: 2 * capacity)
    larger.moveInitialize(from: entries, count: count)
    entries.deallocate()
    entries = larger
    capacity *= 2
  }

  private mutating func put(_ entry: Entry, at position: Int) {
    (entries + position).initialize(to: entry)
    entry.timer._withUnsafeGuaranteedRef { $0.position = position }
  }

  private mutating func siftUp(_ start: Int, _ entry: Entry) {
    var position = start
    while position > 0 {
      let parent = (position - 1) / 4
      guard entry.isBefore(entries[parent]) else { break }
      put(entries[parent], at: position)
      position = parent
    }
    put(entry, at: position)
  }

  private mutating func siftDown(_ start: Int, _ entry: Entry) {
    var position = start
    while 4 * position + 1 < count {
      var least = 4 * position + 1
      for child in least + 1..<max(least + 1, min(least + 4, count))
      where entries[child].isBefore(entries[least]) {
        least = child
      }
      guard entries[least].isBefore(entry) else { break }
      put(entries[least], at: position)
      position = least
    }
    put(entry, at: position)
  }
}

extension EventScheduleHandle {
  /// The place in the heap of the locking core, -1 for none. Under its lock.
  fileprivate(set) final var position: Int {
    get { Int(truncatingIfNeeded: ticket) }
    set { ticket = UInt64(truncatingIfNeeded: newValue) }
  }
}
