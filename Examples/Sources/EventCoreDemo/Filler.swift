// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Synchronization

/// Dispatches events besides the samples: bursts of a million events, and a load that the keys change.
///
/// Both go to the rate thread alone, in batches. At most two million events wait at a time, so that memory is
/// bounded: further load is held back and counted, and a further burst is refused.
final class Filler: @unchecked Sendable {
  // The sensor thread dispatches and counts; the loop sets `wanted` and `burstWanted`, and reads the rest.
  private let central: EventCentral
  private let receiver: RateThread

  static let burstSize: UInt64 = 1_000_000
  static let highestLoad = 1_024
  private static let waitingAtMost: UInt64 = 2_000_000
  /// The size of a batch, which takes some ten microseconds, so that it hardly delays the next sample.
  private static let slice: UInt64 = 1_024

  private let wanted: Atomic<Int>
  private let burstWanted = Atomic(false)
  private let burstLeft = Atomic<UInt64>(0)
  private let count = Atomic<UInt64>(0)
  private let held = Atomic<UInt64>(0)

  init(on central: EventCentral, to receiver: RateThread, load: Int) {
    self.central = central
    self.receiver = receiver
    wanted = Atomic(load)
  }

  // MARK: Any thread

  /// Events of load for each sample.
  var load: Int { wanted.load(ordering: .relaxed) }
  /// How many events of bursts and load were dispatched so far, each to one receiver.
  var dispatched: UInt64 { count.load(ordering: .relaxed) }
  /// How many events of load were held back.
  var heldBack: UInt64 { held.load(ordering: .relaxed) }

  func raiseLoad() {
    wanted.store(min(Self.highestLoad, max(1, load * 2)), ordering: .relaxed)
  }

  func lowerLoad() {
    wanted.store(load / 2, ordering: .relaxed)
  }

  /// Fires a burst. False if the previous one is not handled yet.
  func fireBurst() -> Bool {
    guard !isBursting, waiting < Self.burstSize else { return false }
    burstWanted.store(true, ordering: .relaxed)
    return true
  }

  var isBursting: Bool {
    burstWanted.load(ordering: .relaxed) || burstLeft.load(ordering: .relaxed) > 0
  }

  private var waiting: UInt64 {
    // Read first, so that the difference is not negative: events are counted before they are dispatched, and acquired with
    // the number of those that were handled.
    let handled = receiver.fillers
    return dispatched - handled
  }

  // MARK: The sensor thread

  /// Dispatches a batch of the burst. False if there is no burst.
  func dispatchSome() -> Bool {
    if burstWanted.load(ordering: .relaxed) {
      burstLeft.store(Self.burstSize, ordering: .relaxed)
      burstWanted.store(false, ordering: .relaxed)
    }
    let left = burstLeft.load(ordering: .relaxed)
    guard left > 0 else { return false }
    let slice = min(left, Self.slice)
    let first = Self.burstSize - left
    count.wrappingAdd(slice, ordering: .relaxed)
    (first..<first + slice).lazy.map { BurstEvent(number: UInt32($0)) }
      .queue(priority: .low, on: central)
    burstLeft.store(left - slice, ordering: .relaxed)
    return true
  }

  /// Dispatches the load of one sample.
  func dispatchLoad() {
    let load = UInt64(load)
    guard load > 0 else { return }
    guard waiting + load <= Self.waitingAtMost else {
      held.wrappingAdd(load, ordering: .relaxed)
      return
    }
    count.wrappingAdd(load, ordering: .relaxed)
    (0..<load).lazy.map { LoadEvent(number: $0) }.queue(priority: .lowest, on: central)
  }
}
