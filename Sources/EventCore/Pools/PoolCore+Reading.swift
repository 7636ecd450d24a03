// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What a pool tells its scaler and its ticker.
extension PoolCore {
  var reading: EventPoolReading { reading(numbers) }

  private func reading(_ numbers: Numbers) -> EventPoolReading {
    let (capacity, slots, retiring, past, _) = numbers
    let busy = slots.count { $0.member.load.runningSince != nil }
    let waiting =
      if let shared {
        shared.waiting
      } else {
        slots.reduce(0) { $0 + $1.waiting }
      }
    var reading = EventPoolReading(
      capacity: capacity, threads: slots.count, busyThreads: busy, waiting: waiting,
      handled: past + (slots + retiring).reduce(0) { $0 + $1.member.load.done })
    reading.time = central.basis.clock.map { .wholeNanoseconds($0.now) }
    return reading
  }

  /// Whether the scaler need not be asked until a thread begins to handle an event, or ends.
  var isAtRest: Bool {
    let numbers = numbers
    let reading = reading(numbers)
    return reading.waiting == 0 && reading.busyThreads == 0
      && reading.threads <= scaler.restingCapacity && !numbers.missesThread
  }
}

extension PoolCore.Slot {
  /// How many events wait for the thread alone. O(1) in a balanced pool.
  var waiting: Int {
    // Its load still counts the events that were freed at its end.
    guard !thread.consumer.ended.isOpen else { return 0 }
    let load = member.load
    return max(0, load.pending - (load.runningSince == nil ? 0 : 1))
  }
}
