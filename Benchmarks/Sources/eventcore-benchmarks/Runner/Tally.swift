// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import RawCore
import Synchronization

/// What one handler received.
final class Tally: @unchecked Sendable {
  // Written by the handler's thread during a run, and by the main thread between two runs; `Finish`
  // and the dispatches order the two.
  private var count = 0
  private var sum: UInt64 = 0
  private var target = 0
  private var held: (gate: DispatchSemaphore, target: Int)?
  private let finish: Finish
  // Keeps the tallies of two consumers off each other's cache lines.
  private let padding: (Event200.Words, Event200.Words) = (
    (0, 0, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 0, 0, 0)
  )

  init(_ finish: Finish) {
    self.finish = finish
  }

  /// With a gate the handler waits for it with its first event, so that all others wait in the channel.
  func expect(_ target: Int, holding gate: DispatchSemaphore? = nil) {
    count = 0
    sum = 0
    held = gate.map { ($0, target) }
    self.target = gate == nil ? target : 1
  }

  @inline(__always)
  func receive(_ weight: UInt64) {
    sum &+= weight
    count += 1
    if count == target {
      reach()
    }
  }

  private func reach() {
    guard let held else { return finish.arrive() }
    self.held = nil
    target = held.target
    held.gate.wait()
  }

  func verify(_ expected: UInt64, _ what: @autoclosure () -> String) {
    check(
      count == target && sum == expected,
      "\(what()): a handler received \(count) events of \(target), sum \(sum) of \(expected).")
  }
}

/// What was received by handlers that run on the thread that raises or emits.
final class LocalTally: @unchecked Sendable {
  // Touched by one thread: the one that measures, which makes one for each trial and reads it.
  var count = 0
  var sum: UInt64 = 0

  @inline(__always)
  func receive(_ event: Event24) {
    count &+= 1
    sum &+= event.weight
  }
}

/// Notes when the last of several handlers has received its last event.
final class Finish: @unchecked Sendable {
  // `end` is written by the last that arrives, before the semaphore is signalled.
  private let open = Atomic<Int>(0)
  private let semaphore = DispatchSemaphore(value: 0)
  private var end: UInt64 = 0

  func expect(_ handlers: Int) {
    open.store(handlers, ordering: .relaxed)
  }

  func arrive() {
    // Acquiring and releasing: every handler's sums before the main thread reads them.
    if open.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 {
      end = evb_now()
      semaphore.signal()
    }
  }

  /// Waits for it, and returns the time at which it was.
  func wait() -> UInt64 {
    semaphore.wait()
    return end
  }
}
