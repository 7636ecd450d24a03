// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Testing

@testable import EventCoreGame
@testable import TerminalScreen

/// What a terminal shows after the differences between frames is what it shows after the last frame alone.
@Suite struct CanvasTests {
  /// A terminal that understands what a canvas writes, and nothing else.
  struct Shown: Equatable {
    private var cells: [Int: String] = [:]

    mutating func write(_ text: String) throws {
      var (row, column, colours) = (0, 0, "")
      var rest = Substring(text)
      while let character = rest.popFirst() {
        guard character == "\u{1b}" else {
          cells[row * 1000 + column] = colours + String(character)
          column += 1
          continue
        }
        let end = try #require(rest.firstIndex { $0 == "H" || $0 == "m" })
        let code = rest[..<end].dropFirst()
        if rest[end] == "H" {
          let place = code.split(separator: ";").compactMap { Int($0) }
          try #require(place.count == 2)
          (row, column) = (place[0], place[1])
        } else {
          colours = String(code)
        }
        rest = rest[rest.index(after: end)...]
      }
    }
  }

  func draw(on canvas: inout Canvas, _ random: inout SeededRandom) {
    for _ in 0..<40 {
      canvas.plot(random.below(84) - 2, random.below(48) - 2, UInt8(random.below(256)))
    }
    canvas.write("← SCORE \(random.below(1000))", row: random.below(24), column: random.below(60))
  }

  @Test(arguments: 1...20 as ClosedRange<UInt64>) func differencesLeadToTheSameFrame(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var (shown, frame) = (Shown(), Canvas())
    try shown.write(frame.update(from: nil, corner: (7, 3)))
    for _ in 0..<20 {
      var next = random.below(3) == 0 ? Canvas() : frame
      draw(on: &next, &random)
      try shown.write(next.update(from: frame, corner: (7, 3)))
      frame = next
    }
    var alone = Shown()
    try alone.write(frame.update(from: nil, corner: (7, 3)))
    #expect(shown == alone)
    #expect(frame.update(from: frame, corner: (7, 3)).isEmpty)
  }
}
