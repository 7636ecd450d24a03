// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation

/// What a message says of its event, in one header, `EventCore`, whose value is a line of words:
///
///     queue normal 1764060000000000000 1 8c1f0a6e5b2d4c37 TemperatureEvent
///
/// method, priority, wall clock of the dispatch in nanoseconds since 1970, version, the sender, and the name of the
/// type, which is the rest of the line. Behind the version stands the form of the event, unless it is JSON or one of the
/// user's own: `1/cbor`. One header, since the client makes a table for several, which takes longer than
/// all else that is done for a message.
struct MessageHeader {
  static let key: StaticString = "EventCore"

  var method: EventDispatchMethod
  var priority: EventPriority
  var time: Int64
  var version: Int
  // Bytes of the line, since with strings an event that arrives takes a fifth more processor time. Whoever reads a
  // header compares them while he has the message, and keeps none.
  /// The form, if the message names one.
  var form: UnsafeRawBufferPointer?
  /// Tells apart the centrals from which events come.
  var sender: UnsafeRawBufferPointer
  var type: UnsafeRawBufferPointer

  /// Nil unless the line has the form.
  init?(line: UnsafePointer<CChar>) {
    var rest = UnsafeRawBufferPointer(start: line, count: strlen(line))
    /// The bytes until a separator, which goes as well; nil if there are none, or there is none.
    func word() -> UnsafeRawBufferPointer? {
      guard let end = rest.firstIndex(of: UInt8(ascii: " ")), end > 0 else { return nil }
      defer { rest = UnsafeRawBufferPointer(rebasing: rest[(end + 1)...]) }
      return UnsafeRawBufferPointer(rebasing: rest[..<end])
    }
    guard let method = word().flatMap(HeaderWords.method), let priority = word().flatMap(HeaderWords.priority),
      let time = word().flatMap(Int64.init(digits:)), let fourth = word(), let sender = word(), !rest.isEmpty
    else { return nil }
    let slash = fourth.firstIndex(of: UInt8(ascii: "/")) ?? fourth.count
    guard let version = Int64(digits: fourth[..<slash]).flatMap(Int.init(exactly:)), version >= 0 else { return nil }
    form = slash == fourth.count ? nil : UnsafeRawBufferPointer(rebasing: fourth[(slash + 1)...])
    (self.method, self.priority, self.time) = (method, priority, time)
    (self.version, self.sender, type) = (version, sender, rest)
  }
}

extension UnsafeRawBufferPointer {
  func isText(_ text: String) -> Bool { elementsEqual(text.utf8) }
}

extension StaticString {
  /// A literal ends with a zero. A string that is handed to the client is copied byte by byte each time.
  var bytes: UnsafePointer<CChar> { UnsafeRawPointer(utf8Start).assumingMemoryBound(to: CChar.self) }
}

extension Int64 {
  /// A decimal number, perhaps with a minus; nil if the bytes are none, or it is too large.
  init?(digits: some Collection<UInt8>) {
    let isNegative = digits.first == UInt8(ascii: "-")
    let digits = isNegative ? digits.dropFirst() : digits[...]
    guard !digits.isEmpty else { return nil }
    var value: Int64 = 0
    for byte in digits {
      guard case UInt8(ascii: "0")...UInt8(ascii: "9") = byte else { return nil }
      let (tens, isTooLarge) = value.multipliedReportingOverflow(by: 10)
      let digit = Int64(byte - UInt8(ascii: "0"))
      // Downwards from the start, since there is one negative number more.
      let (sum, isOver) = isNegative ? tens.subtractingReportingOverflow(digit) : tens.addingReportingOverflow(digit)
      guard !isTooLarge, !isOver else { return nil }
      value = sum
    }
    self = value
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
    guard E.version >= 0 else {
      fatalError(
        """
        The version of a RemoteEvent is 0 or more, and that of \(E.self) is \(E.version), which no receiver takes: \
        count from 0 or 1.
        """)
    }
    let form = coding.form.flatMap { $0 == .json ? nil : "/\($0.rawValue)" } ?? ""
    end = " \(E.version)\(form) \(sender) \(name)"
  }

  func line(_ method: EventDispatchMethod, _ priority: EventPriority, time: Int64) -> String {
    var line = method == .queue ? "queue " : "stack "
    line += HeaderWords.name(of: priority)
    line += " "
    line += time.description
    line += end
    return line
  }
}

private enum HeaderWords {
  /// The one that most events have is the first.
  private static let priorities: [EventPriority] = [.normal, .high, .low, .highest, .lowest]

  static func method(_ word: UnsafeRawBufferPointer) -> EventDispatchMethod? {
    word.isText("queue") ? .queue : word.isText("stack") ? .stack : nil
  }

  static func priority(_ word: UnsafeRawBufferPointer) -> EventPriority? {
    priorities.first { word.isText(name(of: $0)) }
  }

  static func name(of priority: EventPriority) -> String {
    switch priority {
    case .lowest: "lowest"
    case .low: "low"
    case .normal: "normal"
    case .high: "high"
    case .highest: "highest"
    }
  }
}
