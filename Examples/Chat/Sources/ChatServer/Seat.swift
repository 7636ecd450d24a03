// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Synchronization

/// A browser's place in a room, which the hall gives: its name, and the lines that wait for its web socket.
///
/// **Threads**: any, for every member; one task iterates over ``lines``.
final class Seat: Sendable {
  /// How many messages of a browser may be unanswered. It bounds what waits in the pool and in the hall, since these
  /// wait for nobody.
  static let window = 64

  let number: Int
  let name: String
  let room: String
  /// Gets what is dispatched in the room, and what is for this browser alone.
  let mailbox: EventListener
  /// The same as a sequence with a bound of its own: a browser that reads slowly loses lines, which are counted
  /// (`lag`), and costs the others nothing.
  let lines: EventSequence<Line>
  private let unanswered = Atomic<Int>(0)
  private let turn = Turn.Flag()

  init(number: Int, name: String, room: String, on floor: EventCentral, buffer: Int) {
    self.number = number
    self.name = name
    self.room = room
    mailbox = EventListener(on: floor)
    lines = Line.events(on: mailbox, buffering: .newest(buffer))
  }

  /// Tells this browser something, ahead of what the room says (D1). It is also the last to be displaced.
  func tell(_ notice: Notice) {
    mailbox.queueEvent(Line.text(notice.json), priority: .high)
  }

  /// Whether one more message may be on its way. Each that may is answered once.
  func begin() -> Bool {
    if unanswered.add(1, ordering: .relaxed).newValue <= Self.window { return true }
    unanswered.subtract(1, ordering: .relaxed)
    return false
  }

  /// The browser's turn to get the answer to a command, which may be long. There is one: the next is free when the answer
  /// was written to the web socket, or displaced.
  final class Turn: Sendable {
    final class Flag: Sendable { let isTaken = Atomic<Bool>(false) }
    private let flag: Flag

    fileprivate init(_ flag: Flag) { self.flag = flag }
    deinit { flag.isTaken.store(false, ordering: .relaxed) }
  }

  /// Nil while there is none.
  func takeTurn() -> Turn? { turn.isTaken.exchange(true, ordering: .relaxed) ? nil : Turn(turn) }

  /// Answers a message.
  func answer(_ notice: Notice) {
    unanswered.subtract(1, ordering: .relaxed)
    tell(notice)
  }
}
