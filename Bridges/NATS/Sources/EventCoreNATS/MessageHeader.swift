// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// What a message says of its event, in one header, `EventCore`, whose value is a line of words:
///
///     queue normal 1764060000000000000 1 8c1f0a6e5b2d4c37 TemperatureEvent
///
/// method, priority, wall clock of the dispatch in nanoseconds since 1970, version, the sender, and the name of the
/// type, which is the rest of the line. Behind the version stands the form of the event, unless it is JSON or one of the
/// user's own: `1/cbor`. One header, since the client makes a table for several, which takes longer than
/// all else that is done for a message.
struct MessageHeader: Equatable {
  static let key = "EventCore"

  var method: EventDispatchMethod
  var priority: EventPriority
  var time: Int64
  var version: Int
  /// The form, if the message names one.
  var form: Substring?
  /// Tells apart the centrals from which events come.
  var sender: Substring
  var type: Substring

  /// Nil unless the line has the form.
  init?(line: String) {
    // By bytes: by characters it takes ten times as long.
    var rest = line.utf8[...]
    func word() -> Substring? {
      guard let end = rest.firstIndex(of: UInt8(ascii: " ")), end > rest.startIndex else { return nil }
      defer { rest = rest[rest.index(after: end)...] }
      return Substring(rest[..<end])
    }
    guard let first = word(), let method = HeaderWords.methods[first],
      let second = word(), let priority = HeaderWords.priorities[second],
      let third = word(), let time = Int64(third), let fourth = word(), let sender = word(), !rest.isEmpty
    else { return nil }
    let slash = fourth.utf8.firstIndex(of: UInt8(ascii: "/")) ?? fourth.endIndex
    guard let version = Int(fourth[..<slash]), version >= 0 else { return nil }
    form = slash == fourth.endIndex ? nil : fourth[fourth.utf8.index(after: slash)...]
    (self.method, self.priority, self.time) = (method, priority, time)
    (self.version, self.sender, self.type) = (version, sender, Substring(rest))
  }
}

/// Writes the headers of one type.
struct HeaderWriter: Sendable {
  private let end: String

  init<E: RemoteEvent>(_ type: E.Type, _ coding: RemoteCoding<E>, sender: String) {
    let name = E.remoteName
    guard !name.isEmpty, !name.utf8.contains(where: { $0 < 32 }), name.first != " ", name.last != " " else {
      fatalError(
        """
        The name of a RemoteEvent is a line without spaces at its ends, and that of \(E.self) is "\(name)": give it a \
        remoteName.
        """)
    }
    let form = coding.form.flatMap { $0 == .json ? nil : "/\($0.rawValue)" } ?? ""
    end = " \(E.version)\(form) \(sender) \(name)"
  }

  func line(_ method: EventDispatchMethod, _ priority: EventPriority, time: Int64) -> String {
    var line = method == .queue ? "queue " : "stack "
    line += HeaderWords.name(of: priority)
    line += time.description
    line += end
    return line
  }
}

private enum HeaderWords {
  static let methods: [Substring: EventDispatchMethod] = ["queue": .queue, "stack": .stack]
  static let priorities: [Substring: EventPriority] = [
    "lowest": .lowest, "low": .low, "normal": .normal, "high": .high, "highest": .highest,
  ]

  static func name(of priority: EventPriority) -> String {
    switch priority {
    case .lowest: "lowest "
    case .low: "low "
    case .normal: "normal "
    case .high: "high "
    case .highest: "highest "
    }
  }
}
