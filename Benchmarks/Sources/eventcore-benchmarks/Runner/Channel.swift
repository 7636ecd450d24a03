// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation

/// A handler that was made where its event's type was known only by name.
///
/// In a structure, since generic code that takes a closure itself out of an array wraps it twice
/// before it passes it on, and a subject that registers closures would pay for both at each call.
struct EventClosure<Event>: Sendable {
  let call: @Sendable (Event) -> Void

  @inline(__always)
  func callAsFunction(_ event: Event) { call(event) }
}

/// What the throughput shapes need of a subject: consumers with handlers, and a way to send to
/// them.
protocol Channel<Event>: AnyObject, Sendable {
  associatedtype Event: BenchmarkEvent
  typealias Handler = EventClosure<Event>

  /// True if the thread that sends waits for the handlers, so that no event ever waits.
  static var staysOnSender: Bool { get }

  /// Sends one event to every consumer. Any thread.
  func send(_ event: consuming Event)
  /// Sends `count` events, from the calling thread.
  func produce(_ count: Int, _ supply: Event.Supply)
  /// Ends the consumers.
  func end()
}

extension Channel {
  static var staysOnSender: Bool { false }

  @inline(__always)
  func produce(_ count: Int, _ supply: Event.Supply) {
    var supply = supply
    for _ in 0..<count {
      send(supply.next())
    }
  }
}

/// A subject that takes several events at once.
protocol BatchChannel<Event>: Channel {
  func send(batch: [Event])
}

extension BatchChannel {
  /// Sends in batches of 64; the array is the producer's own and used again.
  @inline(__always)
  func produceBatches(_ count: Int, _ supply: Event.Supply) {
    var supply = supply
    var batch = (0..<64).map { _ in supply.next() }
    for sent in stride(from: 64, through: count, by: 64) {
      send(batch: batch)
      if sent < count {
        for index in batch.indices {
          batch[index] = supply.next()
        }
      }
    }
  }
}

/// A subject with ten lanes, in the order in which they are to be emptied.
protocol LaneChannel<Event>: Channel {
  func send(_ event: consuming Event, lane: Int)
}

extension LaneChannel {
  /// Sends each event to a random lane.
  @inline(__always)
  func produceLanes(_ count: Int, _ supply: Event.Supply) {
    var supply = supply
    var random: UInt64 = 0x9E37_79B9_7F4A_7C15
    var lanes = 0
    for _ in 0..<count {
      random ^= random << 13
      random ^= random >> 7
      random ^= random << 17
      let lane = Int(truncatingIfNeeded: ((random & 0xFFFF_FFFF) &* 10) >> 32)
      lanes |= 1 << lane
      send(supply.next(), lane: lane)
    }
    check(lanes == 0x3FF, "Of the ten lanes only those in \(lanes) got an event.")
  }
}

/// Starts a thread that runs `body`.
func startThread(_ body: @escaping @Sendable () -> Void) {
  let thread = Thread(block: body)
  thread.start()
}
