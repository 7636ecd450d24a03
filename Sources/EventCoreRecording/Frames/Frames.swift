// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation

/// What a recording says of an event, beside the payload.
struct Record: Sendable {
  /// The time of the dispatch, in nanoseconds.
  let time: UInt64
  /// The number of the type: for a writer among its types, for a reader among its names.
  let type: Int
  /// From 0 to 9, in the order of D1.
  let lane: UInt8

  var method: EventDispatchMethod { lane < 5 ? .stack : .queue }
  var priority: EventPriority { .inOrder[Int(lane % 5)] }

  static func lane(_ method: EventDispatchMethod, _ priority: EventPriority) -> UInt8 {
    UInt8(method.rawValue * 5 + 4 - priority.rawValue)
  }
}

/// A part of a recording.
enum Frame {
  /// The first one. The time is in nanoseconds.
  case start(version: Int, time: UInt64)
  /// An event, and where its payload is; nil if it could not be encoded.
  case event(Record, payload: Range<Int>?)
  /// The last one: how many events still waited for the recorder.
  case end(left: Int)
}

/// Turns events into the bytes of one format, frame by frame. Each frame has the checksum of everything before it, and
/// of itself, but for the other checksums: so a frame that is missing, doubled or moved is found as well.
protocol FrameWriter: Sendable {
  /// What was written and not taken away yet.
  var bytes: [UInt8] { get set }

  /// Adds an event with its payload in JSON; nil if it could not be encoded.
  mutating func add(_ record: Record, _ payload: Data?)
  mutating func end(left: Int)
}

/// Reads the bytes of one format, frame by frame.
protocol FrameReader: Sendable {
  /// Those of the types that there have been so far.
  var names: [String] { get }
  /// Where the next frame begins.
  var offset: Int { get }

  mutating func next() throws(FrameDamage) -> Frame
}

/// Why a frame cannot be read: what should be there, and what is.
struct FrameDamage: Error {
  let expected: String
  let found: String

  static let cut = FrameDamage(
    expected: "another frame, since the last one says that it is the last",
    found: "the end of the file, which was cut, or whose recorder went without finish()")
  static let unknown = FrameDamage(
    expected: "a start, an event or an end", found: "a frame that is none, although its checksum is right")
}

/// Encodes a payload, the same for equal events. Runs the user's code.
func encodePayload<Value: Encodable>(_ value: Value) throws -> Data {
  let encoder = JSONEncoder()
  encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
  encoder.nonConformingFloatEncodingStrategy = .convertToString(
    positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
  return try encoder.encode(value)
}

/// Decodes what `encodePayload` made. Runs the user's code.
func decodePayload<Value: Decodable>(_ type: Value.Type, _ bytes: ArraySlice<UInt8>) throws -> Value {
  let decoder = JSONDecoder()
  decoder.nonConformingFloatDecodingStrategy = .convertFromString(
    positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
  return try decoder.decode(type, from: Data(bytes))
}
