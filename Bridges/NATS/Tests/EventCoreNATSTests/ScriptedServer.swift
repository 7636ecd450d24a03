// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation

/// A server that says what a test has it say, and when: for what a server of NATS says only at some time.
///
/// It takes one client, and events of short subjects without a body.
final class ScriptedServer: Sendable {
  let url: String
  private let listener: Int32

  /// - Parameter answer: Gets each line of the client and returns what to send for it, before the `PONG` of a `PING`.
  init(_ answer: @escaping @Sendable (_ line: String) -> String?) throws {
    let (listener, port) = try Loopback.listen()
    url = "nats://127.0.0.1:\(port)"
    self.listener = listener
    Thread.detachNewThread { Self.serve(listener, answer) }
  }

  // The thread that serves ends with its client.
  deinit { shutdown(listener, .init(SHUT_RDWR)) }

  private static func serve(_ listener: Int32, _ answer: (String) -> String?) {
    defer { close(listener) }
    let client = accept(listener, nil, nil)
    guard client >= 0, let lines = fdopen(client, "r") else { return }
    defer { fclose(lines) }
    func send(_ text: String) { _ = text.withCString { write(client, $0, strlen($0)) } }
    send(#"INFO {"server_id":"test","version":"2.9.10","proto":1,"headers":true,"max_payload":1048576}"# + "\r\n")
    var bytes = [CChar](repeating: 0, count: 4096)
    while fgets(&bytes, Int32(bytes.count), lines) != nil {
      let line = bytes.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
        .trimmingCharacters(in: .newlines)
      if let text = answer(line) { send(text) }
      if line == "PING" { send("PONG\r\n") }
    }
  }
}
