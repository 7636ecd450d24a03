// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation

/// The compact format: `EVCREC`, then frames. A frame is the length of its body (a varint), the body, and the checksum
/// (4 bytes, the least significant first). A time is a varint of the zigzag (0, -1, 1, -2 … as 0, 1, 2, 3 …) of the
/// nanoseconds since the event before, or since the start.
///
/// | First byte of a body | What follows |
/// |---|---|
/// | 0...9, the lane in the order of D1 | an event: the number of its type, a varint; the time; the payload in JSON |
/// | 16...25 | an event that could not be encoded: the same without the payload |
/// | 32 | the start: the version and the nanoseconds, two varints |
/// | 33 | the name of a type, which gets the next number, from 0 on |
/// | 34 | the end: how many events still waited, a varint |
enum BinaryFormat {
  static let magic = Array("EVCREC".utf8)
  static let missing: UInt8 = 16
  static let (start, name, end): (UInt8, UInt8, UInt8) = (32, 33, 34)
}

struct BinaryFrameWriter: FrameWriter {
  var bytes = BinaryFormat.magic
  private var checksum = Checksum()
  private var lastTime: UInt64

  init(start: UInt64, types: [String]) {
    lastTime = start
    checksum.add(bytes, in: 0..<bytes.count)
    var body = [BinaryFormat.start, 1]
    body.appendVarint(start)
    addFrame(body)
    for type in types { addFrame([BinaryFormat.name] + type.utf8) }
  }

  mutating func add(_ record: Record, _ payload: Data?) {
    var body = [payload == nil ? record.lane | BinaryFormat.missing : record.lane]
    let difference = Int64(bitPattern: record.time &- lastTime)
    lastTime = record.time
    body.appendVarint(UInt64(record.type))
    body.appendVarint(UInt64(bitPattern: difference << 1 ^ difference >> 63))
    addFrame(body + (payload ?? Data()))
  }

  mutating func end(left: Int) {
    var body = [BinaryFormat.end]
    body.appendVarint(UInt64(UInt32(clamping: left)))
    addFrame(body)
  }

  mutating func addFrame(_ body: [UInt8]) {
    let start = bytes.count
    bytes.appendVarint(UInt64(body.count))
    bytes += body
    checksum.add(bytes, in: start..<bytes.count)
    bytes.appendFixed(checksum.value)
  }
}

struct BinaryFrameReader: FrameReader {
  private let bytes: [UInt8]
  private(set) var names: [String] = []
  private(set) var offset: Int
  private var lastTime: UInt64 = 0
  private var checksum = Checksum()

  /// The bytes begin with the magic, or are a part of it.
  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    offset = min(BinaryFormat.magic.count, bytes.count)
    checksum.add(bytes, in: 0..<offset)
  }

  mutating func next() throws(FrameDamage) -> Frame {
    while true {
      let (body, end) = try frame()
      var reader = ByteReader(rest: body)
      let tag = reader.byte()
      if tag == BinaryFormat.name {
        names.append(String(decoding: reader.rest, as: UTF8.self))
        offset = end
      } else if let tag, let first = reader.varint(), let frame = content(tag, first, &reader) {
        offset = end
        return frame
      } else {
        throw .unknown
      }
    }
  }

  /// Checks the frame at the offset. Returns where its body is, and where the frame ends.
  private mutating func frame() throws(FrameDamage) -> (body: ArraySlice<UInt8>, end: Int) {
    guard offset < bytes.count else { throw .cut }
    var reader = ByteReader(rest: bytes[offset...])
    guard let length = reader.varint() else {
      throw FrameDamage(expected: "the length of a frame", found: "bytes that are no such number")
    }
    guard let body = reader.skip(length), let found = reader.fixed() else {
      throw FrameDamage(
        expected: "a frame of \(length) bytes and its checksum", found: "\(bytes.count - offset) bytes")
    }
    var checksum = checksum
    checksum.add(bytes, in: offset..<body.endIndex)
    guard checksum.value == found else {
      throw FrameDamage(
        expected: "a frame with the checksum \(checksum.hexadecimal)", found: String(found, radix: 16))
    }
    self.checksum = checksum
    return (body, reader.rest.startIndex)
  }

  private mutating func content(_ tag: UInt8, _ first: UInt64, _ reader: inout ByteReader) -> Frame? {
    if tag == BinaryFormat.end { return .end(left: Int(UInt32(clamping: first))) }
    guard let time = reader.varint() else { return nil }
    if tag == BinaryFormat.start {
      lastTime = time
      return .start(version: Int(clamping: first), time: time)
    }
    let lane = tag & ~BinaryFormat.missing
    guard lane < 10, first < names.count else { return nil }
    lastTime &+= time >> 1 ^ (0 &- time & 1)
    return .event(Record(time: lastTime, type: Int(first), lane: lane), payload: tag == lane ? reader.rest.indices : nil)
  }
}
