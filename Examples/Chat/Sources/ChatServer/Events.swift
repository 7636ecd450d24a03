// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import FlyingFox
import Foundation

// Every event and query of the server, in the order in which a message meets them.

/// Somebody has said something. The web socket dispatches it, and the pool handles it.
struct Said: Eventable {
  let seat: Seat
  let text: String
}

/// What the pool made of it, which the hall handles.
struct Moderated: Eventable {
  let seat: Seat
  /// The message as JSON, all but its number.
  let body: String
}

/// What goes to web sockets: to all of a room, dispatched on the room's central, or to one, by its mailbox.
enum Line: Eventable {
  case text(String)
  /// The answer to a command.
  case reply(String, Seat.Turn)
  case pong(Data)
  /// The last one.
  case close(WSCloseCode)
}

/// A web socket has ended.
struct Left: Eventable {
  let seat: Seat
}

/// Asks the hall for a ``Seat``.
struct Join: Eventable {
  let name: String
  let room: String
}

/// Asks the hall for the names in a room: `[String]`.
struct WhoIsHere: Eventable {
  let room: String
}

/// Asks the hall for the last messages of a room, as JSON, the oldest first: `[String]`.
struct History: Eventable {
  let room: String
}
