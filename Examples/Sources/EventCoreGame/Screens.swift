// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import TerminalScreen

/// What a coordinator shows. A screen does what is its own business, and emits `Navigation` for everything else: it
/// does not know which screen comes next.
class Screen: Coordinated {
  /// Set by the coordinator that shows this screen: where its events go.
  weak var parentCoordinator: Coordinator?
  var nextResponder: (any EventResponder)? { nil }

  func press(_ key: Key) {}
  func tick() {}
  func draw(on canvas: inout Canvas) {}
}

/// A few lines, and what each key asks for.
final class Card: Screen {
  private let lines: [(text: String, colour: UInt8)]
  private let keys: [Key: Navigation]

  init(_ lines: [(String, UInt8)], keys: [Key: Navigation]) { (self.lines, self.keys) = (lines, keys) }

  override func press(_ key: Key) {
    if let navigation = keys[key] { emitEvent(navigation) }
  }

  override func draw(on canvas: inout Canvas) {
    for (row, line) in lines.enumerated() { canvas.write(line.text, row: 11 - lines.count / 2 + row, line.colour) }
  }

  static func title(best: Int) -> Card {
    Card(
      [
        ("█▀▀▄ ▄▀▀▄ █ █▀▀▄ █▀▀▀ █▀▀▄ ▄▀▀▀", 196), ("█▀█  █▀▀█ █ █  █ █▀▀  █▀█   ▀▀▄", 202),
        ("▀  ▀ ▀  ▀ ▀ ▀▀▀  ▀▀▀▀ ▀  ▀ ▀▀▀ ", 208), ("", 0), ("press ENTER to fly", 15), ("", 0), (keysText, 250),
        ("", 0), ("Shoot a leader, and its raiders break formation.", 244), ("", 0), ("best \(best)", 220),
      ], keys: [.start: .play, .fire: .play, .quit: .quit])
  }

  /// No key that a player may still be pressing when the ship is lost.
  static func over(score: Int, wave: Int, best: Int) -> Card {
    let result = "score \(score)   wave \(wave)   best \(best)"
    return Card(
      [("G A M E   O V E R", 196), ("", 0), (result, 15), ("", 0), ("ENTER fly again   Q title", 250)],
      keys: [.start: .play, .quit: .title])
  }

  static var pause: Card {
    Card(
      [("            PAUSE             ", 226), ("    P go on     Q give up     ", 250)],
      keys: [.pause: .resume, .start: .resume, .quit: .title])
  }

  static let keysText = "← → steer   ↓ stop   SPACE fire   P pause   Q quit"
}
