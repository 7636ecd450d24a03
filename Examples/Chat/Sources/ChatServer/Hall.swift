// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import FlyingFox

/// All rooms: who is there, what was said, and in which order. The state of an `EventWorker`, whose thread alone has it:
/// what events bring and what others ask for is done there, one at a time, and without a lock.
final class Hall {
  /// Why somebody cannot join, in a sentence for a browser.
  struct Refusal: Error {
    let reason: String
  }

  private struct Room {
    /// A world of its own: what is dispatched here reaches the seats of the room, and nobody else.
    let floor: EventCentral
    var seats: [Int: Seat] = [:]
    var history: [String] = []
    var lastNumber = 0

    var names: [String] { seats.values.map(\.name).sorted() }
  }

  private static let maximumRooms = 1_000
  private static let historyLength = 50

  private let core: EventCentral.Core
  private let buffer: Int
  private let counts: ChatCounts
  private var rooms: [String: Room] = [:]
  private var lastSeat = 0

  /// - Parameter buffer: How many lines may wait for a browser.
  static func open(on world: EventCentral, buffer: Int, counts: ChatCounts) -> EventWorker<Hall> {
    EventWorker(on: world, state: Hall(core: world.core, buffer: buffer, counts: counts), name: "Hall") { on in
      on(Moderated.self) { hall, message in hall.say(message) }
      on(Left.self) { hall, left in hall.leave(left.seat) }
      on.answer(Join.self) { hall, query in try hall.join(query) }
      // A seat for a browser that was gone before it got it.
      on(EventFailure.self) { hall, failure in if let seat = failure.lateAnswer as? Seat { hall.leave(seat) } }
      on.answer(WhoIsHere.self) { hall, query in hall.rooms[query.room]?.names ?? [] }
      on.answer(History.self) { hall, query in hall.rooms[query.room]?.history ?? [] }
    }
  }

  private init(core: EventCentral.Core, buffer: Int, counts: ChatCounts) {
    self.core = core
    self.buffer = buffer
    self.counts = counts
  }

  /// With the thread, when it has handled what waited: every web socket gets its last line.
  deinit {
    for room in rooms.values { room.floor.queueEvent(Line.close(.goingAway)) }
  }

  /// The one place where messages get their order. The browser is told that its message is accepted when it is in the
  /// mailbox of each seat.
  private func say(_ message: Moderated) {
    let seat = message.seat
    guard var room = rooms[seat.room] else { return seat.answer(.error(text: "The room is gone.")) }
    room.lastNumber += 1
    let text = "{\"number\":\(room.lastNumber),\"said\":\(message.body)}"
    room.history.append(text)
    if room.history.count > Self.historyLength { room.history.removeFirst() }
    rooms[seat.room] = room
    room.floor.queueEvent(Line.text(text))
    seat.answer(.accepted(number: room.lastNumber))
    counts.accepted.increment()
  }

  private func join(_ query: Join) throws -> Seat {
    if rooms[query.room] == nil, rooms.count >= Self.maximumRooms {
      rooms = rooms.filter { !$0.value.seats.isEmpty }
      guard rooms.count < Self.maximumRooms else { throw Refusal(reason: "All rooms are taken.") }
    }
    var room = rooms[query.room] ?? Room(floor: EventCentral(core: core))
    room.floor.queueEvent(Line.text(Notice.arrived(name: query.name).json))
    lastSeat += 1
    let seat = Seat(number: lastSeat, name: query.name, room: query.room, on: room.floor, buffer: buffer)
    room.seats[seat.number] = seat
    rooms[query.room] = room
    // Its first lines: nothing is said between them and what the room says next.
    seat.tell(.here(names: room.names))
    seat.mailbox.queueEvent(Line.text(historyText(room.history)), priority: .high)
    counts.seats.increment()
    return seat
  }

  private func leave(_ seat: Seat) {
    guard rooms[seat.room]?.seats.removeValue(forKey: seat.number) != nil else { return }
    rooms[seat.room]?.floor.queueEvent(Line.text(Notice.left(name: seat.name).json))
    counts.seats.decrement()
  }
}

/// Messages as they were said, in one line.
func historyText(_ messages: [String]) -> String { "{\"history\":[\(messages.joined(separator: ","))]}" }
