// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation

/// The format to read: each frame is a line, and each line is JSON. The checksum is over the rest of its line.
///
/// ```text
/// {"crc32c":"…","version":1,"start":5029441}
/// {"crc32c":"…","time":5030112,"type":"Input","method":"queue","priority":"normal","event":{"key":32}}
/// {"crc32c":"…","left":0}
/// ```
///
/// A line of an event that could not be encoded has no `event`.
enum LineFormat {
  static let magic = Array(#"{"crc32c":""#.utf8)
  /// Before the payload, which is the last of its line. It is nowhere before: a quote inside a name is escaped.
  static let event = Data(#","event":"#.utf8)

  /// How a line begins, up to what has the checksum. It is 23 bytes long.
  static func prefix(_ checksum: Checksum) -> String { #"{"crc32c":"\#(checksum.hexadecimal)","# }
}

struct LineFrameWriter: FrameWriter {
  var bytes: [UInt8] = []
  private var checksum = Checksum()
  /// The names of the types, as JSON.
  private let types: [String]

  init(start: UInt64, types: [String]) {
    // A string can be encoded.
    self.types = types.map { String(decoding: (try? encodePayload($0)) ?? Data(), as: UTF8.self) }
    addLine(#""version":1,"start":\#(start)"#)
  }

  mutating func add(_ record: Record, _ payload: Data?) {
    addLine(
      #""time":\#(record.time),"type":\#(types[record.type]),"method":"\#(record.method)","priority":"\#(record.priority)""#,
      payload.map { LineFormat.event + $0 } ?? Data())
  }

  mutating func end(left: Int) { addLine(#""left":\#(UInt32(clamping: left))"#) }

  mutating func addLine(_ text: String, _ payload: Data = Data()) {
    let line = Array(text.utf8) + payload + "}\n".utf8
    checksum.add(line, in: 0..<line.count)
    bytes += LineFormat.prefix(checksum).utf8
    bytes += line
  }
}

struct LineFrameReader: FrameReader {
  private let bytes: [UInt8]
  private(set) var names: [String] = []
  private(set) var offset = 0
  private var checksum = Checksum()

  /// What a line has, except for the event itself.
  private struct Line: Decodable {
    let version: Int?
    let left: UInt32?
    let start, time: UInt64?
    let type, method, priority: String?
  }

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  mutating func next() throws(FrameDamage) -> Frame {
    guard offset < bytes.count else { throw .cut }
    guard let newline = bytes[offset...].firstIndex(of: UInt8(ascii: "\n")) else {
      throw FrameDamage(expected: "a line with its end", found: "\(bytes.count - offset) bytes without one")
    }
    let text = min(offset + LineFormat.prefix(checksum).utf8.count, newline)..<newline + 1
    var checksum = checksum
    checksum.add(bytes, in: text)
    let (expected, found) = (LineFormat.prefix(checksum), bytes[offset..<text.lowerBound])
    guard found.elementsEqual(expected.utf8) else {
      throw FrameDamage(
        expected: "a line that begins with \(expected)", found: String(decoding: found, as: UTF8.self))
    }
    let data = Data(bytes[offset..<newline])
    guard let line = try? JSONDecoder().decode(Line.self, from: data), let frame = frame(line, data) else {
      throw .unknown
    }
    (self.checksum, offset) = (checksum, newline + 1)
    return frame
  }

  private mutating func frame(_ line: Line, _ data: Data) -> Frame? {
    if let version = line.version, let start = line.start { return .start(version: version, time: start) }
    if let left = line.left { return .end(left: Int(left)) }
    guard
      let time = line.time, let name = line.type,
      let method = EventDispatchMethod.allCases.first(where: { "\($0)" == line.method }),
      let priority = EventPriority.allCases.first(where: { "\($0)" == line.priority })
    else { return nil }
    let type = names.firstIndex(of: name) ?? names.count
    if type == names.count { names.append(name) }
    // Up to the brace that ends the line.
    let payload = data.range(of: LineFormat.event).map { offset + $0.upperBound..<offset + data.count - 1 }
    return .event(Record(time: time, type: type, lane: Record.lane(method, priority)), payload: payload)
  }
}
