// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// What a message says of its event, in one header, `EventCore`, whose value is a line of words:
///
///     queue normal 1764060000000000000 1 8c1f0a6e5b2d4c37 TemperatureEvent
///
/// method, priority, wall clock of the dispatch in nanoseconds since 1970, version, the sender, and the name of the type,
/// which is the rest of the line. One header, since the client makes a table for several, which takes longer than all
/// else that is done for a message.
struct MessageHeader: Equatable {
  static let key = "EventCore"

  var method: EventDispatchMethod
  var priority: EventPriority
  var time: Int64
  var version: Int
  /// Tells apart the centrals from which events come.
  var sender: String
  var type: String

  var line: String { "\(method) \(priority) \(time) \(version) \(sender) \(type)" }

  init(
    method: EventDispatchMethod, priority: EventPriority, time: Int64, version: Int, sender: String, type: String
  ) {
    (self.method, self.priority, self.time) = (method, priority, time)
    (self.version, self.sender, self.type) = (version, sender, type)
  }

  /// Nil unless the line has the form.
  init?(line: String) {
    let words = line.split(separator: " ", maxSplits: 5, omittingEmptySubsequences: false)
    guard words.count == 6,
      let method = EventDispatchMethod.allCases.first(where: { "\($0)" == words[0] }),
      let priority = EventPriority.allCases.first(where: { "\($0)" == words[1] }),
      let time = Int64(words[2]), let version = Int(words[3]), version >= 0, !words[4].isEmpty, !words[5].isEmpty
    else { return nil }
    self.init(
      method: method, priority: priority, time: time, version: version, sender: String(words[4]),
      type: String(words[5]))
  }
}
