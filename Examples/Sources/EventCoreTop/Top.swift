// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import ArgumentParser
import EventCore
import Foundation
import StatisticsSocket

/// Shows what happens inside another process, as `top` does with processes.
@main
struct Top: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "eventcore-top", abstract: "The live statistics of a process that shows them by a socket.",
    discussion: """
      The process opts in with a StatisticsServer: eventcore-demo --socket /tmp/demo.socket. In a terminal there is a \
      table, renewed with each frame; elsewhere each frame is a line of JSON. It ends when the process does, or shows \
      no more, with status 0.
      """)

  @Argument(help: "The path of the socket.")
  var socket: String

  @Option(parsing: .unconditional, help: "End after so many frames.")
  var frames: Int?

  /// What the process sends is another program's, or another version's.
  struct NoFrame: Error, CustomStringConvertible {
    let socket: String

    var description: String {
      """
      \(socket) sends something that is not a frame of this version: start the eventcore-top of the EventCore that the \
      process has.
      """
    }
  }

  func validate() throws {
    if let frames, frames < 0 { throw ValidationError("--frames is \(frames): it must be 0 or more.") }
  }

  func run() throws {
    let client: StatisticsClient
    do {
      client = try StatisticsClient(at: socket)
    } catch let error as SocketError {
      throw ValidationError("\(error.description). Is the process running, and does it show its statistics there?")
    }
    let isTerminal = isatty(1) != 0
    defer { if isTerminal { print() } }
    var (count, last): (Int, Frame?) = (0, nil)
    while count < frames ?? .max, let line = client.nextLine() {
      count += 1
      guard let frame = try? JSONDecoder().decode(Frame.self, from: Data(line)) else { throw NoFrame(socket: socket) }
      guard isTerminal else {
        try FileHandle.standardOutput.write(contentsOf: Data(line + [UInt8(ascii: "\n")]))
        continue
      }
      // To the upper left; each line is cleared to its end, and what is below the last one.
      let (columns, rows) = size
      let lines = Self.page(frame, after: last).prefix(rows).map { Self.cut($0, to: columns) }
      print("\u{1B}[H" + lines.map { $0 + "\u{1B}[K" }.joined(separator: "\n"), terminator: "\u{1B}[J")
      fflush(nil)
      last = frame
    }
  }

  /// What the terminal shows.
  private var size: (columns: Int, rows: Int) {
    var window = winsize()
    guard ioctl(1, UInt(TIOCGWINSZ), &window) == 0, window.ws_row > 0, window.ws_col > 0 else { return (80, 24) }
    return (Int(window.ws_col), Int(window.ws_row))
  }

  /// As much of a line as the terminal shows: one that it continued would move those below. Names are the other
  /// process's: what moves the cursor, breaks the line or turns it around stays out.
  static func cut(_ line: String, to columns: Int) -> String {
    let shown = line.unicodeScalars.filter { !unseen.contains($0.properties.generalCategory) }
    var left = columns
    let end = shown.firstIndex { scalar in
      left -= width(of: scalar)
      return left < 0
    }
    return String(shown[..<(end ?? shown.endIndex)])
  }

  private static let unseen: Set<Unicode.GeneralCategory> = [.control, .format, .lineSeparator, .paragraphSeparator]

  /// How many columns a terminal takes for it. Swift sees no `wcwidth`, which would also depend on the user's locale.
  private static func width(of scalar: Unicode.Scalar) -> Int {
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .enclosingMark: 0
    default: scalar.properties.isEmojiPresentation || wide.contains { $0.contains(scalar.value) } ? 2 : 1
    }
  }

  /// The blocks of Unicode with East Asian characters that are wide.
  private static let wide: [ClosedRange<UInt32>] = [
    0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97C, 0xAC00...0xD7A3, 0xF900...0xFAFF,
    0xFE30...0xFE6F, 0xFF01...0xFF60, 0xFFE0...0xFFE6, 0x16FE0...0x1B2FF, 0x1F200...0x1F265, 0x20000...0x3FFFD,
  ]

  /// What a page shows. A frame is another process's, which may say anything: no number of it may end this one.
  static func page(_ frame: Frame, after last: Frame?) -> [String] {
    let seconds = last.map { (Double(frame.time) - Double($0.time)) / 1e9 }
    let handled = { (frame: Frame) in frame.statistics.receivers.reduce(0) { $0 &+ $1.counts.delivered } }
    var heading = "\(frame.name) (\(frame.process))   \(handled(frame)) events handled"
    if let last, let seconds, seconds > 0,
      let rate = Int(exactly: ((Double(handled(frame)) - Double(handled(last))) / seconds).rounded(.towardZero))
    {
      heading += ", \(rate) a second"
    }
    let table = frame.statistics.description.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    let slow = frame.slow.map {
      "\($0.type) \($0.hasReturned ? "took" : "has been taking") \($0.duration) at \($0.receiver); \($0.waiting) wait"
    }
    return [heading, ""] + table + (slow.isEmpty ? [] : ["", "slow handlers:"] + slow)
  }
}
