// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import FlyingFox
import Foundation

/// Reads what one browser sends: messages and commands, each a text of a web socket. What is wrong is answered with an
/// error, to this browser alone.
struct SocketReader: Sendable {
  static let maximumLength = 4_096
  private static let patience = Duration.seconds(5)

  let seat: Seat
  let world: EventCentral
  let door: Door

  /// Reads until the browser closes its web socket, or is gone.
  func read(_ frames: AsyncThrowingStream<WSFrame, any Error>) async {
    var open: Message?
    do {
      for try await frame in frames {
        switch frame.opcode {
        case .text, .binary, .continuation:
          let message = Message(open, and: frame)
          open = frame.fin ? nil : message
          guard frame.fin else { continue }
          if let refusal = message.refusal { seat.tell(.error(text: refusal)) } else { await handle(message.text) }
        case .ping where frame.payload.count <= 125:
          seat.mailbox.queueEvent(Line.pong(frame.payload), priority: .high)
        case .ping:
          seat.tell(.error(text: "A ping has at most 125 bytes."))
        case .pong:
          break
        case .close:
          // Ahead of what the room says, which could displace it.
          seat.mailbox.queueEvent(Line.close(.normalClosure), priority: .high)
          return
        default:
          seat.tell(.error(text: "A message is text."))
        }
      }
    } catch {
      // As if it had ended.
    }
    seat.mailbox.end()
  }

  /// A message, or as much of it as has come: a frame, and those that continue it.
  private struct Message {
    var text: Data
    /// Why it is refused, which is told when it ends: until then its frames are passed over.
    var refusal: String?

    init(_ begun: Message?, and frame: WSFrame) {
      (text, refusal) = (begun?.text ?? Data(), begun?.refusal)
      if frame.opcode == .continuation, begun == nil {
        refusal = "There is no message to continue."
      } else if frame.opcode != .continuation, begun != nil {
        refusal = "A message begins while another one is not complete."
      } else if frame.opcode == .binary {
        refusal = "A message is text."
      } else if text.count + frame.payload.count > SocketReader.maximumLength {
        refusal = refusal ?? "A message has at most \(SocketReader.maximumLength) bytes."
      }
      if refusal == nil { text.append(frame.payload) } else { text = Data() }
    }
  }

  private func handle(_ data: Data) async {
    guard let text = String(data: data, encoding: .utf8) else {
      return seat.tell(.error(text: "A message is UTF-8."))
    }
    switch text {
    case "/who":
      await reply {
        let names = try await world.request(
          WhoIsHere(room: seat.room), expecting: [String].self, within: Self.patience)
        return Notice.here(names: names).json
      }
    case "/history":
      await reply {
        historyText(
          try await world.request(History(room: seat.room), expecting: [String].self, within: Self.patience))
      }
    case _ where text.hasPrefix("/"):
      seat.tell(.error(text: "The commands are /who and /history."))
    default:
      say(text)
    }
  }

  private func reply(_ answer: () async throws -> String) async {
    guard let turn = seat.takeTurn() else {
      return seat.tell(.error(text: "Your last command is not answered yet: wait for that."))
    }
    do {
      seat.mailbox.queueEvent(Line.reply(try await answer(), turn), priority: .high)
    } catch {
      seat.tell(.error(text: "The hall does not answer: \(error)"))
    }
  }

  private func say(_ text: String) {
    guard door.isOpen else { return seat.tell(.error(text: Door.isClosing)) }
    guard seat.begin() else {
      return seat.tell(.error(text: "\(Seat.window) messages are not answered yet: wait for one."))
    }
    if Said(seat: seat, text: text).queue(on: world) == 0 { seat.answer(.error(text: Door.isClosing)) }
  }
}
