// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation

/// A line of the server, as a browser sees it.
struct Heard: Decodable {
  struct Message: Decodable, Equatable { let name, text: String }
  struct Said: Decodable { let number: Int, said: Message }
  struct Names: Decodable { let names: [String] }
  struct Name: Decodable { let name: String }
  struct Number: Decodable { let number: Int }
  struct Count: Decodable { let count: Int }
  struct Text: Decodable { let text: String }

  let number: Int?
  let said: Message?
  let history: [Said]?
  let here: Names?
  let arrived, left: Name?
  let accepted: Number?
  let missed: Count?
  let error: Text?
}

extension Tab {
  /// Reads until a line has what is asked for.
  @discardableResult
  func hear<Value>(_ property: (Heard) -> Value?) async throws -> Value {
    while let line = try await line() {
      let heard = try JSONDecoder().decode(Heard.self, from: Data(line.utf8))
      if let value = property(heard) { return value }
    }
    throw Failure(text: "The server closed the web socket: \(closing?.reason ?? "").")
  }
}
