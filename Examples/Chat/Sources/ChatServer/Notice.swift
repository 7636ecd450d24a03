// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation

/// What the server tells a browser beside messages, as JSON: `{"accepted":{"number":17}}`.
enum Notice: Codable {
  case here(names: [String])
  case arrived(name: String)
  case left(name: String)
  /// A message of the browser's own has become the room's message of this number, and will reach everybody there.
  case accepted(number: Int)
  /// The browser lags: so many lines of the room were not sent to it.
  case missed(count: UInt64)
  case error(text: String)

  var json: String { jsonText(of: self) }
}

/// A message without its number.
struct MessageBody: Codable {
  let name: String
  let text: String
}

/// Encodes a value of the two types above, for which that cannot fail.
func jsonText(of value: some Encodable) -> String {
  let encoder = JSONEncoder()
  encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
  guard let data = try? encoder.encode(value) else { preconditionFailure("\(value) has no JSON.") }
  return String(decoding: data, as: UTF8.self)
}
