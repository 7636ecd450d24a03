// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation
import Testing

@Suite(.serialized, .timeLimit(.minutes(2)))
struct ChatTests {
  @Test("Two users with three tabs each see both's messages in one order")
  func oneOrder() async throws {
    try await withChat { port, _ in
      var tabs: [Tab] = []
      for index in 0..<6 {
        tabs.append(try await Tab(port: port, room: "lobby", name: index < 3 ? "anna" : "bob"))
      }
      for round in 0..<50 {
        try await tabs[0].send("anna \(round)")
        try await tabs[5].send("bob \(round)")
      }
      var orders: [[Heard.Message]] = []
      for tab in tabs {
        var order: [Heard.Message] = []
        while order.count < 100 { order.append(try await tab.hear(\.said)) }
        orders.append(order)
      }
      #expect(orders.allSatisfy { $0 == orders[0] })
      for name in ["anna", "bob"] {
        #expect(orders[0].filter { $0.name == name }.map(\.text) == (0..<50).map { "\(name) \($0)" })
      }
    }
  }

  @Test("Rooms do not mix")
  func rooms() async throws {
    try await withChat { port, _ in
      let anna = try await Tab(port: port, room: "one", name: "anna")
      let bob = try await Tab(port: port, room: "two", name: "bob")
      try await anna.send("for one")
      #expect(try await anna.hear(\.said).text == "for one")
      try await bob.send("for two")
      #expect(try await bob.hear(\.said).text == "for two")
      try await bob.send("/who")
      #expect(try await bob.hear(\.here).names == ["bob"])
    }
  }

  @Test("Who is here, and what was said, is answered on request, and told to those who join")
  func requests() async throws {
    try await withChat { port, _ in
      let anna = try await Tab(port: port, room: "lobby", name: "anna")
      #expect(try await anna.hear(\.here).names == ["anna"])
      for index in 0..<60 {
        try await anna.send("message \(index)")
        #expect(try await anna.hear(\.accepted).number == index + 1)
      }
      let bob = try await Tab(port: port, room: "lobby", name: "bob%20b")
      #expect(try await bob.hear(\.here).names == ["anna", "bob b"])
      #expect(try await bob.hear(\.history).map(\.number) == Array(11...60))
      #expect(try await anna.hear(\.arrived).name == "bob b")
      try await bob.send("/history")
      #expect(try await bob.hear(\.history).map(\.said.text) == (10..<60).map { "message \($0)" })
      try await bob.close()
      #expect(bob.closing?.code == 1000)
      #expect(try await anna.hear(\.left).name == "bob b")
      try await anna.send("/who")
      #expect(try await anna.hear(\.here).names == ["anna"])
      // One that is gone without a word.
      _ = try await Tab(port: port, room: "lobby", name: "carl")
      #expect(try await anna.hear(\.left).name == "carl")
    }
  }

  @Test("What is wrong is answered with an error, to whoever sent it alone")
  func badInput() async throws {
    try await withChat { port, _ in
      let anna = try await Tab(port: port, room: "lobby", name: "anna")
      let bob = try await Tab(port: port, room: "lobby", name: "bob")
      let long = [UInt8](repeating: UInt8(ascii: "x"), count: 4_097)
      let wrong: [(UInt8, [UInt8], String)] = [
        (1, long, "at most 4096 bytes"), (1, [0xFF, 0xFE], "UTF-8"), (1, Array("/dance".utf8), "commands"),
        (1, Array(" \n ".utf8), "needs a word"), (1, [], "needs a word"), (2, [1, 2, 3], "is text"),
        (9, Array(long.prefix(126)), "at most 125 bytes"),
      ]
      for (opcode, payload, error) in wrong {
        try await anna.send(opcode: opcode, payload)
        #expect(try await anna.hear(\.error).text.contains(error))
      }
      // In two frames, with a ping in between; at the limit; and with what is masked.
      try await anna.send(opcode: 1, Array("What the heck ".utf8), isLast: false)
      try await anna.send(opcode: 9, Array("there?".utf8))
      try await anna.send(opcode: 0, Array("\"is\" ü".utf8))
      try await anna.send(opcode: 1, Array(long.dropLast()))
      var lines: [String] = []
      while lines.count < 5 {
        guard let line = try await anna.line() else { break }
        if line.hasPrefix("pong") || line.contains("said") || line.contains("accepted") { lines.append(line) }
      }
      #expect(lines.contains("pong there?"))
      // Bob has got the messages, and none of the errors.
      var texts: [String] = []
      while texts.count < 2 { texts.append(try await bob.hear { $0.error?.text ?? $0.said?.text }) }
      #expect(texts == [#"What the **** "is" ü"#, String(repeating: "x", count: 4_096)])

      for target in ["/chat?room=lobby", "/chat?room=lobby&name=", "/chat?name=anna", "/chat?room=%20&name=anna"] {
        #expect(try await Tab.page(target, port: port).head.hasPrefix("HTTP/1.1 400"))
      }
      let plain = try await Tab.page("/chat?room=lobby&name=anna", port: port)
      #expect(plain.head.hasPrefix("HTTP/1.1 400"), "without the upgrade")
      for (origin, status) in [("http://127.0.0.1", 101), ("http://127.0.0.1.example", 403), ("null", 403)] {
        let answer = try await Tab.get("/chat?room=lobby&name=anna", port: port, isSocket: true, origin: origin)
        #expect(answer.head.hasPrefix("HTTP/1.1 \(status)"), "\(origin)")
        try answer.socket.close()
      }
    }
  }

  @Test("What is left of a message that was refused is passed over, and nobody else hears of it")
  func restOfWhatWasRefused() async throws {
    try await withChat { port, _ in
      let anna = try await Tab(port: port, room: "lobby", name: "anna")
      let bob = try await Tab(port: port, room: "lobby", name: "bob")
      typealias Frame = (opcode: UInt8, text: String, isLast: Bool)
      let wrong: [(frames: [Frame], error: String)] = [
        ([(2, "secret ", false), (0, "tail ", false), (0, "of a binary message", true)], "is text"),
        ([(1, "first half ", false), (1, "another", true)], "begins while"),
        ([(1, "first half ", false), (2, "another", false), (0, "rest", true)], "begins while"),
        ([(0, "a rest ", false), (0, "without a beginning", true)], "no message"),
        ([(2, "", false), (0, String(repeating: "x", count: 4_097), true)], "is text"),
      ]
      for (index, (frames, error)) in wrong.enumerated() {
        for frame in frames { try await anna.send(opcode: frame.opcode, Array(frame.text.utf8), isLast: frame.isLast) }
        #expect(try await anna.hear(\.error).text.contains(error))
        // One error for each, and then its messages are heard again.
        try await anna.send("message \(index)")
        #expect(try await anna.hear { $0.error?.text ?? $0.accepted.map { "\($0.number)" } } == "\(index + 1)")
        #expect(try await bob.hear(\.said).text == "message \(index)")
      }
    }
  }

  @Test("The page and the metrics are served")
  func pages() async throws {
    try await withChat { port, _ in
      #expect(try await Tab.page("/", port: port).body.contains("<title>EventCore chat"))
      let anna = try await Tab(port: port, room: "lobby", name: "anna")
      for _ in 0..<3 {
        try await anna.send("hello")
        _ = try await anna.hear(\.accepted)
      }
      // Counted when the handler has returned, which sent the answer before.
      var metrics = ""
      while !metrics.contains(#"eventcore_delivered{receiver="EventPool<Moderator>"} 3.0"#) {
        metrics = try await Tab.page("/metrics", port: port).body
      }
      #expect(metrics.contains("chat_accepted 3.0"))
      #expect(metrics.contains("chat_seats 1.0"))
    }
  }
}
