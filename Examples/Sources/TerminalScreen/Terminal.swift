// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The terminal as a page that is redrawn in place, and single keys. From `init` to `restore()` it shows its alternate
/// page. Block the signals before (``Signals``), or one of them ends the program with the terminal in this state.
package final class Terminal {
  package enum Reading: Equatable {
    case bytes([UInt8])
    /// The terminal is gone, or somebody asks for the end, by this signal.
    case ending(signal: Int32)
  }

  package private(set) var size = (columns: 80, rows: 24)
  private var before = termios()
  private let output: Int32
  private var unsent: [UInt8] = []
  /// Whether what was on the page is gone, as if its size had changed.
  private var isNew = false

  /// Nil if the standard input or output is no terminal.
  package init?() {
    guard isatty(STDOUT_FILENO) == 1, tcgetattr(STDIN_FILENO, &before) == 0 else { return nil }
    // The same terminal, opened anew: that a write must not block the loop is this program's wish, and not that of the
    // shell, with which it shares its descriptor.
    output = open(
      ttyname(STDOUT_FILENO).map { String(cString: $0) } ?? "/dev/tty", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
    guard output >= 0 else { return nil }
    measure()
    begin()
  }

  private func begin() {
    var raw = before
    // Ctrl-C arrives as a byte, and Ctrl-Z does nothing: it would leave the terminal in this state.
    raw.c_lflag &= ~tcflag_t(ICANON | ECHO | ISIG | IEXTEN)
    raw.c_iflag &= ~tcflag_t(IXON | ICRNL)
    tcsetattr(STDIN_FILENO, TCSANOW, &raw)
    show("\u{1b}[?1049h\u{1b}[?25l\u{1b}[2J")
  }

  /// Puts the terminal back, and writes a last text. A terminal that takes nothing for a fifth of a second is left
  /// alone.
  package func restore(saying text: String = "") {
    // The first character cancels a sequence of which the terminal has got one half.
    unsent = Array("\u{18}\u{1b}[?2026l\u{1b}[0m\u{1b}[?25h\u{1b}[?1049l\(text)".utf8)
    var polled = pollfd(fd: output, events: Int16(POLLOUT), revents: 0)
    repeat { flush() } while !unsent.isEmpty && poll(&polled, 1, 200) > 0 && polled.revents == Int16(POLLOUT)
    tcsetattr(STDIN_FILENO, TCSANOW, &before)
    close(output)
  }

  /// Waits for keys, until `deadline` at most.
  package func read(until deadline: ContinuousClock.Instant) -> Reading {
    let rest = max(.zero, ContinuousClock.now.duration(to: deadline))
    var polled = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
    // A millisecond too late rather than too early, when the caller would only come again.
    let isReady = poll(&polled, 1, Int32((rest / .milliseconds(1)).rounded(.up))) > 0
    if let signal = Signals.take() { return .ending(signal: signal) }
    // Somebody has stopped it all the same, and a shell has used the terminal meanwhile.
    if Signals.hasContinued() {
      begin()
      isNew = true
    }
    guard isReady else { return .bytes([]) }
    var bytes = [UInt8](repeating: 0, count: 256)
    let count = readOnce(STDIN_FILENO, &bytes, bytes.count)
    // Readable, and nothing to read: the other side is closed.
    guard count > 0 else { return .ending(signal: SIGHUP) }
    return bytes[..<count].contains(3) ? .ending(signal: SIGINT) : .bytes(Array(bytes[..<count]))
  }

  /// Asks how large the terminal is. Returns whether all is to be drawn anew: its size is another, or the page is gone.
  @discardableResult
  package func measure() -> Bool {
    var window = winsize()
    guard ioctl(output, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0 else { return false }
    let now = (columns: Int(window.ws_col), rows: Int(window.ws_row))
    defer { (size, isNew) = (now, false) }
    return now != size || isNew
  }

  /// Whether the terminal has taken all that was shown. If not, leave a frame out: it is slower than the program.
  package var isReady: Bool {
    flush()
    return unsent.isEmpty
  }

  /// Writes text with control sequences, as one frame in terminals that know how to.
  package func show(_ text: String) {
    unsent += Array("\u{1b}[?2026h\(text)\u{1b}[?2026l".utf8)
    flush()
  }

  /// Shows lines from the top, cut to the size of the terminal.
  package func show(lines: [String]) {
    measure()
    guard isReady else { return }
    let page = lines.prefix(size.rows).map { $0.prefix(size.columns) + "\u{1b}[K" }.joined(separator: "\r\n")
    show("\u{1b}[H" + page + "\u{1b}[J")
  }

  private func flush() {
    let count = unsent.isEmpty ? 0 : writeOnce(output, unsent, unsent.count)
    if count > 0 { unsent.removeFirst(count) }
  }
}

// Within the class these names are its own.
private func readOnce(_ descriptor: Int32, _ start: UnsafeMutableRawPointer, _ count: Int) -> Int {
  read(descriptor, start, count)
}

private func writeOnce(_ descriptor: Int32, _ start: UnsafeRawPointer, _ count: Int) -> Int {
  write(descriptor, start, count)
}
