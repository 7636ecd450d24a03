// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import MachineSamples

/// The standard output as text.
enum Output {
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
