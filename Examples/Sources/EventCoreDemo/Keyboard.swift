// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import MachineSamples

/// Reads single keys from the terminal, without waiting and without an echo.
final class Keyboard {
  enum Key: Equatable {
    case quit, interrupt, burst, raise, lower
  }

  private var before = termios()

  /// Nil if the standard input is no terminal.
  init?() {
    guard tcgetattr(STDIN_FILENO, &before) == 0 else { return nil }
    var raw = before
    // Ctrl-C arrives as a byte. Ctrl-Z is ignored, since it would leave the terminal in this state.
    raw.c_lflag &= ~tcflag_t(ICANON | ECHO | ISIG | IEXTEN)
    raw.c_iflag &= ~tcflag_t(IXON | ICRNL)
    withUnsafeMutableBytes(of: &raw.c_cc) { bytes in
      // A read returns at once, also if no key was pressed.
      bytes[Int(VMIN)] = 0
      bytes[Int(VTIME)] = 0
    }
    guard tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0 else { return nil }
  }

  /// Puts the terminal back.
  func restore() {
    tcsetattr(STDIN_FILENO, TCSANOW, &before)
  }

  /// The keys that were pressed since the last call.
  func keys() -> [Key] {
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = read(STDIN_FILENO, &bytes, bytes.count)
    guard count > 0 else { return [] }
    return bytes[..<count].compactMap { byte in
      switch byte {
      case UInt8(ascii: "q"), UInt8(ascii: "Q"): .quit
      case 3: .interrupt
      case UInt8(ascii: "b"), UInt8(ascii: "B"): .burst
      case UInt8(ascii: "+"), UInt8(ascii: "="): .raise
      case UInt8(ascii: "-"), UInt8(ascii: "_"): .lower
      default: nil
      }
    }
  }
}
