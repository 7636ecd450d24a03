// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation

/// What one tab got of a flood, told without decoding every line.
struct Flood {
  /// The messages, as they came.
  var said: [String] = []
  /// The numbers of the tab's own messages that were accepted.
  var accepted: [Int] = []
  var missed = 0
  var errors: [String] = []
  /// The code of the server's close frame.
  var closing: Int?

  var numbers: [Int] { said.map { Self.number(in: $0, after: #"{"number":"#) } }

  mutating func take(_ line: String) {
    if line.hasPrefix(#"{"number":"#) {
      said.append(line)
    } else if line.hasPrefix(#"{"accepted":"#) {
      accepted.append(Self.number(in: line, after: #"{"accepted":{"number":"#))
    } else if line.hasPrefix(#"{"missed":"#) {
      missed += Self.number(in: line, after: #"{"missed":{"count":"#)
    } else if line.hasPrefix(#"{"error":"#) {
      errors.append(line)
    }
  }

  private static func number(in line: String, after prefix: String) -> Int {
    line.withCString { strtol($0 + prefix.utf8.count, nil, 10) }
  }
}

/// Lets several tabs send at the same time, each with so many messages unanswered, and reads until `isDone`.
func flood(
  _ tabs: Int, port: UInt16, messages: Int = .max, window: Int = 64,
  until isDone: @escaping @Sendable (Flood) async -> Bool
) async throws -> [Flood] {
  try await withThrowingTaskGroup(of: Flood.self) { group in
    let gate = Gate(tabs)
    for index in 0..<tabs {
      group.addTask {
        let tab = try await Tab(port: port, room: "lobby", name: "t\(index)")
        await gate.arrive()
        var (flood, sent) = (Flood(), 0)
        while await !isDone(flood) {
          while sent < messages, sent - flood.accepted.count - flood.errors.count < window {
            // The server may have closed the web socket; what it said before is still to be read.
            guard (try? await tab.send("m\(sent)")) != nil else { break }
            sent += 1
          }
          guard let line = try? await tab.line() else { break }
          flood.take(line)
        }
        flood.closing = tab.closing?.code
        return flood
      }
    }
    return try await group.reduce(into: []) { $0.append($1) }
  }
}

/// Opens when so many have arrived.
actor Gate {
  private var missing: Int
  private var waiting: [CheckedContinuation<Void, Never>] = []

  init(_ count: Int) { missing = count }

  func arrive() async {
    missing -= 1
    guard missing > 0 else {
      for one in waiting { one.resume() }
      return
    }
    await withCheckedContinuation { waiting.append($0) }
  }
}
