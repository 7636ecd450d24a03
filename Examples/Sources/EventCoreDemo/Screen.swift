// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import MachineSamples

/// The standard output as text.
enum Output {
  static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

  /// Writes without a buffer. Gives up if the output is closed.
  static func write(_ text: String) {
    var text = text
    text.withUTF8 { bytes in
      var rest = UnsafeRawBufferPointer(bytes)
      while let start = rest.baseAddress, !rest.isEmpty {
        let written = writeOnce(start, rest.count)
        if written < 0 {
          if errno == EINTR || errno == EAGAIN { continue }
          return
        }
        rest = UnsafeRawBufferPointer(rebasing: rest[written...])
      }
    }
  }

  static func line(_ text: String = "") {
    write(text + "\n")
  }
}

private func writeOnce(_ start: UnsafeRawPointer, _ count: Int) -> Int {
  write(STDOUT_FILENO, start, count)
}

/// The terminal's alternate page, which is redrawn in place; afterwards the former page is shown again.
struct Screen {
  /// Switches to the alternate page and hides the cursor.
  init() {
    Output.write("\u{1b}[?1049h\u{1b}[?25l\u{1b}[2J")
  }

  /// Puts the terminal back.
  func restore() {
    Output.write("\u{1b}[?25h\u{1b}[?1049l")
  }

  /// Shows lines from the top, cut to the size of the terminal.
  func show(_ lines: [String]) {
    var size = winsize()
    let isKnown = ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
    let columns = isKnown ? Int(size.ws_col) : 80
    let rows = isKnown ? Int(size.ws_row) : 24
    var page = "\u{1b}[H"
    for (index, line) in lines.prefix(rows).enumerated() {
      page += (index > 0 ? "\r\n" : "") + line.prefix(columns) + "\u{1b}[K"
    }
    Output.write(page + "\u{1b}[J")
  }
}
