// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation
import ServiceLifecycle
import Testing

@Suite(.serialized, .timeLimit(.minutes(5)))
struct LoadTests {
  @Test("Twenty tabs send 20,000 messages: each gets all of them, once and in one order")
  func everything() async throws {
    let floods = try await withChat(buffer: 30_000) { port, _ in
      try await flood(20, port: port, messages: 1_000) { $0.said.count == 20_000 && $0.accepted.count == 1_000 }
    }
    #expect(floods.count == 20)
    #expect(floods[0].numbers == Array(1...20_000))
    for flood in floods {
      #expect(flood.said == floods[0].said)
      #expect(flood.missed == 0 && flood.errors.isEmpty)
    }
    #expect(floods.flatMap(\.accepted).sorted() == Array(1...20_000))
  }

  @Test("With little room for each tab, what it missed is told by count: together with what came it is everything")
  func accounted() async throws {
    let floods = try await withChat(buffer: 80) { port, _ in
      try await flood(20, port: port, messages: 200) { $0.said.count + $0.missed >= 4_000 && $0.accepted.count == 200 }
    }
    for flood in floods {
      #expect(flood.said.count + flood.missed == 4_000)
      #expect(flood.errors.isEmpty)
      #expect(zip(flood.numbers, flood.numbers.dropFirst()).allSatisfy { $0 < $1 })
    }
    #expect(floods.flatMap(\.accepted).sorted() == Array(1...4_000))
  }

  /// Sends so many messages of 4,000 bytes, more in all than the sockets to another tab hold, and reads them.
  private func talk(_ tab: Tab, _ count: Int) async throws -> Flood {
    let padding = String(repeating: "x", count: 4_000)
    var (flood, sent) = (Flood(), 0)
    while flood.said.count < count || flood.accepted.count < count {
      while sent < count, sent - min(flood.accepted.count, flood.said.count) < 50 {
        try await tab.send("\(sent) \(padding)")
        sent += 1
      }
      guard let line = try await tab.line() else { break }
      flood.take(line)
    }
    return flood
  }

  @Test("A tab that does not read loses its own lines, told by count, and the others lose nothing")
  func slowReader() async throws {
    let count = 4_000
    try await withChat(buffer: 200) { port, _ in
      let slow = try await Tab(port: port, room: "lobby", name: "slow", receiveBuffer: 4_096)
      let anna = try await Tab(port: port, room: "lobby", name: "anna")
      let fast = try await talk(anna, count)
      #expect(fast.missed == 0 && fast.errors.isEmpty)
      #expect(fast.numbers == Array(1...count))

      // It reads only now: what the sockets and its buffer have kept, and how many lines it missed.
      var late = Flood()
      // One of the lines is that anna has arrived.
      var others = 0
      while late.said.count + late.missed + others < count + 1, let line = try await slow.line() {
        late.take(line)
        if line.contains("arrived") { others += 1 }
      }
      #expect(late.missed > 0)
      #expect(late.said.count + late.missed + others == count + 1)
      #expect(late.numbers.last == count, "the newest are kept")
      let metrics = try await Tab.page("/metrics", port: port).body
      #expect(metrics.contains("chat_missed \(Double(late.missed))"))
    }
  }

  @Test("Of a tab that does not read one answer to a command waits, and further commands are refused")
  func unreadAnswers() async throws {
    let (count, long) = (300, String(repeating: "x", count: 4_000))
    try await withChat(buffer: 1_000) { port, _ in
      let anna = try await Tab(port: port, room: "lobby", name: "anna")
      for _ in 0..<50 {
        try await anna.send(long)
        _ = try await anna.hear(\.accepted)
      }
      let slow = try await Tab(port: port, room: "lobby", name: "slow", receiveBuffer: 4_096)
      for _ in 0..<count { try await slow.send("/history") }
      // Its own, of its arrival, too. Each has 200,000 bytes, and sockets keep some of them.
      var (histories, refusals) = (0, 0)
      while histories + refusals < count + 1 {
        let error = try await slow.hear { heard in heard.history != nil ? "" : heard.error?.text }
        if error.isEmpty { histories += 1 } else { refusals += 1 }
        #expect(error.isEmpty || error.contains("not answered yet"))
      }
      #expect(histories < 100)
      // Until the server knows that the last answer was taken.
      var last: Int?
      while last == nil {
        try await slow.send("/history")
        last = try await slow.hear { heard in heard.history.map { $0.count } ?? (heard.error != nil ? 0 : nil) }
        if last == 0 { last = nil }
      }
      #expect(last == 50)
    }
  }

  @Test(
    "A shutdown in the middle of a load: every message that was accepted reaches everybody before the close frame",
    arguments: EventCentral.Core.available)
  func shutdown(core: EventCentral.Core) async throws {
    let floods = try await withChat(buffer: 100_000, core: core) { port, group in
      try await flood(8, port: port) { flood in
        if flood.accepted.count == 300 { await group.triggerGracefulShutdown() }
        return false
      }
    }
    #expect(floods.count == 8)
    let accepted = floods.flatMap(\.accepted).sorted()
    #expect(accepted.count >= 300)
    for flood in floods {
      #expect(flood.closing == 1001)
      #expect(flood.missed == 0)
      #expect(flood.numbers == accepted)
    }
  }

  @Test("A tab that does not read keeps a shutdown waiting as long as it may, and is then cut off")
  func stuckAtShutdown() async throws {
    let (stuck, flood) = try await withChat(patience: .seconds(3)) { port, group in
      let stuck = try await Tab(port: port, room: "lobby", name: "stuck", receiveBuffer: 4_096)
      let anna = try await Tab(port: port, room: "lobby", name: "anna")
      var flood = try await talk(anna, 3_000)
      await group.triggerGracefulShutdown()
      while let line = try await anna.line() { flood.take(line) }
      flood.closing = anna.closing?.code
      return (stuck, flood)
    }
    #expect(flood.closing == 1001)
    #expect(flood.numbers == Array(1...3_000))
    await #expect(throws: (any Error).self) { while try await stuck.line() != nil {} }
    #expect(stuck.closing == nil)
  }
}
