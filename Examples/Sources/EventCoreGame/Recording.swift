// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation

/// The keys of a game with the steps at which they were handled: pressed again at these steps, they give the same game.
/// A line has a word and a number: first "seed 7", then "start 89", "fire 100" and so on, and last "end 3600".
struct Recording {
  struct Failure: Error, CustomStringConvertible { let description: String }

  private(set) var seed: UInt64 = 0
  private(set) var keys: [(step: Int, key: Key)] = []
  private(set) var steps = 0

  init(file: String) throws {
    guard let text = try? String(contentsOfFile: file, encoding: .utf8) else {
      throw Failure(description: "cannot read \(file): it is missing, closed to you, or no text.")
    }
    // The empty line stands for the end of a file that was cut off.
    let lines: [Substring] = text.split(separator: "\n") + [""]
    for (index, line) in lines.enumerated() {
      let words = line.split(separator: " ").map(String.init)
      let number = words.count == 2 ? UInt64(words[1]) : nil
      let step = number.flatMap { Int(exactly: $0) }.flatMap { $0 >= steps ? $0 : nil }
      if index == 0, words.first == "seed", let number {
        seed = number
      } else if index > 0, words.first == "end", let step {
        steps = step
        return
      } else if index > 0, let step, let key = Key(rawValue: words[0]) {
        keys.append((step, key))
        steps = step
      } else {
        throw Failure(
          description: """
            \(file):\(index + 1): a recording begins with "seed NUMBER", goes on with keys and their steps, none of \
            them before the one above, and ends with "end STEPS"; found \(line.isEmpty ? "no more" : "\"\(line)\""). \
            To replay what is above, write "end \(steps + 1)" here.
            """)
      }
    }
  }

  /// Begins a file. Returns what writes a line, at once, so that a game that ends badly can be replayed, too.
  static func write(to path: String, seed: UInt64) throws -> (String) -> Void {
    guard FileManager.default.createFile(atPath: path, contents: Data("seed \(seed)\n".utf8)),
      let file = FileHandle(forUpdatingAtPath: path)
    else { throw Failure(description: "cannot write \(path): \(String(cString: strerror(errno)))") }
    file.seekToEndOfFile()
    return { line in file.write(Data((line + "\n").utf8)) }
  }
}
