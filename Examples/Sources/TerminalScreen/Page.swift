// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The canvas on the terminal: in its middle, and by what differs from the frame before, in one write.
package struct Page {
  private let terminal: Terminal
  /// What the terminal shows; nil if everything is to be drawn anew.
  private var shown: Canvas?

  package init(_ terminal: Terminal) { self.terminal = terminal }

  package var fits: Bool { terminal.size.columns >= Canvas.columns && terminal.size.rows >= Canvas.rows }

  /// Returns whether all is drawn anew, since the size of the terminal has changed or another program has used it.
  package mutating func measure() -> Bool {
    guard terminal.measure() else { return false }
    shown = nil
    return true
  }

  package mutating func show(_ canvas: Canvas) {
    guard terminal.isReady else { return }
    let (columns, rows) = terminal.size
    var text = shown == nil ? "\u{1b}[0m\u{1b}[2J\u{1b}[H" : ""
    if fits {
      text += canvas.update(from: shown, corner: ((columns - Canvas.columns) / 2, (rows - Canvas.rows) / 2))
    } else if shown == nil {
      let sizes = "The game needs \(Canvas.columns) x \(Canvas.rows), and this is \(columns) x \(rows): "
      text += String((sizes + "enlarge it, or press Q.").prefix(columns * rows))
    }
    if !text.isEmpty { terminal.show(text) }
    shown = canvas
  }
}
