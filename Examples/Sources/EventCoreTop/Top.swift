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

  @Option(help: "End after so many frames.")
  var frames: Int?

  func run() throws {
    let client: StatisticsClient
    do {
      client = try StatisticsClient(at: socket)
    } catch let error as SocketError {
      throw ValidationError("\(error.description). Is the process running, and does it show its statistics there?")
    }
    let isTerminal = isatty(1) != 0
    var (count, last): (Int, Frame?) = (0, nil)
    while count < frames ?? .max, let line = client.nextLine() {
      count += 1
      guard isTerminal else {
        try FileHandle.standardOutput.write(contentsOf: Data(line + [UInt8(ascii: "\n")]))
        continue
      }
      let frame = try JSONDecoder().decode(Frame.self, from: Data(line))
      // To the upper left; each line is cleared to its end, and what is below the last one.
      let (columns, rows) = size
      let lines = Self.page(frame, after: last).prefix(rows).map { line in
        // Names are the other process's: what moves the cursor stays out. A line that the terminal continues would move
        // those below.
        String(String.UnicodeScalarView(line.unicodeScalars.filter { $0.properties.generalCategory != .control }))
          .prefix(columns)
      }
      print("\u{1B}[H" + lines.map { $0 + "\u{1B}[K" }.joined(separator: "\n"), terminator: "\u{1B}[J")
      fflush(nil)
      last = frame
    }
    if isTerminal { print() }
  }

  /// What the terminal shows.
  private var size: (columns: Int, rows: Int) {
    var window = winsize()
    guard ioctl(1, UInt(TIOCGWINSZ), &window) == 0, window.ws_row > 0, window.ws_col > 0 else { return (80, 24) }
    return (Int(window.ws_col), Int(window.ws_row))
  }

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
