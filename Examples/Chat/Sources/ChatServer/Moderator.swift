// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// The work of processors on a message: a thread of the pool makes it fit to be sent. The pool's balancer gives all
/// messages of one browser to the same thread, which keeps their order.
final class Moderator: EventThread, @unchecked Sendable {
  // It adds no state of its own to that of the thread.
  private static let masked: Set<String> = ["damn", "heck", "blockchain"]

  override func registerEventListeners() {
    addEventCallback(Moderator.onSaid)
  }

  func onSaid(_ said: Said) {
    let words = said.text.split(whereSeparator: \.isWhitespace).map(moderated)
    guard !words.isEmpty else { return said.seat.answer(.error(text: "A message needs a word.")) }
    let body = jsonText(of: MessageBody(name: said.seat.name, text: words.joined(separator: " ")))
    if Moderated(seat: said.seat, body: body).queue(on: central) == 0 {
      said.seat.answer(.error(text: Door.isClosing))
    }
  }

  private func moderated(_ word: Substring) -> String {
    Self.masked.contains(word.lowercased()) ? String(repeating: "*", count: word.count) : String(word)
  }
}
