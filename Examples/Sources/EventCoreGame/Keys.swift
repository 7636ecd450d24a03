// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreRecording

/// Who presses the keys instead of a person. For the game there is no difference.
enum Keys {
  case bot
  case recording(EventPlayer)

  /// By byte. An arrow is escape, "[" or "O", and a letter from A to D, so the letter is enough.
  static let table: [UInt8: Key] = Dictionary(
    uniqueKeysWithValues: [
      ("D", .left), ("a", .left), ("C", .right), ("d", .right), ("B", .stop), ("s", .stop), ("A", .fire), (" ", .fire),
      ("\r", .start), ("\n", .start), ("p", .pause), ("P", .pause), ("q", .quit), ("Q", .quit),
    ].map { (UInt8(ascii: $0), $1) })

  mutating func press(in game: Game) {
    switch self {
    case .bot: for key in botKeys(for: game) { Input(key: key).queue(priority: .high, on: game.world) }
    case .recording(var player):
      // What was dispatched before this step when it was played. An event that is damaged ends the game, as does the
      // end of a recording that was cut.
      if player.nextTime == nil { game.end() }
      do throws(EventRecordingError) { try player.advance(to: game.world.now) } catch { game.fault = error; game.end() }
      self = .recording(player)
    }
  }

  /// The bot looks at the field, as a person does, and changes nothing itself.
  private func botKeys(for game: Game) -> [Key] {
    guard let field = (game.app.screens.last as? PlayScreen)?.field else {
      return game.steps % 90 == 89 ? [.start] : []
    }
    let ship = field.ship.box
    var course = 0
    let bombs = field.missiles.filter { $0.isBomb && (0..<14 * pixel).contains(ship.at.y - $0.box.at.y) }
    if let bomb = bombs.first(where: { abs($0.box.at.x - ship.middle) < 6 * pixel }) {
      // Away from it, and not into the wall.
      let isLeft = bomb.box.at.x < ship.middle
      course = isLeft == (isLeft ? ship.at.x < 72 * pixel : ship.at.x > pixel) ? 1 : -1
    } else if let target = field.raiders.max(by: { $0.box.at.y < $1.box.at.y }) {
      let distance = target.box.middle - ship.middle
      course = abs(distance) < 2 * pixel ? 0 : distance.signum()
    }
    let steering: [Key] = course == field.ship.course ? [] : [[.left, .stop, .right][course + 1]]
    return game.steps % 20 == 0 ? steering + [.fire] : steering
  }
}
