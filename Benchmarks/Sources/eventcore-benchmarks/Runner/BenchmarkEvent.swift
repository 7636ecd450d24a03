// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// An event of a certain size, made from a number and checked by what it weighs.
protocol BenchmarkEvent: Eventable {
  associatedtype Supply: EventSupply where Supply.Event == Self

  /// What the handlers add up.
  var weight: UInt64 { get }
  /// The weight of the event with a number; numbers begin with 1.
  static func weight(of number: UInt64) -> UInt64
  /// A supply of the events 1 to `count`.
  static func supply(_ count: Int) -> Supply
}

/// Where a producer takes its events from, inside the measured window.
protocol EventSupply: Sendable {
  associatedtype Event
  mutating func next() -> Event
}

/// What can be made from a number alone.
protocol Numbered: Sendable {
  init(number: UInt64)
}

/// An event of plain numbers, made when it is dispatched.
protocol NumberEvent: BenchmarkEvent, Numbered where Supply == CountingSupply<Self> {}

extension NumberEvent {
  static func weight(of number: UInt64) -> UInt64 { number }
  static func supply(_ count: Int) -> CountingSupply<Self> { CountingSupply() }
}

struct CountingSupply<Event: Numbered>: EventSupply {
  private var number: UInt64 = 0

  mutating func next() -> Event {
    number &+= 1
    return Event(number: number)
  }
}

struct Event8: NumberEvent {
  let weight: UInt64
  init(number: UInt64) { weight = number }
}

struct Event24: NumberEvent {
  let weight: UInt64
  let x = 1.0
  let y = 2.0
  init(number: UInt64) { weight = number }
}

struct Event200: NumberEvent {
  typealias Words = (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64)
  let weight: UInt64
  let rest: (Words, Words, Words)
  init(number: UInt64) {
    weight = number
    let words: Words = (1, 2, 3, 4, 5, 6, 7, 8)
    rest = (words, words, words)
  }
}

/// An event with a reference: 16 bytes, and 40 or more on the heap, made before the window.
struct StringEvent: BenchmarkEvent {
  let text: String

  var weight: UInt64 { UInt64(text.utf8.count) }
  static func weight(of number: UInt64) -> UInt64 { 40 + number % 8 }

  static func supply(_ count: Int) -> PreparedSupply {
    PreparedSupply(
      (1...UInt64(count)).map { number in
        StringEvent(text: String(repeating: "e", count: Int(weight(of: number))))
      })
  }
}

/// Hands its events out by moving them.
final class PreparedSupply: EventSupply, @unchecked Sendable {
  // One producer at a time takes from a supply.
  private var events: ContiguousArray<StringEvent>

  init(_ events: [StringEvent]) {
    self.events = ContiguousArray(events)
  }

  func next() -> StringEvent {
    // A supply is made with as many events as its producer takes.
    events.removeLast()
  }
}
