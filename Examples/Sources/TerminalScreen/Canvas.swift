// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// One frame: 80 columns and 24 rows, of which the middle 22 have 80 × 44 pixels, two in each cell. Colours are those
/// of the 256-colour palette; 0 is the background.
package struct Canvas {
  package static let (columns, rows) = (80, 24)

  private struct Cell: Equatable {
    /// "▀" is two pixels, whose colours are `ink` above and `paper` below.
    var glyph: Unicode.Scalar = " "
    var ink: UInt8 = 0
    var paper: UInt8 = 0

    /// What is seen of it without colours.
    var shape: Unicode.Scalar {
      guard glyph == "▀" else { return glyph }
      return ink != 0 ? (paper != 0 ? "█" : "▀") : (paper != 0 ? "▄" : " ")
    }
  }

  private var cells = [Cell](repeating: Cell(), count: columns * rows)

  package init() {}

  /// Colours a pixel; outside of the picture nothing.
  package mutating func plot(_ x: Int, _ y: Int, _ colour: UInt8) {
    guard (0..<Self.columns).contains(x), (0..<2 * (Self.rows - 2)).contains(y) else { return }
    let index = (y / 2 + 1) * Self.columns + x
    if cells[index].glyph != "▀" { cells[index] = Cell(glyph: "▀") }
    if y % 2 == 0 { cells[index].ink = colour } else { cells[index].paper = colour }
  }

  /// Draws rows of letters with the upper left one at a pixel; a letter without a colour is transparent.
  package mutating func draw(_ sprite: [String], at corner: (x: Int, y: Int), _ colours: [Character: UInt8]) {
    for (row, line) in sprite.enumerated() {
      for (column, letter) in line.enumerated() {
        if let colour = colours[letter] { plot(corner.x + column, corner.y + row, colour) }
      }
    }
  }

  /// Writes text into a row; without a column in the middle.
  package mutating func write(_ text: String, row: Int, column: Int? = nil, _ colour: UInt8 = 15) {
    let start = row * Self.columns + (column ?? (Self.columns - text.count) / 2)
    for (offset, scalar) in text.unicodeScalars.enumerated() {
      cells[start + offset] = Cell(glyph: scalar, ink: colour)
    }
  }

  /// The rows without their colours.
  package var lines: [String] {
    (0..<Self.rows).map { row in
      String(String.UnicodeScalarView(cells[row * Self.columns..<(row + 1) * Self.columns].map(\.shape)))
    }
  }

  /// What a terminal that shows another canvas needs to show this one: the cells that differ, beginning at `corner`.
  func update(from shown: Canvas?, corner: (column: Int, row: Int)) -> String {
    var text = ""
    var last: (index: Int, cell: Cell)?
    for (index, cell) in cells.enumerated() where shown?.cells[index] != cell {
      let (row, column) = index.quotientAndRemainder(dividingBy: Self.columns)
      if last?.index != index - 1 || column == 0 {
        text += "\u{1b}[\(corner.row + row + 1);\(corner.column + column + 1)H"
      }
      if last?.cell.ink != cell.ink || last?.cell.paper != cell.paper {
        // 16 is black in every terminal, and 0 in most.
        text += "\u{1b}[38;5;\(cell.ink == 0 ? 16 : cell.ink);48;5;\(cell.paper == 0 ? 16 : cell.paper)m"
      }
      text.unicodeScalars.append(cell.glyph)
      last = (index, cell)
    }
    return text
  }
}
